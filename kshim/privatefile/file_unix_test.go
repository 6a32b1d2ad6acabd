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

	"github.com/rdmashim/rdmashim/tests/must"
)

const create = os.O_WRONLY | os.O_CREATE

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info := must.Get(os.Stat(path))(t)
	return info.Mode()
}

// A new file is the user's alone whatever the umask; the mode of one that
// exists is the user's choice.
func TestMode(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	dir := t.TempDir()
	made := filepath.Join(dir, "made")
	f := must.Get(Open(made, create))(t)
	require.NoError(t, f.Close())
	require.Equal(t, fs.FileMode(0o600), mode(t, made))

	shared := filepath.Join(dir, "shared")
	require.NoError(t, os.WriteFile(shared, nil, 0o640))
	f = must.Get(Open(shared, create))(t)
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
	text := must.Get(os.ReadFile(victim))(t)
	require.Equal(t, "precious", string(text))

	require.NoError(t, os.Symlink(dir, filepath.Join(dir, "here")))
	f := must.Get(Open(filepath.Join(dir, "here", "new"), create))(t)
	require.NoError(t, f.Close())
}

// TestTrap: a file or pipe of another user, and a second name of one of this
// user's, stay as they are, and a pipe needs a reader. A device is nobody's.
func TestTrap(t *testing.T) {
	dir := t.TempDir()
	path, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	require.NoError(t, os.WriteFile(path, []byte("precious"), 0o666))
	require.NoError(t, syscall.Mkfifo(pipe, 0o666))
	for _, p := range []string{path, pipe} {
		info := must.Get(os.Stat(p))(t)
		require.NoError(t, trap(info, os.Geteuid()))
		require.ErrorIs(t, trap(info, os.Geteuid()+1), syscall.EACCES)
	}
	_, err := Open(pipe, os.O_WRONLY|syscall.O_NONBLOCK)
	require.ErrorIs(t, err, syscall.ENXIO)
	require.ErrorContains(t, err, "nobody reads the pipe")
	require.NoError(t, os.Link(path, filepath.Join(dir, "second")))
	for _, flag := range []int{create | os.O_TRUNC, create, os.O_WRONLY} {
		must.Fail(Open(path, flag))(t, syscall.EMLINK)
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "second")))
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(path, 12345, -1))
		_, err := Open(path, create|os.O_TRUNC)
		require.ErrorIs(t, err, syscall.EACCES)
		require.ErrorContains(t, err, "user 12345 made it")
	}
	text := must.Get(os.ReadFile(path))(t)
	require.Equal(t, "precious", string(text))
	info := must.Get(os.Stat(os.DevNull))(t)
	require.NoError(t, trap(info, 12345))
}

// A shell's >(program) names a descriptor, which is a symbolic link on Linux.
func TestDescriptor(t *testing.T) {
	if _, err := os.Stat("/dev/fd"); err != nil {
		t.Skip("no /dev/fd; run it on Linux with /proc mounted: ", err)
	}
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	f := must.Get(Open("/dev/fd/"+strconv.Itoa(int(w.Fd())), os.O_WRONLY))(t)
	require.NoError(t, w.Close())
	must.Get(f.WriteString("through"))(t)
	require.NoError(t, f.Close())
	text := must.Get(io.ReadAll(r))(t)
	require.Equal(t, "through", string(text))
}
