package child

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// Helper is a helper process.
type Helper struct {
	*exec.Cmd
	In  io.Closer     // whose end ends the helper
	Out *bufio.Reader // its standard output
}

// Start starts the test binary with env, NAME=VALUE, added to its environment,
// and with args. Its standard error is the test's. The test's end kills it.
func Start(t testing.TB, env string, args ...string) Helper {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), env)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return Helper{cmd, in, bufio.NewReader(out)}
}
