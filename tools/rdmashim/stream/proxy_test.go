package stream

import (
	"bytes"
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
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
)

// patience bounds hangs.
const patience = time.Minute

// origin is a server of the test, which closes the connections that serve
// leaves.
func origin(t *testing.T, serve func(c *net.TCPConn)) (addr string) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
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

// digest sends back the data it gets and, after its end, its SHA-256.
func digest(c *net.TCPConn) {
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(sum, c), c); err == nil {
		_, _ = c.Write(sum.Sum(nil))
	}
}

// pair starts two proxies, from TCP to RDMA and from RDMA to TCP.
func pair(t *testing.T, target string) (near, far *clitest.Server) {
	t.Helper()
	far = start(t, "proxy", "--listen", "rdma:"+clitest.Host()+":0", "--to", "tcp:"+target)
	return start(t, "proxy", "--listen", "tcp:0", "--to", "rdma:"+far.Addr), far
}

func dial(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	c := must.Get(net.Dial("tcp", addr))(t)
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

// echoed sends an x, which comes back when the connection is joined.
func echoed(t *testing.T, c *net.TCPConn) {
	t.Helper()
	must.Get(io.WriteString(c, "x"))(t)
	must.Get(io.ReadFull(c, make([]byte, 1)))(t)
}

// seeds numbers the data of exchanges.
var seeds atomic.Uint32

// exchange sends size bytes and their end to a digest server, which has had
// before of this connection, and checks all that comes back.
func exchange(c *net.TCPConn, before string, size int64) error {
	sent, got := sha256.New(), sha256.New()
	_, _ = io.WriteString(io.MultiWriter(sent, got), before)
	failed := make(chan error, 1)
	go func() {
		data := rand.NewChaCha8([32]byte{byte(seeds.Add(1))})
		_, err := io.Copy(io.MultiWriter(sent, c), io.LimitReader(data, size))
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
	first := start(t, "proxy", "--ring", "16384", "--listen", "unix:"+socket, "--to", "tcp:"+near.Addr)
	relay := start(t, "proxy", "--ring", "16384", "--listen", "rdma:"+clitest.Host()+":0", "--to", "unix:"+socket)
	last := start(t, "proxy", "--listen", "rdma:"+clitest.Host()+":0", "--to", "rdma:"+relay.Addr)
	outer := start(t, "proxy", "--listen", "tcp:0", "--to", "rdma:"+last.Addr)
	require.NoError(t, exchange(dial(t, near.Addr), "", size))
	require.NoError(t, exchange(dial(t, outer.Addr), "", 1<<20))
	for _, p := range []*clitest.Server{outer, last, relay, first, near, far} {
		var connections, there, back int64
		for _, n := range map[bool][]int64{true: {size, 1 << 20}, false: {1 << 20}}[p == near || p == far] {
			r := p.Connection()
			require.Equal(t, "closed", r.End, r.Error)
			require.Equal(t, []int64{n, n + sha256.Size}, []int64{r.There, r.Back})
			connections, there, back = connections+1, there+r.There, back+r.Back
		}
		total, stderr := p.Total()
		require.Equal(t, []int64{connections, 0, there, back}, []int64{total.Connections, total.Broken, total.There, total.Back})
		require.Empty(t, stderr)
	}
}

// TestProxyMany: 100 connections are open at once, each with data of its own, a
// few of which move at a time; then as many descriptors are open as before.
func TestProxyMany(t *testing.T) {
	t.Parallel()
	near, far := pair(t, origin(t, digest))
	const most, size = 100, 100_000
	run := func(n int) {
		conns := make(chan *net.TCPConn, n)
		for range n {
			c := dial(t, near.Addr)
			echoed(t, c)
			conns <- c
		}
		close(conns)
		results := make(chan error)
		for range 4 {
			go func() {
				for c := range conns {
					results <- exchange(c, "x", size)
				}
			}()
		}
		for range n {
			require.NoError(t, <-results)
		}
		for range n {
			require.Equal(t, "closed", near.Connection().End)
			require.Equal(t, "closed", far.Connection().End)
		}
	}
	run(1) // which opens the devices
	before := []int{descriptors(t, near), descriptors(t, far)}
	run(most)
	for i, p := range []*clitest.Server{near, far} {
		require.Eventually(t, func() bool { return descriptors(t, p) <= before[i] }, patience, 10*time.Millisecond)
		total, stderr := p.Total()
		require.EqualValues(t, most+1, total.Connections)
		require.EqualValues(t, (most+1)*(1+size), total.There)
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
			sent, _ := io.ReadAll(r.Body) // HTTP/1.1 answers when it has read
			_, _ = w.Write(sent)
			return
		}
		_, _ = w.Write(body)
	}))
	defer s.Close()
	near, _ := pair(t, s.Listener.Addr().String())
	r, err := s.Client().Post("https://"+near.Addr, "application/octet-stream", bytes.NewReader(body))
	require.NoError(t, err)
	got := must.Get(io.ReadAll(r.Body))(t)
	require.NoError(t, r.Body.Close())
	require.True(t, bytes.Equal(body, got))
	s.Client().CloseIdleConnections()
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("no curl here, which the proxies are tried with beside Go's client; install it: ", err)
	}
	got, err = exec.CommandContext(t.Context(), curl, "--silent", "--show-error", "--insecure", "--noproxy", "*", "https://"+near.Addr).Output()
	require.NoError(t, err)
	require.True(t, bytes.Equal(body, got))
}

// TestPlaces: the places that --listen and --to take.
func TestPlaces(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"tcp:80": "tcp:80", "rdma:80": "rdma:80", "rdma::80": "rdma::80",
		"tcp:[::1]:80": "tcp:[::1]:80", "unix:/tmp/a:b": "unix:/tmp/a:b",
		"": "", "tcp": "", "tcp:": "", "tcp:a:": "", "unix:": "", "udp:80": "", "127.0.0.1:80": "",
	} {
		var p Place
		require.Equal(t, want == "", p.Set(text) != nil, text)
		require.Equal(t, want, p.String())
	}
	clitest.Refused(t, 2, "", map[string]string{
		"proxy":                             "--listen tcp:HOST:PORT --to rdma:HOST:PORT",
		"proxy --listen tcp:0":              "say from where and to where",
		"proxy --listen http:80 --to tcp:1": "want tcp:HOST:PORT",
		"proxy --listen tcp:0 --to tcp:1 --max-clients 0": "at least one",
		"proxy --listen tcp:0 --to tcp:1 --idle -1s":      "not negative",
		"proxy --listen tcp:0 --to tcp:1 --ring 100000":   "power of two",
	})
	clitest.Refused(t, 1, "", map[string]string{
		"proxy --listen tcp:192.0.2.77:0 --to tcp:1":  "192.0.2.77",
		"proxy --listen rdma:192.0.2.77:0 --to tcp:1": "192.0.2.77",
		"proxy --listen tcp:0 --to rdma:1 -d nosuch0": "nosuch0",
	})
}
