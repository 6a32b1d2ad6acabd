package echo

import (
	"bufio"
	"bytes"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"crypto/sha256"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
)

// listen starts 'echo cat --listen' and returns where it listens.
func listen(t *testing.T, cmd *exec.Cmd) (addr string, stderr *bufio.Reader) {
	t.Helper()
	pipe, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	stderr = bufio.NewReader(pipe)
	for {
		line, err := stderr.ReadString('\n')
		require.NoError(t, err, line)
		if at, ok := strings.CutPrefix(strings.TrimSpace(line), cli.ListeningPrefix); ok {
			return at, stderr
		}
	}
}

// TestCat moves bytes both ways at once between two processes.
func TestCat(t *testing.T) {
	t.Parallel()
	size := 16 << 20
	if testing.Short() {
		size = 2 << 20
	}
	for _, over := range []string{overRDMA, overTCP, overQMuxTCP, overQMux + insecureFlag} {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			var in [2][]byte
			for i := range in {
				in[i] = make([]byte, size)
				_, _ = rand.NewChaCha8([32]byte{byte(i)}).Read(in[i])
			}
			server := clitest.Tool(t, tool("cat --listen "+place(over)+" "+over)...)
			var there bytes.Buffer
			server.Stdin, server.Stdout = bytes.NewReader(in[0]), &there
			addr, _ := listen(t, server)
			client := clitest.Tool(t, tool("cat "+addr+" "+over)...)
			client.Stdin = bytes.NewReader(in[1])
			o := clitest.Finish(t, client)
			require.Zero(t, o.Code, o.Stderr)
			require.NoError(t, server.Wait())
			require.Equal(t, sha256.Sum256(in[0]), sha256.Sum256([]byte(o.Stdout)))
			require.Equal(t, sha256.Sum256(in[1]), sha256.Sum256(there.Bytes()))
		})
	}
}

// TestCatEcho: netcat to the server, whose input ends before the answer's end.
func TestCatEcho(t *testing.T) {
	t.Parallel()
	for _, over := range []string{overRDMA, overQMux} {
		s := start(t, over)
		cmd := clitest.Tool(t, tool("cat "+over, s.Addr)...)
		cmd.Stdin = strings.NewReader("hello\n")
		o := clitest.Finish(t, cmd)
		require.Equal(t, clitest.Outcome{Stdout: "hello\n"}, o)
		c := s.Connection()
		require.Equal(t, []any{"closed", int64(6)}, []any{c.End, c.There})
	}
}
