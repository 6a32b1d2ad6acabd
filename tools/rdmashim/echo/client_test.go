package echo

import (
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
)

// TestClient: messages, streams and datagrams come back over all that carries
// them, plain and TLS, and when packets get lost; both ends count alike.
func TestClient(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	for _, c := range []struct{ name, over, network, server, client string }{
		{"rdma", overRDMA, "rdma", "", ""},
		{"rdma, loss", overRDMA, "rdma", "", "--device soft?loss=2%&seed=1"},
		{"rdma, TLS", overRDMA, "rdma", insecureFlag, insecureFlag},
		{"tcp", overTCP, "tcp", "", ""},
		{"qmux", overQMux, "rdma", "", ""},
		{"qmux, loss", overQMux, "rdma", "", "--device soft?loss=2%&seed=1"},
		{"qmux, TLS", overQMux, "rdma", insecureFlag, insecureFlag},
		{"qmux on tcp", overQMuxTCP, "tcp", "", ""},
		{"qmux on tcp, TLS", overQMuxTCP, "tcp", "--alpn mine --cert " + cert + " --key " + key, "--alpn mine --server-name localhost --ca " + cert},
		{"quic, TLS", "--over quic", "udp", "--cert " + cert + " --key " + key, "--server-name localhost --ca " + cert},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			over, _, _ := strings.Cut(strings.TrimPrefix(c.over, "--over "), " ")
			many := over == "qmux" || over == "quic" // streams on one connection
			s := start(t, c.over, strings.Fields(c.server)...)
			run := func(more string) Report {
				t.Helper()
				o := clitest.RunTool(t, tool("client --json --count 10 --size 100 "+s.Addr+" "+c.over+" "+c.client+" "+more)...)
				r := clitest.Decode[Report](t, o.Well(t))
				require.Equal(t, []any{s.Addr, over, c.network, strings.Contains(c.name, "TLS"), 10, 100}, []any{r.Server, r.Over, r.Network, r.TLS, r.Count, r.Size})
				require.Positive(t, r.P50)
				require.GreaterOrEqual(t, r.P99, r.P50)
				require.Equal(t, over == "qmux", r.RecordsSent > 0)
				return r
			}
			counts := func(streams int, bytes int64) {
				t.Helper()
				var there, back, on int64
				for range map[bool]int{true: 1, false: max(streams, 1)}[many] {
					n := s.Connection()
					require.Equal(t, "closed", n.End, n.Error)
					there, back, on = there+n.There, back+n.Back, on+n.Streams
				}
				require.Equal(t, []int64{1000 + bytes, 1000 + bytes}, []int64{there, back})
				if many {
					require.EqualValues(t, max(streams, 1), on)
				}
			}
			streams := map[bool]int{true: 2*atOnce + 2, false: 12}[many]
			r := run("--bytes 50000 --streams " + strconv.Itoa(streams))
			require.Equal(t, []any{streams, int64(50_000)}, []any{r.Streams, r.Bytes})
			counts(streams, int64(streams)*50_000)
			run("--streams 0")
			counts(0, 0)
			if many {
				r = run("--datagrams 100 --streams 0")
				require.Equal(t, 100, r.Datagrams)
				n := s.Connection()
				if over == "qmux" { // QUIC may lose one on its way
					require.Equal(t, []int64{100, 100}, []int64{int64(r.DatagramsBack), n.Datagrams})
				}
			}
			if over == "qmux" {
				r = run("--uni --streams 3 --bytes 50000")
				require.True(t, r.OneWay)
				n := s.Connection()
				require.Equal(t, []int64{1, 3, 151_000, 1000}, []int64{n.Streams, n.UniStreams, n.There, n.Back})
			}
			total, _ := s.Total()
			require.Zero(t, total.Broken)
		})
	}
}

// TestText: the output for people.
func TestText(t *testing.T) {
	t.Parallel()
	s := start(t, overQMuxTCP)
	o := clitest.RunTool(t, tool("client --streams 2 --bytes 1M --datagrams 1 "+s.Addr+" "+overQMuxTCP)...)
	require.Zero(t, o.Code, o.Stderr)
	require.Empty(t, o.Stderr)
	require.Regexp(t, `\A127\.0\.0\.1:\d+ over qmux on tcp: 1000 round trips of 64 B: p50 [\d.]+ µs, p99 [\d.]+ µs
2 streams of 1.0 MiB there and back in [\d.]+ s: [\d.]+ .iB/s, every byte right
1 datagrams, 1 came back
\d+ records sent, \d+ received
\z`, o.Stdout)
	c := s.Connection()
	require.Regexp(t, `^127\.0\.0\.1:\d+: 2161152 bytes there, 2161152 back, 2 streams, 0 one-way, 1 datagrams in [\d.]+ s: closed$`, c.String())
	total, _ := s.Total()
	require.Equal(t, "1 connections, 0 broken: 2.1 MiB there, 2.1 MiB back, 2 streams, 0 one-way, 1 datagrams", total.String())
}

// TestAtDevice: a server listens on the address of its device, which it shares
// with another, and an error names the variable that named the device.
func TestAtDevice(t *testing.T) {
	t.Parallel()
	host := clitest.Host()
	device := "soft:" + host + "?loss=1%"
	first := startCommand(t, tool("server --listen 0 -d "+device)...)
	second := startCommand(t, "proxy", "-d", device, "--listen", "rdma:0", "--to", "rdma:"+first.Addr)
	for _, s := range []*clitest.Server{first, second} {
		require.Equal(t, host, netip.MustParseAddrPort(s.Addr).Addr().String())
		clitest.RunTool(t, tool("client -C 10 --bytes 64K "+s.Addr)...).Well(t)
	}
	for _, args := range []string{"echo server", "proxy --listen rdma:0 --to tcp:1", "echo client 127.0.0.1"} {
		cmd := clitest.Tool(t, strings.Fields(args)...)
		cmd.Env = append(cmd.Env, "RDMASHIM_DEVICE=soft?los=1%")
		o := clitest.Finish(t, cmd)
		require.Equal(t, 1, o.Code)
		require.Contains(t, o.Stderr, "RDMASHIM_DEVICE=soft?los=1%", args)
	}
}

// origin is a server of the test, which closes the connection that serve
// leaves.
func origin(t *testing.T, serve func(c *net.TCPConn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		serve(c.(*net.TCPConn))
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-served
	})
	return l.Addr().String()
}

// TestFinds: a client tells what of its bytes did not come back, or came back
// as others.
func TestFinds(t *testing.T) {
	t.Parallel()
	for want, serve := range map[string]func(c *net.TCPConn){
		"stream 1 of 1: byte 70000 came back as ": func(c *net.TCPConn) {
			_, _ = io.CopyN(c, c, 70_000)
			b := make([]byte, 1)
			_, _ = io.ReadFull(c, b)
			_, _ = c.Write([]byte{b[0] ^ 1})
			_, _ = io.Copy(c, c)
		},
		"byte 70000 did not come back: EOF": func(c *net.TCPConn) {
			_, _ = io.CopyN(c, c, 70_000)
			_ = c.CloseWrite()
			_, _ = io.Copy(io.Discard, c)
		},
		"behind 100000 bytes there comes no end of data": func(c *net.TCPConn) {
			_, _ = io.Copy(c, c)
			_, _ = c.Write([]byte("more"))
		},
		"message 0: byte 0 came back as 0x0": func(c *net.TCPConn) {
			_, _ = c.Write(make([]byte, 4))
			_, err := io.Copy(io.Discard, c)
			assert.ErrorIs(t, err, syscall.ECONNRESET)
		},
	} {
		count := "0"
		if strings.HasPrefix(want, "message") {
			count = "1"
		}
		o := clitest.RunTool(t, tool("client --over tcp --bytes 100000 --count "+count, origin(t, serve))...)
		require.Equal(t, 1, o.Code)
		require.Empty(t, o.Stdout)
		require.Contains(t, o.Stderr, want)
		require.Equal(t, 1, strings.Count(o.Stderr, "\n"), o.Stderr)
	}
}
