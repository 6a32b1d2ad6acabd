package rdmanet_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httputil"
	"net/rpc"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// TestReverseProxy: a request goes through a proxy to a server behind it, over
// RDMA both times.
func TestReverseProxy(t *testing.T) {
	virtual(t, func(t *testing.T) {
		behind, toBehind := serve(t, http.HandlerFunc(echo), false, false)
		target, err := url.Parse(behind.URL)
		require.NoError(t, err)
		proxy := httputil.NewSingleHostReverseProxy(target)
		proxy.Transport = toBehind.Transport
		s, client := serve(t, proxy, false, false)
		body := bytes.Repeat([]byte("payload"), 100_000)
		r, err := client.Post(s.URL, "application/octet-stream", bytes.NewReader(body))
		require.NoError(t, err)
		got, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		require.True(t, bytes.Equal(got, body))
	})
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
