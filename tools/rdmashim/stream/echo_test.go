package stream

import (
	"encoding/json"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
)

// TestEcho over RDMA, also when packets get lost, and over TCP; of generated
// bytes and of standard input.
func TestEcho(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, flags, network string }{
		{"rdma", "", "rdma"}, {"tcp", "--tcp", "tcp"}, {"loss", "--device soft?loss=2%&seed=1", "rdma"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := []string{"echo", "server", "--listen", ownAddr()}
			if c.network == "tcp" {
				server = append(server, "--tcp")
			}
			s := start(t, server...)
			args := append([]string{"echo", "client", s.addr, "--count", "10", "--size", "100", "--json"}, strings.Fields(c.flags)...)
			check := func(o clitest.Outcome, bytes int64) {
				t.Helper()
				require.Zero(t, o.Code, o.Stderr)
				var r EchoReport
				require.NoError(t, json.Unmarshal([]byte(o.Stdout), &r))
				require.Equal(t, []any{c.network, s.addr, 10, 100, bytes}, []any{r.Network, r.Server, r.Count, r.Size, r.Bytes})
				require.Positive(t, r.P50)
				require.GreaterOrEqual(t, r.P99, r.P50)
				n := s.connection()
				require.Equal(t, "closed", n.End, n.Error)
				require.Equal(t, []int64{1000 + bytes, 1000 + bytes}, []int64{n.There, n.Back})
			}
			check(clitest.RunTool(t, append(args, "--bytes", "300000")...), 300_000)
			cmd := clitest.Tool(t, append(args, "--stdin")...)
			cmd.Stdin = strings.NewReader(strings.Repeat("standard input\n", 10_000))
			check(clitest.Finish(t, cmd), 150_000)
			check(clitest.RunTool(t, append(args, "--bytes", "0")...), 0)
		})
	}
}

// TestEchoAtDevice: a server listens on the address of its device, which it
// shares with another, and an error names the variable that named the device.
func TestEchoAtDevice(t *testing.T) {
	t.Parallel()
	host, _, _ := net.SplitHostPort(ownAddr())
	device := "soft:" + host + "?loss=1%"
	first := start(t, "echo", "server", "-d", device, "--listen", "0")
	second := start(t, "proxy", "-d", device, "--listen", "rdma:0", "--to", "rdma:"+first.addr)
	for _, s := range []*process{first, second} {
		require.Equal(t, host, netip.MustParseAddrPort(s.addr).Addr().String())
		o := clitest.RunTool(t, "echo", "client", s.addr, "-C", "10", "--bytes", "64K")
		require.Zero(t, o.Code, o.Stderr)
	}
	for _, args := range []string{"echo server", "proxy --listen rdma:0 --to tcp:1", "echo client 127.0.0.1"} {
		cmd := clitest.Tool(t, strings.Fields(args)...)
		cmd.Env = append(cmd.Env, "RDMASHIM_DEVICE=soft?los=1%")
		o := clitest.Finish(t, cmd)
		require.Equal(t, 1, o.Code)
		require.Contains(t, o.Stderr, "RDMASHIM_DEVICE=soft?los=1%", args)
	}
}

// TestEchoFinds: a client tells what of its bytes did not come back, or came
// back as others.
func TestEchoFinds(t *testing.T) {
	t.Parallel()
	for want, serve := range map[string]func(c *net.TCPConn){
		"byte 70000 came back as ": func(c *net.TCPConn) {
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
		"message 0: byte 3 came back as ": func(c *net.TCPConn) {
			_, _ = c.Write(make([]byte, 4))
			_, _ = io.Copy(io.Discard, c)
		},
	} {
		count := "0"
		if strings.HasPrefix(want, "message") {
			count, want = "1", "came back as 0x0"
		}
		o := clitest.RunTool(t, "echo", "client", "--tcp", "--count", count, "--bytes", "100000", origin(t, serve))
		require.Equal(t, 1, o.Code)
		require.Empty(t, o.Stdout)
		require.Contains(t, o.Stderr, want)
		require.Equal(t, 1, strings.Count(o.Stderr, "\n"), o.Stderr)
	}
}
