package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeTools are package tools that are a map.
type fakeTools struct {
	t        *testing.T
	packages map[string]debPackage
	fetched  []string
	corrupt  bool
	asked    int
}

func (f *fakeTools) Show(_ context.Context, name string) (debPackage, error) {
	f.asked++
	p, ok := f.packages[name]
	if !ok {
		return p, fmt.Errorf("package %s is not in the package lists", name)
	}
	p.Name = name
	p.SHA256 = sum([]byte(name + p.Version))
	return p, nil
}

func (f *fakeTools) Fetch(_ context.Context, p debPackage, dir string) (string, error) {
	f.fetched = append(f.fetched, p.Name)
	file := filepath.Join(dir, p.Name+".deb")
	data := p.Name + p.Version
	if f.corrupt {
		data += "x"
	}
	return file, os.WriteFile(file, []byte(data), 0o644)
}

func (f *fakeTools) Unpack(_ context.Context, file, dir string) error {
	if strings.Contains(file, "linux-image-") {
		require.NoError(f.t, os.MkdirAll(filepath.Join(dir, "boot"), 0o755))
		require.NoError(f.t, os.WriteFile(filepath.Join(dir, "boot/vmlinuz-0.0-fake"), []byte("kernel"), 0o644))
	}
	if strings.Contains(file, "modules") || !strings.Contains(fmt.Sprint(f.packages), "linux-modules") {
		fakeModules(f.t, filepath.Join(dir, "lib/modules"))
	}
	return nil
}

func debian(t *testing.T) *fakeTools {
	return &fakeTools{t: t, packages: map[string]debPackage{
		"linux-image-amd64":          {Version: "6.1.9-1", Depends: []string{"linux-image-6.1.0-9-amd64", "firmware-linux"}},
		"linux-image-6.1.0-9-amd64":  {Version: "6.1.9-1", Depends: []string{"kmod", "linux-base"}},
		"linux-image-6.1.0-10-amd64": {Version: "6.1.10-1"},
	}}
}

func ubuntu(t *testing.T) *fakeTools {
	return &fakeTools{t: t, packages: map[string]debPackage{
		"linux-image-generic":                 {Version: "6.8.0-9.9", Depends: []string{"linux-image-6.8.0-9-generic", "linux-modules-extra-6.8.0-9-generic", "linux-firmware"}},
		"linux-image-6.8.0-9-generic":         {Version: "6.8.0-9.9", Depends: []string{"linux-modules-6.8.0-9-generic"}},
		"linux-modules-6.8.0-9-generic":       {Version: "6.8.0-9.9"},
		"linux-modules-extra-6.8.0-9-generic": {Version: "6.8.0-9.9", Depends: []string{"linux-image-6.8.0-9-generic"}},
	}}
}

func testCache(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	t.Setenv("HOME", dir)
	t.Setenv(KernelPackageEnv, "")
}

func TestPackagedKernel(t *testing.T) {
	for name, tools := range map[string]*fakeTools{"Debian": debian(t), "Ubuntu": ubuntu(t)} {
		t.Run(name, func(t *testing.T) {
			testCache(t)
			k, err := packagedKernel(t.Context(), tools, t.Logf)
			require.NoError(t, err)
			require.Equal(t, "0.0-fake", k.Release)
			require.Equal(t, map[string][]string{
				"Debian": {"linux-image-6.1.0-9-amd64", "linux-image-amd64"},
				"Ubuntu": {"linux-image-6.8.0-9-generic", "linux-modules-6.8.0-9-generic", "linux-image-generic", "linux-modules-extra-6.8.0-9-generic"},
			}[name][0], tools.fetched[0])
			files, err := k.moduleFiles()
			require.NoError(t, err)
			require.Contains(t, files, "modules.dep")
			require.Contains(t, files, "kernel/drivers/rdma_rxe.ko")

			// The second time nothing is asked for or fetched.
			n, asked := len(tools.fetched), tools.asked
			again, err := packagedKernel(t.Context(), tools, t.Logf)
			require.NoError(t, err)
			require.Equal(t, k, again)
			require.Len(t, tools.fetched, n)
			require.Equal(t, asked, tools.asked)
		})
	}
}

// TestPackagedKernelUpdate: after a day the package lists are asked again, and
// a newer kernel is fetched.
func TestPackagedKernelUpdate(t *testing.T) {
	testCache(t)
	tools := debian(t)
	old, err := packagedKernel(t.Context(), tools, t.Logf)
	require.NoError(t, err)
	age := func() {
		path, err := cacheDir("kernels", "linux-image-amd64.json")
		require.NoError(t, err)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		today, yesterday := time.Now().Format("2006-01-02"), time.Now().Add(-25*time.Hour).Format("2006-01-02")
		require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), today, yesterday, 1)), 0o644))
	}
	age()
	tools.packages["linux-image-amd64"] = debPackage{Version: "6.1.10-1", Depends: []string{"linux-image-6.1.0-10-amd64"}}
	k, err := packagedKernel(t.Context(), tools, t.Logf)
	require.NoError(t, err)
	require.NotEqual(t, old.Name, k.Name)

	// Without package lists the one that is there serves.
	age()
	tools.packages = nil
	again, err := packagedKernel(t.Context(), tools, t.Logf)
	require.NoError(t, err)
	require.Equal(t, k, again)
}

func TestPackagedKernelErrors(t *testing.T) {
	t.Run("no lists", func(t *testing.T) {
		testCache(t)
		_, err := packagedKernel(t.Context(), &fakeTools{t: t}, t.Logf)
		var missing *MissingError
		require.ErrorAs(t, err, &missing)
		require.Contains(t, err.Error(), "apt-get update")
		require.NotContains(t, err.Error(), "\n")
	})
	t.Run("wrong hash", func(t *testing.T) {
		testCache(t)
		tools := debian(t)
		tools.corrupt = true
		_, err := packagedKernel(t.Context(), tools, t.Logf)
		require.ErrorContains(t, err, "SHA-256")
		tools.corrupt = false
		_, err = packagedKernel(t.Context(), tools, t.Logf)
		require.NoError(t, err, "nothing bad was kept")
	})
	t.Run("a package of that name", func(t *testing.T) {
		testCache(t)
		t.Setenv(KernelPackageEnv, "linux-image-6.1.0-10-amd64")
		tools := debian(t)
		k, err := packagedKernel(t.Context(), tools, t.Logf)
		require.NoError(t, err)
		require.Equal(t, "linux-image-6.1.0-10-amd64 6.1.10-1", k.Name)
	})
}

// TestKernelCacheChecked: a file that was changed in the cache is noticed, and
// the kernel fetched again.
func TestKernelCacheChecked(t *testing.T) {
	testCache(t)
	tools := debian(t)
	k, err := packagedKernel(t.Context(), tools, t.Logf)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(k.Image, []byte("kernex"), 0o644))
	n := len(tools.fetched)
	k, err = packagedKernel(t.Context(), tools, t.Logf)
	require.NoError(t, err)
	require.Greater(t, len(tools.fetched), n)
	data, err := os.ReadFile(k.Image)
	require.NoError(t, err)
	require.Equal(t, "kernel", string(data))
}

func TestFindInTree(t *testing.T) {
	for name, c := range map[string]struct{ vmlinuz, modules string }{
		"Debian 12, Ubuntu": {"boot/vmlinuz-1.0-x", "lib/modules/1.0-x"},
		"merged":            {"boot/vmlinuz-1.0-x", "usr/lib/modules/1.0-x"},
		"newer Debian":      {"usr/lib/modules/1.0-x/vmlinuz", "usr/lib/modules/1.0-x"},
	} {
		tree := t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Join(tree, c.modules, "kernel"), 0o755))
		_, _, err := findInTree(tree)
		require.ErrorContains(t, err, "no kernel", name)
		vmlinuz := filepath.Join(tree, c.vmlinuz)
		require.NoError(t, os.MkdirAll(filepath.Dir(vmlinuz), 0o755))
		require.NoError(t, os.WriteFile(vmlinuz, nil, 0o644))
		got, modules, err := findInTree(tree)
		require.NoError(t, err, name)
		require.Equal(t, []string{vmlinuz, filepath.Join(tree, c.modules)}, []string{got, modules}, name)
		require.NoError(t, os.RemoveAll(filepath.Join(tree, c.modules, "kernel")))
		_, _, err = findInTree(tree)
		require.ErrorContains(t, err, "no modules", name)
	}
}

func TestParseDeb(t *testing.T) {
	p, err := parseDeb([]byte("Package: a\nVersion: 1:2-3\nDepends: b (= 1) | c, d:any,\n e\nSHA256: 00\n\nPackage: z\nVersion: 9\n"))
	require.NoError(t, err)
	require.Equal(t, debPackage{Name: "a", Version: "1:2-3", SHA256: "00", Depends: []string{"b", "d:any"}}, p)
	for _, text := range []string{"", "Package: a\n", "N: Unable to locate package\n"} {
		_, err := parseDeb([]byte(text))
		require.Error(t, err)
	}
}

func TestFindKernelNeedsBoth(t *testing.T) {
	for _, c := range [][2]string{{"vmlinuz", ""}, {"", "dir"}} {
		_, err := FindKernel(t.Context(), c[0], c[1], t.Logf)
		require.ErrorContains(t, err, "needs both")
	}
	_, err := FindKernel(t.Context(), "/nonexistent/vmlinuz", "/nonexistent", t.Logf)
	require.True(t, errors.Is(err, os.ErrNotExist), "%v", err)
}
