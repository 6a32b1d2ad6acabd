package stream

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
)

// TestProxyServerEndsFirst: the server's data ends, and the client's goes on.
func TestProxyServerEndsFirst(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	near, _ := pair(t, origin(t, func(c *net.TCPConn) {
		_, _ = io.WriteString(c, "first")
		_ = c.CloseWrite()
		b, _ := io.ReadAll(c)
		got <- string(b)
	}))
	c := dial(t, near.Addr)
	b := must.Get(io.ReadAll(c))(t)
	require.Equal(t, "first", string(b))
	must.Get(io.WriteString(c, "second"))(t)
	require.NoError(t, c.Close())
	require.Equal(t, "second", <-got)
	require.Equal(t, "closed", near.Connection().End)
}

// TestProxyReset: a reset of either end reaches the other one as a reset.
func TestProxyReset(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"client", "server"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			seen := make(chan error, 1)
			near, far := pair(t, origin(t, func(c *net.TCPConn) {
				_, _ = io.WriteString(c, "hello")
				if who == "server" {
					_, _ = io.ReadFull(c, make([]byte, 5))
					_ = c.SetLinger(0)
					return
				}
				_, err := io.Copy(io.Discard, c)
				seen <- err
			}))
			c := dial(t, near.Addr)
			must.Get(io.ReadFull(c, make([]byte, 5)))(t)
			must.Get(io.WriteString(c, "hello"))(t)
			var err error
			if who == "client" {
				require.NoError(t, c.SetLinger(0))
				require.NoError(t, c.Close())
				err = <-seen
			} else {
				_, err = io.Copy(io.Discard, c)
			}
			require.ErrorIs(t, err, syscall.ECONNRESET)
			for _, p := range []*clitest.Server{near, far} {
				r := p.Connection()
				require.Equal(t, "reset", r.End, r.Error)
				total, stderr := p.Total()
				require.EqualValues(t, 1, total.Broken)
				require.Empty(t, stderr)
			}
		})
	}
}

// TestProxyNoTarget: a client whose target does not answer is reset, and
// standard error has a line.
func TestProxyNoTarget(t *testing.T) {
	t.Parallel()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	require.NoError(t, l.Close())
	near, far := pair(t, l.Addr().String())
	refused(t, near.Addr)
	require.Equal(t, "reset", near.Connection().End)
	require.Equal(t, "failed", far.Connection().End)
	_, stderr := far.Total()
	require.Regexp(t, `\Ardmashim: client [^\n]*: the target: [^\n]*connection refused\n\z`, stderr)
	refused(t, near.Addr) // the far proxy has gone, too
	require.Equal(t, "failed", near.Connection().End)
	_, stderr = near.Total()
	require.Regexp(t, `\Ardmashim: client [^\n]*: the target: dial rdma [^\n]*\n\z`, stderr)
}

// TestProxyKilled: the ends that are left see the connection break when either
// proxy is killed.
func TestProxyKilled(t *testing.T) {
	t.Parallel()
	for _, victim := range []string{"near", "far"} {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			ended := make(chan error, 1)
			flood := func(c *net.TCPConn) error { // so that silence is noticed by packets sent again
				written := make(chan error)
				go func() {
					for {
						if _, err := c.Write(make([]byte, 1000)); err != nil {
							written <- err
							return
						}
					}
				}()
				_, err := io.Copy(io.Discard, c)
				_ = c.Close()
				return errors.Join(err, <-written) // the first of both to see a reset takes it
			}
			near, far := pair(t, origin(t, func(c *net.TCPConn) { ended <- flood(c) }))
			c := dial(t, near.Addr)
			must.Get(io.ReadFull(c, make([]byte, 1<<20)))(t)
			dead, left := near, far
			if victim == "far" {
				dead, left = far, near
			}
			ours := make(chan error, 1)
			go func() { ours <- flood(c) }()
			require.NoError(t, dead.Cmd.Process.Kill())
			distant := <-map[string]chan error{"near": ended, "far": ours}[victim]
			require.ErrorIs(t, distant, syscall.ECONNRESET)
			r := left.Connection()
			// A device of this host is known to have gone before its silence
			// is noticed.
			require.Contains(t, map[string]string{"failed": "timed out", "reset": "reset by peer"}, r.End)
			require.Contains(t, r.Error, map[string]string{"failed": "timed out", "reset": "reset by peer"}[r.End])
			_, stderr := left.Total()
			require.Equal(t, map[string]int{"failed": 1}[r.End], strings.Count(stderr, "\n"), stderr) // a reset is no failure of the proxy's
		})
	}
}

// TestProxyBounds: no more clients than --max-clients, no silent ones for
// longer than --idle.
func TestProxyBounds(t *testing.T) {
	t.Parallel()
	target := origin(t, digest)
	p := start(t, "proxy", "--listen", "tcp:0", "--to", "tcp:"+target, "--max-clients", "1")
	first := dial(t, p.Addr)
	echoed(t, first)
	refused(t, p.Addr)
	require.NoError(t, first.Close())
	require.Equal(t, "closed", p.Connection().End)
	require.NoError(t, exchange(dial(t, p.Addr), "", 1000))
	_, stderr := p.Total()
	require.Contains(t, stderr, "--max-clients")

	p = start(t, "proxy", "--listen", "tcp:0", "--to", "tcp:"+target, "--idle", "100ms")
	refused(t, p.Addr)
	require.Contains(t, p.Connection().Error, "--idle")
}

// TestProxyDrains: a proxy that is told to end accepts no client and lets the
// connections there are go on, but not for ever.
func TestProxyDrains(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"1m", "0"} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			far := start(t, "proxy", "--listen", "rdma:"+clitest.Host()+":0", "--to", "tcp:"+origin(t, digest), "--drain", limit)
			near := start(t, "proxy", "--listen", "tcp:0", "--to", "rdma:"+far.Addr, "--drain", limit)
			c := dial(t, near.Addr)
			echoed(t, c)
			require.NoError(t, near.Cmd.Process.Signal(syscall.SIGTERM))
			if limit == "0" {
				must.Fail(c.Read(make([]byte, 1)))(t, syscall.ECONNRESET)
				require.Contains(t, near.Connection().Error, "--drain")
				return
			}
			require.Eventually(t, func() bool {
				other, err := net.Dial("tcp", near.Addr)
				if err == nil {
					_ = other.Close()
				}
				return errors.Is(err, syscall.ECONNREFUSED)
			}, patience, time.Millisecond)
			require.NoError(t, c.CloseWrite())
			sum := must.Get(io.ReadAll(c))(t)
			want := sha256.Sum256([]byte("x"))
			require.Equal(t, want[:], sum)
			_, stderr := near.Total()
			require.Empty(t, stderr)
		})
	}
}

// TestProxyLeavesNothing in its process: TestMain looks for goroutines and
// descriptors.
func TestProxyLeavesNothing(t *testing.T) {
	target := origin(t, digest)
	ctx, cancel := context.WithCancel(t.Context())
	lines, out := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, cli.NewRoot("rdmashim", ProxyCommand()), []string{"proxy", "--json", "--listen", "rdma:" + clitest.Host() + ":0", "--to", "tcp:" + target}, nil, out, io.Discard)
		_ = out.Close()
	}()
	said := json.NewDecoder(lines)
	next := func() (l peer.Line) {
		require.NoError(t, said.Decode(&l))
		return l
	}
	near := start(t, "proxy", "--listen", "tcp:0", "--to", "rdma:"+next().Listening)
	require.NoError(t, exchange(dial(t, near.Addr), "", 100_000))
	require.Equal(t, "closed", next().Connection.End)
	c := dial(t, near.Addr)
	require.NoError(t, c.SetLinger(0))
	require.NoError(t, c.Close())
	require.Equal(t, "reset", next().Connection.End)
	cancel()
	require.NotNil(t, next().Total)
	require.ErrorIs(t, said.Decode(new(any)), io.EOF)
	require.Zero(t, <-ended)
}
