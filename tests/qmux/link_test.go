package qmux

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// tcp are the links without anything between.
var tcp = []link{
	{name: "tcp", listen: listenTCP, dial: dialTCP},
	{name: "tls", secure: true, listen: listenTCP, dial: dialTCP},
}

func listenTCP(t *testing.T) (string, func() (net.Conn, error)) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l.Addr().String(), l.Accept
}

func dialTCP(t *testing.T, address string) (net.Conn, error) { return net.Dial("tcp", address) }

// telling is a connection that tells when the next Read begins: the bytes of
// the last one have been taken in.
type telling struct {
	*net.TCPConn
	news chan struct{}
}

func (c telling) Read(p []byte) (int, error) {
	select {
	case c.news <- struct{}{}:
	default:
	}
	return c.TCPConn.Read(p)
}

// telling is the link with such connections.
func (l link) telling() (link, <-chan struct{}) {
	news := make(chan struct{}, 1)
	tell := func(conn net.Conn, err error) (net.Conn, error) {
		if err != nil {
			return nil, err
		}
		return telling{conn.(*net.TCPConn), news}, nil
	}
	dial, listen := l.dial, l.listen
	l.dial = func(t *testing.T, address string) (net.Conn, error) { return tell(dial(t, address)) }
	l.listen = func(t *testing.T) (string, func() (net.Conn, error)) {
		address, accept := listen(t)
		return address, func() (net.Conn, error) { return tell(accept()) }
	}
	return l, news
}

// secured puts TLS on a connection, if there are protocols.
func secured(t *testing.T, conn net.Conn, protocols []string, server bool) net.Conn {
	switch {
	case len(protocols) == 0:
		return conn
	case !server:
		return tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: protocols})
	}
	pair, err := tls.X509KeyPair(pems())
	require.NoError(t, err)
	return tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: protocols})
}

// pems are a certificate and its key: net/http's own for tests.
var pems = sync.OnceValues(func() (cert, key []byte) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	own := server.TLS.Certificates[0]
	secret, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	if err != nil {
		panic(err)
	}
	block := func(kind string, b []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}) }
	return block("CERTIFICATE", own.Certificate[0]), block("PRIVATE KEY", secret)
})

// certificate is pems as text.
func certificate() (cert, key string) {
	c, k := pems()
	return string(c), string(k)
}

// soon bounds a hang.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}
