package qmux

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

// listen starts 'qmux cat --listen' and returns where it listens.
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
	for _, c := range []struct{ name, network, flags string }{{"tcp", "tcp", ""}, {"rdma", "rdma", ""}, {"TLS over rdma", "rdma", "--insecure"}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var in [2][]byte
			for i := range in {
				in[i] = make([]byte, size)
				_, _ = rand.NewChaCha8([32]byte{byte(i)}).Read(in[i])
			}
			flags := strings.Fields(c.flags)
			server := clitest.Tool(t, append(append([]string{"qmux", "cat", "--listen"}, place(c.network)...), flags...)...)
			var there bytes.Buffer
			server.Stdin, server.Stdout = bytes.NewReader(in[0]), &there
			addr, _ := listen(t, server)
			client := clitest.Tool(t, append([]string{"qmux", "cat", "--" + c.network, addr}, flags...)...)
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
	s := start(t, "rdma")
	cmd := clitest.Tool(t, "qmux", "cat", "--rdma", s.addr)
	cmd.Stdin = strings.NewReader("hello\n")
	o := clitest.Finish(t, cmd)
	require.Equal(t, clitest.Outcome{Stdout: "hello\n"}, o)
	c := s.connection()
	require.Equal(t, []any{"closed", int64(1), int64(6)}, []any{c.End, c.Streams, c.Received})
}
