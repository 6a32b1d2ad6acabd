package echo

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

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/uapi/qmux"
)

// fails runs a command that ends with a status and one line.
func fails(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	o := clitest.RunTool(t, append([]string{"echo"}, args...)...)
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
	_, key := certificate(t)
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"server --over udp", 2, `--over "udp": want rdma, tcp, qmux, quic`},
		{"server --over qmux --on quic", 2, `--on "quic": want rdma, tcp`},
		{"server --on tcp", 2, "--on is for --over qmux"},
		{"server --over quic", 2, "QUIC is always encrypted"},
		{"server --over quic --insecure --listen localhost:1", 2, "literal ADDR:PORT"},
		{"server --over tcp --listen localhost:", 2, "want HOST:PORT or PORT"},
		{"server --listen nonsense", 1, "nonsense"},
		{"server --tls", 2, "TLS wants --cert and --key, or --insecure"},
		{"server --insecure --cert x --key y", 2, "choose"},
		{"server --cert /nonexistent --key /nonexistent", 1, "--cert, --key: open /nonexistent"},
		{"server --listen 0 --max-clients 0", 2, "--max-clients 0"},
		{"server --drain -1s", 2, "a time is not negative"},
		{"server x", 2, "takes no arguments"},
		{"client", 2, "needs the HOST"},
		{"client -S 0 127.0.0.1", 2, "1 … 65536"},
		{"client --streams -1 127.0.0.1", 2, "no negative"},
		{"client --uni 127.0.0.1", 2, "--uni is for --over qmux"},
		{"client --datagrams 1 127.0.0.1", 2, "--datagrams is for --over qmux or quic"},
		{"client --ring 100000 127.0.0.1", 2, "power of two"},
		{"client 127.0.0.1 --ca /nonexistent", 1, "--ca: open /nonexistent"},
		{"client 127.0.0.1 --ca " + key, 1, "holds no certificate in PEM"},
	} {
		fails(t, c.code, c.want, strings.Fields(c.args)...)
	}
}

// refusing is an address of TCP without a listener.
func refusing(t *testing.T) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

// TestRefused: no server, a server of another protocol, and one that does not
// agree on TLS.
func TestRefused(t *testing.T) {
	t.Parallel()
	at := refusing(t)
	for _, over := range []string{overTCP, overRDMA, overQMuxTCP} {
		fails(t, 1, "(is 'rdmashim echo server' running there?)", tool("client " + at + " " + over)[1:]...)
	}
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	client := func(at, flags string) []string { return tool("client " + at + " " + overQMuxTCP + " " + flags)[1:] }
	at = web.Listener.Addr().String()
	fails(t, 1, "does not speak QMux: it begins with \"HTTP/1.1 400 Bad", client(at, "")...)
	fails(t, 1, "TLS: tls: first record does not look like a TLS handshake", client(at, "--insecure")...)

	cert, key := certificate(t)
	s := start(t, overQMuxTCP, "--cert", cert, "--key", key)
	fails(t, 1, "no application protocol", client(s.Addr, "--insecure --alpn h3")...)
	fails(t, 1, "x509: ", client(s.Addr, "--tls")...)
	fails(t, 1, "not localhost2", client(s.Addr, "--server-name localhost2 --ca "+cert)...)
	fails(t, 1, "before it spoke: it may not speak QMux, or want TLS (--tls)", client(s.Addr, "")...)
	for range 4 {
		require.Equal(t, "failed", s.Connection().End)
	}
	s.Stop()
}

// TestForeignClient: a client that speaks HTTP, and one that says nothing and
// leaves.
func TestForeignClient(t *testing.T) {
	t.Parallel()
	s := start(t, overQMuxTCP)
	web := must.Get(net.Dial("tcp", s.Addr))(t)
	must.Get(io.WriteString(web, "GET / HTTP/1.1\r\n\r\n"))(t)
	c := s.Connection()
	require.NoError(t, web.Close())
	require.Equal(t, "failed", c.End)
	require.Contains(t, c.Error, `does not speak QMux: it begins with "GET / HTTP/1.1`)
	silent := must.Get(net.Dial("tcp", s.Addr))(t)
	require.NoError(t, silent.Close())
	require.NotEqual(t, "closed", s.Connection().End)
	clitest.RunTool(t, tool("client --bytes 10 "+s.Addr+" "+overQMuxTCP)...).Well(t)
	total, _ := s.Total()
	require.Equal(t, []int64{3, 2}, []int64{total.Connections, total.Broken})
}

// TestCloseWithACode: a client that closes with a code of its own did not fail,
// also when it does so at once.
func TestCloseWithACode(t *testing.T) {
	t.Parallel()
	s := start(t, overQMuxTCP)
	for _, says := range []string{"", "hello"} {
		c := must.Get(net.Dial("tcp", s.Addr))(t)
		q := must.Get(qmux.Client(c, &qmux.Config{}))(t)
		if says != "" {
			stream := must.Get(q.OpenStreamSync(t.Context()))(t)
			must.Get(io.WriteString(stream, says))(t)
			must.Get(io.ReadFull(stream, make([]byte, len(says))))(t)
		}
		require.NoError(t, q.CloseWithError(42, "enough\nof it"))
		ended := s.Connection()
		require.Equal(t, []any{c.LocalAddr().String(), "closed", uint64(42), "enough\nof it", ""},
			[]any{ended.Client, ended.End, ended.Code, ended.Reason, ended.Error})
		require.Regexp(t, ` s: closed by the peer with code 42: enough; of it$`, ended.String())
	}
	total, stderr := s.Total()
	require.Zero(t, total.Broken)
	require.Empty(t, stderr)
}

// TestKill: a server that is killed fails its client with one line.
func TestKill(t *testing.T) {
	t.Parallel()
	for _, over := range []string{overRDMA, overQMux} {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			s := start(t, over)
			file := filepath.Join(t.TempDir(), "pcap")
			client := clitest.Tool(t, tool("client --streams 1000000 --count 1 --bytes 100 "+s.Addr+" "+over, "--device", "soft?pcap="+file)...)
			var stderr strings.Builder
			client.Stderr = &stderr
			require.NoError(t, client.Start())
			awaitFile(t, file, 100<<10) // it is under way
			require.NoError(t, s.Cmd.Process.Kill())
			require.Error(t, client.Wait())
			require.Equal(t, 1, client.ProcessState.ExitCode())
			require.Equal(t, 1, strings.Count(stderr.String(), "\n"), stderr.String())
			require.Regexp(t, `^rdmashim: stream \d+ of 1000000: `, stderr.String())
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
// others, and give theirs back before the idle time of those that have spoken.
func TestStrangers(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // the address is no other system's
	}
	t.Parallel()
	silent := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 98, 0, 1)}}
	for _, over := range []string{overTCP, overQMuxTCP, overQMuxTCP + insecureFlag} {
		s := start(t, over, "--max-clients", "4", "--silence", "0")
		for i := range 3 {
			c, err := silent.Dial("tcp", s.Addr)
			if err == nil {
				defer c.Close()
			}
			if i < 2 {
				require.NoError(t, err)
				continue
			}
			if err == nil { // else the server was quicker than connect
				_, err = c.Read(make([]byte, 1))
			}
			require.ErrorIs(t, err, syscall.ECONNRESET)
		}
		clitest.RunTool(t, tool("client --bytes 10 "+s.Addr+" "+over)...).Well(t)

		s = start(t, over, "--silence", "100ms")
		c := must.Get(silent.Dial("tcp", s.Addr))(t)
		defer c.Close()
		require.Contains(t, s.Connection().Error, "--silence")
	}
}
