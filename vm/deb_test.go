package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// fakeApt answers as apt-cache, apt-get and dpkg do.
type fakeApt struct {
	t       *testing.T
	depends map[string]string // by meta-package: what apt-cache depends prints
	version string
	fetched []string
	asked   int
}

func (f *fakeApt) run(_ context.Context, dir, name string, args ...string) ([]byte, error) {
	f.asked++
	switch command := name + " " + args[0]; {
	case command == "apt-cache depends":
		out, ok := f.depends[args[len(args)-1]]
		if !ok {
			return nil, errors.New("apt-cache: No packages found")
		}
		return []byte(out), nil
	case command == "apt-cache pkgnames":
		var out []byte
		for p := range f.depends {
			if strings.HasPrefix(p, args[1]) {
				out = fmt.Appendln(out, p)
			}
		}
		return out, nil
	case slices.Contains(args, "--print-uris"):
		var out []byte
		for _, p := range args[3:] {
			out = fmt.Appendf(out, "'http://debian.example/%s.deb' %[1]s_%s_amd64.deb 100 SHA256:00\n", p, f.version)
		}
		return out, nil
	case command == "apt-get -q":
		f.fetched = append(f.fetched, args[2:]...)
		for _, p := range args[2:] {
			require.NoError(f.t, os.WriteFile(filepath.Join(dir, p+"_1_amd64.deb"), nil, 0o644))
		}
		return nil, nil
	case command == "dpkg -x":
		tree := args[2]
		if strings.Contains(args[1], "linux-image-") {
			require.NoError(f.t, os.MkdirAll(filepath.Join(tree, "boot"), 0o755))
			require.NoError(f.t, os.WriteFile(filepath.Join(tree, "boot/vmlinuz-0.0-fake"), []byte("kernel"), 0o644))
		}
		if strings.Contains(args[1], "linux-modules-6") || !strings.Contains(fmt.Sprint(f.fetched), "linux-modules") {
			fakeModules(f.t, filepath.Join(tree, "lib/modules"))
		}
		return nil, nil
	}
	return nil, fmt.Errorf("unexpected %s %q", name, args)
}

func debian(t *testing.T) *fakeApt {
	return &fakeApt{t: t, version: "6.1.9-1", depends: map[string]string{
		"linux-image-amd64":          "linux-image-amd64\n  Depends: linux-image-6.1.0-9-amd64\nlinux-image-6.1.0-9-amd64\n  Depends: kmod\n  Depends: linux-base\nkmod\nlinux-base\n",
		"linux-image-6.1.0-10-amd64": "linux-image-6.1.0-10-amd64\n  Depends: kmod\nkmod\n",
	}}
}

func ubuntu(t *testing.T) *fakeApt {
	return &fakeApt{t: t, version: "6.8.0-9.9", depends: map[string]string{
		"linux-image-generic": `linux-image-generic
  Depends: linux-image-6.8.0-9-generic
  Depends: linux-modules-extra-6.8.0-9-generic
 |Depends: linux-firmware
linux-image-6.8.0-9-generic
  Depends: linux-modules-6.8.0-9-generic
linux-modules-extra-6.8.0-9-generic
 |Depends: linux-image-6.8.0-9-generic
  Depends: linux-image-unsigned-6.8.0-9-generic
linux-image-unsigned-6.8.0-9-generic
linux-firmware
linux-modules-6.8.0-9-generic
`,
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
	for name, c := range map[string]struct {
		apt      *fakeApt
		kernel   string
		packages []string
	}{
		"Debian": {debian(t), "linux-image-6.1.0-9-amd64 6.1.9-1", []string{"linux-image-6.1.0-9-amd64"}},
		"Ubuntu": {ubuntu(t), "linux-image-6.8.0-9-generic 6.8.0-9.9", []string{"linux-image-6.8.0-9-generic", "linux-modules-extra-6.8.0-9-generic", "linux-modules-6.8.0-9-generic"}},
	} {
		t.Run(name, func(t *testing.T) {
			testCache(t)
			k := must.Get(packagedKernel(t.Context(), c.apt.run, "", t.Logf))(t)
			require.Equal(t, []string{c.kernel, "0.0-fake"}, []string{k.Name, k.Release})
			require.Equal(t, c.packages, c.apt.fetched)
			data := must.Get(os.ReadFile(k.Image))(t)
			require.Equal(t, "kernel", string(data))
			require.FileExists(t, filepath.Join(k.Modules, "modules.dep"))
			require.FileExists(t, filepath.Join(k.Modules, "kernel/drivers/rdma_rxe.ko"))

			// The second time nothing is asked for or fetched.
			asked := c.apt.asked
			again := must.Get(packagedKernel(t.Context(), c.apt.run, "", t.Logf))(t)
			require.Equal(t, k, again)
			require.Equal(t, asked, c.apt.asked)
		})
	}
}

// TestPackagedKernelUpdate: after a day the package lists are asked again, and
// a newer kernel is fetched.
func TestPackagedKernelUpdate(t *testing.T) {
	testCache(t)
	apt := debian(t)
	old := must.Get(packagedKernel(t.Context(), apt.run, "", t.Logf))(t)
	age := func() {
		path := must.Get(kernelNote("linux-image-amd64", nil))(t)
		yesterday := time.Now().Add(-25 * time.Hour)
		require.NoError(t, os.Chtimes(path, yesterday, yesterday))
	}
	age()
	apt.depends["linux-image-amd64"], apt.version = "linux-image-6.1.0-10-amd64\n", "6.1.10-1"
	k := must.Get(packagedKernel(t.Context(), apt.run, "", t.Logf))(t)
	require.NotEqual(t, old.Name, k.Name)

	// Without package lists the one that is there serves.
	age()
	apt.depends = nil
	again := must.Get(packagedKernel(t.Context(), apt.run, "", t.Logf))(t)
	require.Equal(t, k, again)
}

// TestPackagedKernelModules: a kernel in the cache serves those who want the
// modules that it has, and no others.
func TestPackagedKernelModules(t *testing.T) {
	testCache(t)
	apt := debian(t)
	must.Get(packagedKernel(t.Context(), apt.run, "", t.Logf))(t)
	defer func(list []string) { optionalModules = list }(optionalModules)
	optionalModules = append(slices.Clone(optionalModules), "new")
	for range 2 {
		must.Get(packagedKernel(t.Context(), apt.run, "", t.Logf))(t)
		require.Len(t, apt.fetched, 2)
	}
	for range 2 {
		must.Get(packagedKernel(t.Context(), apt.run, "", t.Logf, "veth"))(t)
		require.Len(t, apt.fetched, 3)
	}
}

// TestRelease: of a release the newest kernel is taken and kept, and no cloud's
// or other release's.
func TestRelease(t *testing.T) {
	testCache(t)
	apt := &fakeApt{t: t, version: "1", depends: map[string]string{}}
	for _, name := range []string{
		"linux-image-6.1.0-9-amd64", "linux-image-6.12-amd64", "linux-image-6.12.9+deb12-amd64", "linux-image-6.12.10+deb12-amd64",
		"linux-image-6.12.11+deb12-cloud-amd64", "linux-image-6.12.11+deb12-amd64-unsigned", "linux-image-6.8.0-49-generic",
	} {
		apt.depends[name] = name + "\n"
	}
	require.Nil(t, CachedKernel("6.12"))
	for release, want := range map[string]string{
		"6.12": "linux-image-6.12.10+deb12-amd64", "6.12.9": "linux-image-6.12.9+deb12-amd64",
		"6.1": "linux-image-6.1.0-9-amd64", "6.8.0": "linux-image-6.8.0-49-generic",
	} {
		apt.fetched = nil
		k := must.Get(packagedKernel(t.Context(), apt.run, release, t.Logf))(t)
		require.Equal(t, want+" 1", k.Name)
		require.Equal(t, []string{want}, apt.fetched)
		require.Equal(t, k, CachedKernel(release))
	}
	whole := must.Get(kernelOfRelease(t.Context(), apt.run, "6.12.9+deb12-amd64"))(t)
	require.Equal(t, []string{"linux-image-6.12.9+deb12-amd64"}, whole)
	_, err := packagedKernel(t.Context(), apt.run, "6.2", t.Logf)
	require.ErrorAs(t, err, new(*MissingError))
	require.ErrorContains(t, err, "linux-image-6.2")
	for release, want := range map[string]string{"../x": "no version", "6": "no version", "6.12": "leave --release out"} {
		_, err := FindKernel(t.Context(), "vmlinuz", "dir", release, t.Logf)
		require.ErrorContains(t, err, want)
	}
}

func TestPackagedKernelErrors(t *testing.T) {
	t.Run("no lists", func(t *testing.T) {
		testCache(t)
		_, err := packagedKernel(t.Context(), (&fakeApt{t: t}).run, "", t.Logf)
		require.ErrorAs(t, err, new(*MissingError))
		require.Contains(t, err.Error(), "apt-get update")
		require.NotContains(t, err.Error(), "\n")
	})
	t.Run("interrupted", func(t *testing.T) {
		testCache(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("interrupt signal received")
		cancel(why)
		_, err := packagedKernel(ctx, (&fakeApt{t: t}).run, "", t.Logf)
		require.Equal(t, why, err)
	})
	t.Run("a package of that name", func(t *testing.T) {
		testCache(t)
		t.Setenv(KernelPackageEnv, "linux-image-6.1.0-10-amd64")
		k := must.Get(packagedKernel(t.Context(), debian(t).run, "", t.Logf))(t)
		require.Equal(t, "linux-image-6.1.0-10-amd64 6.1.9-1", k.Name)
	})
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
		require.ErrorContains(t, err, "no kernel", name)
	}
}

func TestFindKernelNeedsBoth(t *testing.T) {
	for _, c := range [][2]string{{"vmlinuz", ""}, {"", "dir"}} {
		_, err := FindKernel(t.Context(), c[0], c[1], "", t.Logf)
		require.ErrorContains(t, err, "needs both")
	}
	_, err := FindKernel(t.Context(), "/nonexistent/vmlinuz", "/nonexistent", "", t.Logf)
	require.True(t, errors.Is(err, os.ErrNotExist), "%v", err)
}
