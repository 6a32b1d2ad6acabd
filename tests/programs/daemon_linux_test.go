//go:build amd64 || arm64

package programs

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/planted"
	"github.com/rdmashim/rdmashim/tests/must"
)

// TestDaemon: a tree stays as long as its process lives, or a child of it,
// whatever descriptors it closes, and no process has its name in its arguments.
// The next program's end removes it.
func TestDaemon(t *testing.T) {
	needs(t)
	gone := ownRuns(t)
	device, _ := newDevice()
	cmd := command(t, device, compile(t, "daemon"))
	cmd.Stderr = os.Stderr
	in := must.Get(cmd.StdinPipe())(t)
	out, w, err := os.Pipe()
	require.NoError(t, err)
	defer out.Close()
	cmd.Stdout = w
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	lines := bufio.NewScanner(out)
	next := func() string {
		must.Get(in.Write([]byte("\n")))(t)
		require.True(t, lines.Scan())
		start(t, device, "true").ends(0) // its end sweeps
		require.NoError(t, planted.Sweep("OTHER"))
		return lines.Text()
	}
	tree := next()
	require.DirExists(t, tree)
	arguments := must.Get(filepath.Glob("/proc/[0-9]*/cmdline"))(t)
	for _, file := range arguments {
		text, _ := os.ReadFile(file)
		require.NotContains(t, string(text), filepath.Base(strings.TrimSuffix(tree, "/sys/class/infiniband/rxe0")))
	}
	require.Equal(t, "child", next())
	ended := must.Get(cmd.Process.Wait())(t)
	require.False(t, ended.Exited()) // it was killed
	require.NoError(t, planted.Sweep("OTHER"))
	require.DirExists(t, tree)
	must.Get(in.Write([]byte("\n")))(t)
	require.False(t, lines.Scan()) // the child has ended
	start(t, device, "true").ends(0)
	gone()
	require.NoDirExists(t, tree)
}
