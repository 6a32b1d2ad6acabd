//go:build unix

package privatefile

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

const create = os.O_WRONLY | os.O_CREATE

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Mode()
}

// A new file is the user's alone whatever the umask; the mode of one that
// exists is the user's choice.
func TestMode(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	dir := t.TempDir()
	made := filepath.Join(dir, "made")
	f, err := Open(made, create)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, fs.FileMode(0o600), mode(t, made))

	shared := filepath.Join(dir, "shared")
	require.NoError(t, os.WriteFile(shared, nil, 0o640))
	f, err = Open(shared, create)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, fs.FileMode(0o640), mode(t, shared))
}

// TestSymlink: Open neither opens nor makes the file that a symbolic link
// names. It follows links on the way to the last name, as os.OpenFile does.
func TestSymlink(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	require.NoError(t, os.WriteFile(victim, []byte("precious"), 0o600))
	for to, name := range map[string]string{victim: "to a file", filepath.Join(dir, "nothing"): "to nothing"} {
		link := filepath.Join(dir, name)
		require.NoError(t, os.Symlink(to, link))
		_, err := Open(link, create|os.O_TRUNC)
		require.ErrorIs(t, err, syscall.ELOOP, name)
		require.ErrorContains(t, err, link)
		require.ErrorContains(t, err, "symbolic link")
	}
	require.NoFileExists(t, filepath.Join(dir, "nothing"))
	text, err := os.ReadFile(victim)
	require.NoError(t, err)
	require.Equal(t, "precious", string(text))

	require.NoError(t, os.Symlink(dir, filepath.Join(dir, "here")))
	f, err := Open(filepath.Join(dir, "here", "new"), create)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// A shell's >(program) names a descriptor, which is a symbolic link on Linux.
func TestDescriptor(t *testing.T) {
	if _, err := os.Stat("/dev/fd"); err != nil {
		t.Skip("no /dev/fd; run it on Linux with /proc mounted: ", err)
	}
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	f, err := Open("/dev/fd/"+strconv.Itoa(int(w.Fd())), os.O_WRONLY)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	_, err = f.WriteString("through")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "through", string(text))
}
