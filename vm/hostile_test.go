//go:build unix

package vm

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// TestHostileModules: modules that name a path where a release belongs, or lie
// outside of their directory, write nothing there.
func TestHostileModules(t *testing.T) {
	cache := t.TempDir()
	for _, set := range []*moduleSet{
		{release: "../../evil"}, {release: ".."}, {release: ""},
		{release: "1.0", files: []moduleFile{{path: "../../../evil/x.ko"}}},
	} {
		_, err := installKernel(filepath.Join(cache, "kernels", "own"), []byte("kernel"), set)
		require.Error(t, err)
		left := must.Get(filepath.Glob(filepath.Join(cache, "*", "*")))(t)
		require.Empty(t, left)
		require.NoDirExists(t, filepath.Join(cache, "evil"))
		require.NoError(t, os.MkdirAll(filepath.Join(cache, "kernels"), 0o755))
	}
}

// TestHostilePackage: a kernel's file that leads out of its package is not
// read, and one that does not end is no file.
func TestHostilePackage(t *testing.T) {
	tree, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(tree, "lib/modules/1.0/kernel"), 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(tree, "boot"), 0o755))
	link := filepath.Join(tree, "boot/vmlinuz-1.0")
	require.NoError(t, os.Symlink(outside, link))
	_, _, err := findInTree(tree)
	require.ErrorContains(t, err, "leads out of the package")
	require.NoError(t, os.Remove(link))
	require.NoError(t, os.WriteFile(filepath.Join(tree, "boot/image"), nil, 0o644))
	require.NoError(t, os.Symlink("image", link))
	_, _, err = findInTree(tree)
	require.NoError(t, err)
	for _, endless := range []string{"/dev/zero", tree} {
		must.Fail(readBounded(endless))(t, syscall.EINVAL)
	}
}

// TestHostileCache: a cache into which others may write is not used, and its
// note of the newest kernel leads to no other directory.
func TestHostileCache(t *testing.T) {
	testCache(t)
	path := must.Get(CacheDir("kernels", "x"))(t)
	base := filepath.Dir(filepath.Dir(path))
	require.NoError(t, os.MkdirAll(filepath.Join(base, "elsewhere/modules/1.0"), 0o755))
	require.NoError(t, os.WriteFile(path, []byte("../elsewhere"), 0o644))
	require.Nil(t, lastKernel(path))
	require.NoError(t, os.Rename(filepath.Join(base, "elsewhere"), filepath.Join(base, "kernels/k")))
	require.NoError(t, os.WriteFile(path, []byte("k"), 0o644))
	require.NotNil(t, lastKernel(path))
	require.NoError(t, os.Chmod(base, 0o777))
	must.Fail(CacheDir("kernels", "x"))(t, syscall.EPERM)
}

// TestLibraryPath: the linker looks for an added program's libraries where it
// does for the caller, and the guest's does so, too.
func TestLibraryPath(t *testing.T) {
	before := must.Get(SharedLibraries("/bin/sh"))(t)
	dir := t.TempDir()
	own := ""
	for _, l := range before {
		if name := filepath.Base(l); name == "libc.so.6" {
			data := must.Get(os.ReadFile(l))(t)
			own = filepath.Join(dir, name)
			require.NoError(t, os.WriteFile(own, data, 0o755))
		}
	}
	if own == "" {
		t.Skip("/bin/sh has no libc.so.6; run it on Debian")
	}
	t.Setenv("LD_LIBRARY_PATH", "/nowhere:"+dir)
	after := must.Get(SharedLibraries("/bin/sh"))(t)
	require.Contains(t, after, own)
	c := Config{Nodes: 1, Env: []string{"A=b"}}
	require.NotContains(t, c.nodeEnv(0), "LD_LIBRARY_PATH=/nowhere:"+dir)
	c.Add = []Add{{Host: "/bin/sh"}}
	env := c.nodeEnv(0)
	require.Contains(t, env, "LD_LIBRARY_PATH=/nowhere:"+dir)
	require.Equal(t, "A=b", env[len(env)-1], "the user's own come last")
}
