package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// exported is a directory as a server that has just started sees it.
func exported(t *testing.T, dir string) *handles {
	root := must.Get(os.OpenRoot(dir))(t)
	t.Cleanup(func() { require.NoError(t, root.Close()) })
	return newHandles(directory{osfs.New(dir, osfs.WithBoundOS()), root})
}

// TestHandles: a handle names its file after it was renamed, and after the
// server was started anew; that of a file that has gone is stale.
func TestHandles(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a/b"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a/b/c"), nil, 0o600))
	h := exported(t, dir)
	root, file := h.ToHandle(nil, nil), h.ToHandle(nil, []string{"a", "b", "c"})
	require.NotEqual(t, root, file)
	find := func(h *handles, handle []byte) []string {
		_, path, err := h.FromHandle(handle)
		require.NoError(t, err)
		return path
	}
	require.Empty(t, find(h, root))
	require.Equal(t, []string{"a", "b", "c"}, find(h, file))
	require.NoError(t, os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "z")))
	require.Equal(t, []string{"z", "b", "c"}, find(h, file))
	require.Equal(t, []string{"z", "b", "c"}, find(exported(t, dir), file))
	require.Empty(t, find(exported(t, dir), root))
	require.NoError(t, os.Remove(filepath.Join(dir, "z/b/c")))
	for _, handle := range [][]byte{file, nil, {1}, make([]byte, handleLen), []byte("\xff\xff\xff\xff\xff\xff\xff\xff")} {
		_, _, err := h.FromHandle(handle)
		require.Error(t, err, "%x", handle)
	}
}

// TestNothingOutside: a link leads the server nowhere.
func TestNothingOutside(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(outside, []byte("secret"), 0o600))
	dir := t.TempDir()
	d := exported(t, dir).directory
	require.NoError(t, d.Symlink(outside, "link"))
	_, err := d.Open("link")
	require.Error(t, err)
	require.Error(t, d.Chmod("link", 0o777))
	_, err = d.Open("../" + filepath.Base(filepath.Dir(outside)) + "/secret")
	require.Error(t, err)
}
