//go:build linux && (amd64 || arm64)

package broker

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/must"
)

// TestMemoryOfOrphans: the memory of a process can be opened at each moment of
// its parent's end.
func TestMemoryOfOrphans(t *testing.T) {
	require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	defer func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) }()
	for range amount.Of(20, 1000) {
		parent := exec.Command("sh", "-c", "cat <&3 & echo $!; wait")
		end, input, err := os.Pipe()
		require.NoError(t, err)
		parent.ExtraFiles = append(parent.ExtraFiles, end)
		out := must.Get(parent.StdoutPipe())(t)
		require.NoError(t, parent.Start())
		var child int
		must.Get(fmt.Sscan(must.Get(bufio.NewReader(out).ReadString('\n'))(t), &child))(t)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = parent.Process.Kill()
			_ = parent.Wait()
		}()
		for over := false; !over; {
			select {
			case <-ended:
				over = true
			default:
			}
			mem, err := openMemory(child)
			require.NoError(t, err)
			mem.Close()
		}
		require.NoError(t, input.Close())
		require.NoError(t, end.Close())
		reap(child)
	}
}
