package rdmanet_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/rpc"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// serving runs an HTTP server until the test ends and returns its client.
type serving func(t *testing.T, handler http.Handler) (*httptest.Server, *http.Client)

func overRDMA(t *testing.T, handler http.Handler) (*httptest.Server, *http.Client) {
	return serve(t, handler, false, false)
}

func overSoft(t *testing.T, handler http.Handler) (*httptest.Server, *http.Client) {
	return serveOn(t, softHost(t, rdmanet.Config{}), handler, false, false)
}

func overTCP(t *testing.T, handler http.Handler) (*httptest.Server, *http.Client) {
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s, s.Client()
}

// proxied sends a request through a proxy to a server behind it.
func proxied(t *testing.T, toProxy, toServer serving) {
	behind, toBehind := toServer(t, http.HandlerFunc(echo))
	target, err := url.Parse(behind.URL)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = toBehind.Transport
	s, client := toProxy(t, proxy)
	body := bytes.Repeat([]byte("payload"), 100_000)
	// The proxy's transport closes a connection that it reads now and then, in
	// 1 of 5,000 requests, from TCP to TCP, too.
	for try := 0; ; try++ {
		r, err := client.Post(s.URL, "application/octet-stream", bytes.NewReader(body))
		require.NoError(t, err)
		got, err := io.ReadAll(r.Body)
		require.NoError(t, r.Body.Close())
		if errors.Is(err, io.ErrUnexpectedEOF) && try < 2 {
			continue
		}
		require.NoError(t, err)
		require.True(t, bytes.Equal(got, body))
		return
	}
}

// TestReverseProxy: a proxy with RDMA on both sides, and on one side.
func TestReverseProxy(t *testing.T) {
	t.Run("RDMA", func(t *testing.T) {
		virtual(t, func(t *testing.T) { proxied(t, overRDMA, overRDMA) })
	})
	t.Run("RDMA to TCP", func(t *testing.T) { proxied(t, overSoft, overTCP) })
	t.Run("TCP to RDMA", func(t *testing.T) { proxied(t, overTCP, overSoft) })
}

// TestSlowClient: the server gives up a client that never sends its header.
func TestSlowClient(t *testing.T) {
	virtual(t, func(t *testing.T) {
		h := newHost(t, rdmanet.Config{})
		s := http.Server{Handler: http.HandlerFunc(echo), ReadHeaderTimeout: time.Millisecond}
		served := make(chan error)
		go func() { served <- s.Serve(h) }()
		c, err := h.DialContext(limited(t), "rdma", h.addr)
		require.NoError(t, err)
		_, err = io.ReadAll(c)
		require.NoError(t, err)
		require.NoError(t, s.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
}

// Doubler is a service of net/rpc.
type Doubler struct{}

// Double doubles.
func (Doubler) Double(n int, reply *int) error {
	*reply = 2 * n
	return nil
}

// TestRPC: net/rpc, over a connection that ends when its client closes it.
func TestRPC(t *testing.T) {
	virtual(t, func(t *testing.T) {
		x, y := connect(t, rdmanet.Config{})
		s := rpc.NewServer()
		require.NoError(t, s.Register(Doubler{}))
		served := make(chan struct{})
		go func() {
			defer close(served)
			s.ServeConn(y)
		}()
		client := rpc.NewClient(x)
		for n := range 100 {
			var reply int
			require.NoError(t, client.Call("Doubler.Double", n, &reply))
			require.Equal(t, 2*n, reply)
		}
		require.NoError(t, client.Close())
		<-served
	})
}
