package preload

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestForeignLibraries: libraries that another user could have written are not
// loaded.
func TestForeignLibraries(t *testing.T) {
	fresh := func(t *testing.T) (cache string, l Libraries) {
		cache = filepath.Join(t.TempDir(), "rdmashim", "preload")
		key, err := programKey()
		require.NoError(t, err)
		l = LibrariesIn(filepath.Join(cache, key))
		require.NoError(t, os.MkdirAll(filepath.Dir(l.Stub), 0o700))
		for _, file := range []string{l.Stub, l.Kernel} {
			require.NoError(t, os.WriteFile(file, nil, 0o700))
		}
		return cache, l
	}
	cache, l := fresh(t)
	var says bytes.Buffer
	found, err := findIn(cache, &says)
	require.NoError(t, err)
	require.Equal(t, l, found)
	require.Empty(t, says.String())
	for i := range 5 {
		for how, spoil := range map[string]func(t *testing.T, path string) error{
			"others may write": func(_ *testing.T, path string) error { return os.Chmod(path, 0o722) },
			"a link": func(t *testing.T, path string) error {
				if err := os.Rename(path, path+"2"); err != nil {
					return err
				}
				return os.Symlink(path+"2", path)
			},
			"another user's": func(t *testing.T, path string) error {
				if os.Geteuid() != 0 {
					t.Skip("only root can give a file away: run the tests as root")
				}
				return os.Chown(path, 65534, 65534)
			},
		} {
			t.Run(strconv.Itoa(i)+" "+how, func(t *testing.T) {
				cache, l := fresh(t)
				path := []string{filepath.Dir(cache), cache, filepath.Dir(l.Stub), l.Stub, l.Kernel}[i]
				require.NoError(t, spoil(t, path))
				_, err := findIn(cache, &says)
				require.ErrorIs(t, err, syscall.EPERM)
				require.ErrorContains(t, err, path)
				require.ErrorContains(t, err, "set XDG_CACHE_HOME")
			})
		}
	}
}
