package qmux

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/uapi/qmux"
)

// fails runs a command that ends with a status and one line.
func fails(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	o := clitest.RunTool(t, append([]string{"qmux"}, args...)...)
	require.Equal(t, code, o.Code, "%s: %s", args, o.Stderr)
	require.Empty(t, o.Stdout)
	said := ""
	for line := range strings.Lines(o.Stderr) {
		if !strings.HasPrefix(line, "rdmashim: --insecure: ") {
			said += line
		}
	}
	require.Contains(t, said, want, args)
	require.Equal(t, 1, strings.Count(said, "\n"), said)
}

func TestUsage(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"server --tcp 1 --rdma 2", 2, "name two places"},
		{"server --tcp localhost:", 2, "want HOST:PORT or PORT"},
		{"server --tls", 2, "TLS wants --cert and --key, or --insecure"},
		{"server --insecure --cert x --key y", 2, "choose"},
		{"server --cert /nonexistent --key /nonexistent", 1, "--cert, --key: open /nonexistent"},
		{"server --tcp 0 --max-clients 0", 2, "--max-clients 0"},
		{"server x", 2, "takes no arguments"},
		{"client --tls --alpn=", 2, "--alpn is empty"},
		{"client --ca /nonexistent", 1, "--ca: open /nonexistent"},
		{"client --ca " + key, 1, "holds no certificate in PEM"},
		{"client --streams -1", 2, "none is negative"},
		{"client --record /nonexistent/file --tcp 1", 1, "--record: open /nonexistent/file"},
		{"cat --listen --cert " + cert + " --key " + cert + " --tcp 0", 1, "--cert, --key: tls: "},
	} {
		fails(t, c.code, c.want, strings.Fields(c.args)...)
	}
}

// refusing is an address of TCP without a listener.
func refusing(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

// TestRefused: no server, a server of another protocol, and one that does not
// agree on TLS.
func TestRefused(t *testing.T) {
	t.Parallel()
	fails(t, 1, "connection refused (is 'rdmashim qmux server' running there?)", "client", "--tcp", refusing(t))

	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	at := web.Listener.Addr().String()
	fails(t, 1, "does not speak QMux: it begins with \"HTTP/1.1 400 Bad", "client", "--tcp", at)
	fails(t, 1, "TLS: tls: first record does not look like a TLS handshake", "client", "--tcp", at, "--insecure")

	cert, key := certificate(t)
	s := start(t, "tcp", "--cert", cert, "--key", key)
	fails(t, 1, "no application protocol", "client", "--tcp", s.addr, "--insecure", "--alpn", "h3")
	fails(t, 1, "x509: ", "client", "--tcp", s.addr, "--tls")
	fails(t, 1, "not localhost2", "client", "--tcp", s.addr, "--ca", cert, "--server-name", "localhost2")
	fails(t, 1, "before it spoke: it may not speak QMux, or want TLS (--tls)", "client", "--tcp", s.addr)
	for range 4 {
		require.Equal(t, "failed", s.connection().End)
	}
	s.stop()
}

// TestForeignClient: a client that speaks HTTP, and one that says nothing and
// leaves.
func TestForeignClient(t *testing.T) {
	t.Parallel()
	s := start(t, "tcp")
	web, err := net.Dial("tcp", s.addr)
	require.NoError(t, err)
	_, err = io.WriteString(web, "GET / HTTP/1.1\r\n\r\n")
	require.NoError(t, err)
	c := s.connection()
	require.NoError(t, web.Close())
	require.Equal(t, "failed", c.End)
	require.Contains(t, c.Error, `does not speak QMux: it begins with "GET / HTTP/1.1`)
	silent, err := net.Dial("tcp", s.addr)
	require.NoError(t, err)
	require.NoError(t, silent.Close())
	require.Equal(t, "failed", s.connection().End)
	o := clitest.RunTool(t, "qmux", "client", "--tcp", s.addr, "--size", "10")
	require.Zero(t, o.Code, o.Stderr)
	require.Equal(t, []int64{3, 2}, func(n Total) []int64 { return []int64{n.Connections, n.Failed} }(s.stop()))
}

// TestCloseWithACode: a client that closes with a code of its own did not fail,
// also when it does so at once.
func TestCloseWithACode(t *testing.T) {
	t.Parallel()
	s := start(t, "tcp")
	for _, says := range []string{"", "hello"} {
		c, err := net.Dial("tcp", s.addr)
		require.NoError(t, err)
		q, err := qmux.Client(c, &qmux.Config{})
		require.NoError(t, err)
		if says != "" {
			stream, err := q.OpenStreamSync(t.Context())
			require.NoError(t, err)
			_, err = io.WriteString(stream, says)
			require.NoError(t, err)
			_, err = io.ReadFull(stream, make([]byte, len(says)))
			require.NoError(t, err)
		}
		require.NoError(t, q.CloseWithError(42, "enough\nof it"))
		ended := s.connection()
		require.Equal(t, Connection{
			Client: c.LocalAddr().String(), End: "closed", Code: 42, Reason: "enough\nof it",
			Streams: ended.Streams, Received: ended.Received, Sent: ended.Sent, Seconds: ended.Seconds,
		}, ended)
		require.Regexp(t, ` s: closed by the peer with code 42: enough; of it$`, ended.String())
	}
	require.Zero(t, s.stop().Failed)
	require.Empty(t, s.stderr.String())
}

// TestKill: a server that is killed fails its client with one line; a client
// that is killed leaves the server to others.
func TestKill(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"tcp", "rdma"} {
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			s := start(t, network)
			victim := clitest.Tool(t, "qmux", "cat", "--"+network, s.addr)
			in, err := victim.StdinPipe()
			require.NoError(t, err)
			out, err := victim.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, victim.Start())
			_, err = io.WriteString(in, "hello")
			require.NoError(t, err)
			_, err = io.ReadFull(out, make([]byte, 5)) // it is under way
			require.NoError(t, err)
			require.NoError(t, victim.Process.Kill())
			_ = victim.Wait()
			if network == "tcp" { // of RDMA's the server learns later
				require.Equal(t, "failed", s.connection().End)
			}

			client := clitest.Tool(t, "qmux", "client", "--"+network, s.addr, "--streams", "1000000")
			file := filepath.Join(t.TempDir(), "record")
			client.Args = append(client.Args, "--size", "100", "--record", file)
			var stderr strings.Builder
			client.Stderr = &stderr
			require.NoError(t, client.Start())
			awaitFile(t, file, 100<<10)
			require.NoError(t, s.cmd.Process.Kill())
			require.Error(t, client.Wait())
			require.Equal(t, 1, client.ProcessState.ExitCode())
			require.Equal(t, 1, strings.Count(stderr.String(), "\n"), stderr.String())
			require.Regexp(t, `^rdmashim: (round trip \d+|stream \d+ of 1000000): `, stderr.String())
		})
	}
}

// awaitFile waits until a file has a size.
func awaitFile(t *testing.T, path string, size int64) {
	t.Helper()
	require.Eventually(t, func() bool {
		info, err := os.Stat(path)
		return err == nil && info.Size() >= size
	}, time.Minute, 10*time.Millisecond)
}

// TestStrangers: connections of one address that say nothing leave seats for
// others.
func TestStrangers(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // the address is no other system's
	}
	t.Parallel()
	s := start(t, "tcp", "--max-clients", "4")
	silent := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 98, 0, 1)}}
	for i := range 3 {
		c, err := silent.Dial("tcp", s.addr)
		require.NoError(t, err)
		defer c.Close()
		if i == 2 {
			_, err = c.Read(make([]byte, 1))
			require.ErrorIs(t, err, syscall.ECONNRESET)
		}
	}
	o := clitest.RunTool(t, "qmux", "client", "--tcp", s.addr, "--size", "10")
	require.Zero(t, o.Code, o.Stderr)
}
