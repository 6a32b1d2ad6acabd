package stream

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/rdmashim/internal/cli"
	"github.com/rdmashim/rdmashim/tools/rdmashim/internal/cli/clitest"
)

// patience bounds hangs.
const patience = time.Minute

// origin is a server of the test, which closes what serve leaves.
func origin(t *testing.T, serve func(c *net.TCPConn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var clients sync.WaitGroup
	clients.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.SetDeadline(time.Now().Add(patience))
			clients.Go(func() {
				defer c.Close()
				serve(c.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		clients.Wait()
	})
	return l.Addr().String()
}

// digest sends back what it is sent and, after the end of data, its SHA-256.
func digest(c *net.TCPConn) {
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(sum, c), c); err == nil {
		_, _ = c.Write(sum.Sum(nil))
	}
}

// pair starts two proxies, from TCP to RDMA and from RDMA to TCP.
func pair(t *testing.T, target string) (near, far *process) {
	t.Helper()
	far = start(t, "proxy", "--listen", "rdma:"+ownAddr(), "--to", "tcp:"+target)
	return start(t, "proxy", "--listen", "tcp:0", "--to", "rdma:"+far.addr), far
}

func dial(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// refused connects to a proxy that resets the connection at once.
func refused(t *testing.T, addr string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err == nil {
		defer c.Close()
		require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
		_, err = c.Read(make([]byte, 1))
	}
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

// exchange sends size bytes and their end to a digest server, and checks all
// that comes back.
func exchange(c *net.TCPConn, seed byte, size int64) error {
	sent, got := sha256.New(), sha256.New()
	failed := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.MultiWriter(sent, c), io.LimitReader(rand.NewChaCha8([32]byte{seed}), size))
		failed <- errors.Join(err, c.CloseWrite())
	}()
	_, err := io.CopyN(got, c, size)
	err = errors.Join(err, <-failed)
	theirs, readErr := io.ReadAll(c)
	if !bytes.Equal(theirs, got.Sum(nil)) || !bytes.Equal(theirs, sent.Sum(nil)) {
		err = errors.Join(err, fmt.Errorf("sent %x, got %x, and the server got %x", sent.Sum(nil), got.Sum(nil), theirs))
	}
	return errors.Join(err, readErr, c.Close())
}

// TestProxy: data goes through both proxies and comes back after its end has
// gone through, also over two RDMA connections in a row. All count alike.
func TestProxy(t *testing.T) {
	t.Parallel()
	size := int64(64 << 20)
	if testing.Short() {
		size = 4 << 20
	}
	near, far := pair(t, origin(t, digest))
	socket := filepath.Join(t.TempDir(), "socket")
	first := start(t, "proxy", "--listen", "unix:"+socket, "--to", "tcp:"+near.addr)
	relay := start(t, "proxy", "--listen", "rdma:"+ownAddr(), "--to", "unix:"+socket)
	last := start(t, "proxy", "--listen", "rdma:"+ownAddr(), "--to", "rdma:"+relay.addr)
	outer := start(t, "proxy", "--listen", "tcp:0", "--to", "rdma:"+last.addr)
	require.NoError(t, exchange(dial(t, near.addr), 1, size))
	require.NoError(t, exchange(dial(t, outer.addr), 2, 1<<20))
	for _, p := range []*process{outer, last, relay, first, near, far} {
		var want Total
		for _, n := range map[bool][]int64{true: {size, 1 << 20}, false: {1 << 20}}[p == near || p == far] {
			r := p.connection()
			require.Equal(t, "closed", r.End, r.Error)
			require.Equal(t, []int64{n, n + sha256.Size}, []int64{r.There, r.Back})
			want.add(r)
		}
		total, stderr := p.stop()
		require.Equal(t, want, total)
		require.Empty(t, stderr)
	}
}

// TestProxyMany: 100 connections at once, each with data of its own; then as
// many descriptors are open as before.
func TestProxyMany(t *testing.T) {
	t.Parallel()
	near, far := pair(t, origin(t, digest))
	const most = 100
	run := func(n int) {
		results := make(chan error)
		for i := range n {
			c := dial(t, near.addr)
			go func() { results <- exchange(c, byte(i), 100_000) }()
		}
		for range n {
			require.NoError(t, <-results)
		}
		for range n {
			require.Equal(t, "closed", near.connection().End)
			require.Equal(t, "closed", far.connection().End)
		}
	}
	run(1) // which opens the devices
	before := []int{near.descriptors(), far.descriptors()}
	run(most)
	for i, p := range []*process{near, far} {
		require.Eventually(t, func() bool { return p.descriptors() <= before[i] }, patience, 10*time.Millisecond)
		total, stderr := p.stop()
		require.EqualValues(t, most+1, total.Connections)
		require.EqualValues(t, (most+1)*100_000, total.There)
		require.Empty(t, stderr)
	}
}

// TestProxyTLS: HTTP over TLS between ends that know nothing of the proxies, by
// Go's client and by curl.
func TestProxyTLS(t *testing.T) {
	t.Parallel()
	body := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(body)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_, _ = io.Copy(w, r.Body)
			return
		}
		_, _ = w.Write(body)
	}))
	defer s.Close()
	near, _ := pair(t, s.Listener.Addr().String())
	r, err := s.Client().Post("https://"+near.addr, "application/octet-stream", bytes.NewReader(body))
	require.NoError(t, err)
	got, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	require.True(t, bytes.Equal(body, got))
	s.Client().CloseIdleConnections()
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("no curl here, which the proxies are tried with beside Go's client; install it: ", err)
	}
	got, err = exec.CommandContext(t.Context(), curl, "--silent", "--show-error", "--insecure", "--noproxy", "*", "https://"+near.addr).Output()
	require.NoError(t, err)
	require.True(t, bytes.Equal(body, got))
}

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
	c := dial(t, near.addr)
	b, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, "first", string(b))
	_, err = io.WriteString(c, "second")
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.Equal(t, "second", <-got)
	require.Equal(t, "closed", near.connection().End)
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
			c := dial(t, near.addr)
			_, err := io.ReadFull(c, make([]byte, 5))
			require.NoError(t, err)
			_, err = io.WriteString(c, "hello")
			require.NoError(t, err)
			if who == "client" {
				require.NoError(t, c.SetLinger(0))
				require.NoError(t, c.Close())
				err = <-seen
			} else {
				_, err = io.Copy(io.Discard, c)
			}
			require.ErrorIs(t, err, syscall.ECONNRESET)
			for _, p := range []*process{near, far} {
				r := p.connection()
				require.Equal(t, "reset", r.End, r.Error)
				total, stderr := p.stop()
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	near, far := pair(t, l.Addr().String())
	refused(t, near.addr)
	require.Equal(t, "reset", near.connection().End)
	require.Equal(t, "failed", far.connection().End)
	_, stderr := far.stop()
	require.Regexp(t, `\Ardmashim: client [^\n]*: the target: [^\n]*connection refused\n\z`, stderr)
	refused(t, near.addr) // the far proxy has gone, too
	require.Equal(t, "failed", near.connection().End)
	_, stderr = near.stop()
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
			c := dial(t, near.addr)
			_, err := io.ReadFull(c, make([]byte, 1<<20))
			require.NoError(t, err)
			dead, left := near, far
			if victim == "far" {
				dead, left = far, near
			}
			ours := make(chan error, 1)
			go func() { ours <- flood(c) }()
			require.NoError(t, dead.cmd.Process.Kill())
			distant := <-map[string]chan error{"near": ended, "far": ours}[victim]
			require.ErrorIs(t, distant, syscall.ECONNRESET)
			r := left.connection()
			require.Equal(t, "failed", r.End, "%+v", r)
			require.Contains(t, r.Error, "timed out")
			_, stderr := left.stop()
			require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
		})
	}
}

// TestProxyBounds: no more clients than --max-clients, no silent ones for
// longer than --idle.
func TestProxyBounds(t *testing.T) {
	t.Parallel()
	target := origin(t, digest)
	p := start(t, "proxy", "--listen", "tcp:0", "--to", "tcp:"+target, "--max-clients", "1")
	first := dial(t, p.addr)
	_, err := io.WriteString(first, "x")
	require.NoError(t, err)
	_, err = io.ReadFull(first, make([]byte, 1))
	require.NoError(t, err)
	refused(t, p.addr)
	require.NoError(t, first.Close())
	require.Equal(t, "closed", p.connection().End)
	require.NoError(t, exchange(dial(t, p.addr), 1, 1000))
	_, stderr := p.stop()
	require.Contains(t, stderr, "--max-clients")

	p = start(t, "proxy", "--listen", "tcp:0", "--to", "tcp:"+target, "--idle", "100ms")
	refused(t, p.addr)
	require.Contains(t, p.connection().Error, "--idle")
}

// TestProxyDrains: a proxy that is told to end accepts nobody and lets the
// connections there are go on, but not for ever.
func TestProxyDrains(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"1m", "0"} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			far := start(t, "proxy", "--listen", "rdma:"+ownAddr(), "--to", "tcp:"+origin(t, digest), "--drain", limit)
			near := start(t, "proxy", "--listen", "tcp:0", "--to", "rdma:"+far.addr, "--drain", limit)
			c := dial(t, near.addr)
			_, err := io.WriteString(c, "x")
			require.NoError(t, err)
			_, err = io.ReadFull(c, make([]byte, 1))
			require.NoError(t, err)
			require.NoError(t, near.cmd.Process.Signal(syscall.SIGTERM))
			if limit == "0" {
				_, err = c.Read(make([]byte, 1))
				require.ErrorIs(t, err, syscall.ECONNRESET)
				require.Contains(t, near.connection().Error, "--drain")
				return
			}
			require.Eventually(t, func() bool {
				other, err := net.Dial("tcp", near.addr)
				if err == nil {
					_ = other.Close()
				}
				return errors.Is(err, syscall.ECONNREFUSED)
			}, patience, time.Millisecond)
			require.NoError(t, c.CloseWrite())
			sum, err := io.ReadAll(c)
			require.NoError(t, err)
			want := sha256.Sum256([]byte("x"))
			require.Equal(t, want[:], sum)
			_, stderr := near.stop()
			require.Empty(t, stderr)
		})
	}
}

// TestPlaces: what --listen and --to take.
func TestPlaces(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"tcp:80": "tcp:127.0.0.1:80", "rdma:80": "rdma:127.0.0.1:80", "rdma::80": "rdma::80",
		"tcp:[::1]:80": "tcp:[::1]:80", "unix:/tmp/a:b": "unix:/tmp/a:b",
		"": "", "tcp": "", "tcp:": "", "tcp:a:": "", "unix:": "", "udp:80": "", "127.0.0.1:80": "",
	} {
		var p place
		require.Equal(t, want == "", p.Set(text) != nil, text)
		require.Equal(t, want, p.String())
	}
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"proxy", "--listen tcp:HOST:PORT --to rdma:HOST:PORT", 2},
		{"proxy --listen tcp:0", "say from where and to where", 2},
		{"proxy --listen http:80 --to tcp:1", "want tcp:HOST:PORT", 2},
		{"proxy --listen tcp:0 --to tcp:1 --max-clients 0", "at least one", 2},
		{"proxy --listen tcp:0 --to tcp:1 --idle -1s", "not negative", 2},
		{"proxy --listen tcp:192.0.2.77:0 --to tcp:1", "192.0.2.77", 1},
		{"proxy --listen rdma:192.0.2.77:0 --to tcp:1", "192.0.2.77", 1},
		{"proxy --listen tcp:0 --to rdma:1 -d nosuch0", "nosuch0", 1},
		{"echo server --listen nonsense", "nonsense", 1},
		{"echo client", "needs the HOST", 2},
		{"echo client -S 0 127.0.0.1", "1 … 65536", 2},
		{"echo client 127.0.0.1:1", "is 'rdmashim echo server' running there?", 1},
		{"echo client --tcp 127.0.0.1:1", "is 'rdmashim echo server' running there?", 1},
	} {
		o := clitest.RunTool(t, strings.Fields(c.args)...)
		require.Equal(t, c.code, o.Code, "%s: %s", c.args, o.Stderr)
		require.Empty(t, o.Stdout, c.args)
		require.Contains(t, o.Stderr, c.want)
		require.Equal(t, 1, strings.Count(o.Stderr, "\n"), o.Stderr)
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
		ended <- cli.Run(ctx, cli.NewRoot("rdmashim", ProxyCommand()), []string{"proxy", "--json", "--listen", "rdma:" + ownAddr(), "--to", "tcp:" + target}, nil, out, io.Discard)
		_ = out.Close()
	}()
	p := &process{t: t, lines: bufio.NewReader(lines)}
	near := start(t, "proxy", "--listen", "tcp:0", "--to", "rdma:"+p.next().Listening)
	require.NoError(t, exchange(dial(t, near.addr), 1, 100_000))
	require.Equal(t, "closed", p.connection().End)
	c := dial(t, near.addr)
	require.NoError(t, c.SetLinger(0))
	require.NoError(t, c.Close())
	require.Equal(t, "reset", p.connection().End)
	cancel()
	require.NotNil(t, p.next().Total)
	require.Nil(t, p.next())
	require.Zero(t, <-ended)
}
