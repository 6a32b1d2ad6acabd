package qmux_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/qmux"
)

// transport makes byte streams.
type transport struct {
	name    string
	connect func(t testing.TB) (client, server net.Conn)
}

// transports are what the tests run on.
var transports = []transport{
	{"pipe", func(testing.TB) (net.Conn, net.Conn) { return net.Pipe() }},
	{"tcp", tcp},
	{"tls", func(t testing.TB) (net.Conn, net.Conn) { return secure(t, "test", "test") }},
}

func tcp(t testing.TB) (client, server net.Conn) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	client = must.Get(net.Dial("tcp", l.Addr().String()))(t)
	server = must.Get(l.Accept())(t)
	return client, server
}

// secure is tcp with TLS, and a protocol on each side unless it is empty.
func secure(t testing.TB, clientProtocol, serverProtocol string) (client, server net.Conn) {
	client, server = tcp(t)
	cc, sc := &tls.Config{InsecureSkipVerify: true}, &tls.Config{Certificates: []tls.Certificate{certificate()}}
	if clientProtocol != "" {
		cc.NextProtos = []string{clientProtocol}
	}
	if serverProtocol != "" {
		sc.NextProtos = []string{serverProtocol}
	}
	return tls.Client(client, cc), tls.Server(server, sc)
}

// certificate is net/http's own for tests.
var certificate = sync.OnceValue(func() tls.Certificate {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	return server.TLS.Certificates[0]
})

// both makes the two sides at once, since TLS needs both, and closes them in
// the end.
func both(t testing.TB, client, server net.Conn, cfg *qmux.Config) (*qmux.Conn, *qmux.Conn) {
	t.Helper()
	type result struct {
		c   *qmux.Conn
		err error
	}
	made := make(chan result, 1)
	go func() {
		c, err := qmux.Server(server, cfg)
		made <- result{c, err}
	}()
	a, err := qmux.Client(client, cfg)
	b := <-made
	require.NoError(t, err)
	require.NoError(t, b.err)
	t.Cleanup(func() {
		a.CloseWithError(0, "")
		b.c.CloseWithError(0, "")
	})
	return a, b.c
}

// soon bounds a hang.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
