package preload

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/planted"
)

// TestDaemon: a tree stays as long as its process lives, or a child of it,
// whatever descriptors it closes, and no process has its name in its arguments.
// The next program's end removes it.
func TestDaemon(t *testing.T) {
	l := libraries(t)
	gone := ownRuns(t)
	device, _ := newDevice()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", device, compile(t, "daemon"))
	cmd.Env = append(os.Environ(), envStart+"="+l.Stub+":"+l.Kernel)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, w, err := os.Pipe()
	require.NoError(t, err)
	defer out.Close()
	cmd.Stdout = w
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	lines := bufio.NewScanner(out)
	next := func() string {
		_, err := in.Write([]byte("\n"))
		require.NoError(t, err)
		require.True(t, lines.Scan())
		start(t, l, device, "true").ends(0) // its end sweeps
		require.NoError(t, planted.Sweep("OTHER"))
		return lines.Text()
	}
	tree := next()
	require.DirExists(t, tree)
	arguments, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, file := range arguments {
		text, _ := os.ReadFile(file)
		require.NotContains(t, string(text), filepath.Base(strings.TrimSuffix(tree, "/sys/class/infiniband/rxe0")))
	}
	require.Equal(t, "child", next())
	ended, err := cmd.Process.Wait()
	require.NoError(t, err)
	require.False(t, ended.Exited()) // it was killed
	require.NoError(t, planted.Sweep("OTHER"))
	require.DirExists(t, tree)
	_, err = in.Write([]byte("\n"))
	require.NoError(t, err)
	require.False(t, lines.Scan()) // the child has ended
	start(t, l, device, "true").ends(0)
	gone()
	require.NoDirExists(t, tree)
}

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
