package rdmanet_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// certificate makes configurations of TLS that fit each other.
func certificate(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	server = s.TLS.Clone()
	server.NextProtos = nil
	pool := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	return server, &tls.Config{RootCAs: pool, ServerName: "example.com"}
}

// TestTLS: both ends write 1 MiB at once, and end their data. They shake hands
// before, for two goroutines that did would wait for each other by a mutex,
// which stops virtual time.
func TestTLS(t *testing.T) {
	virtual(t, func(t *testing.T) {
		x, y := connect(t, rdmanet.Config{})
		serverConfig, clientConfig := certificate(t)
		client, server := tls.Client(x, clientConfig), tls.Server(y, serverConfig)
		shaken := make(chan error)
		go func() { shaken <- server.HandshakeContext(limited(t)) }()
		require.NoError(t, client.HandshakeContext(limited(t)))
		require.NoError(t, <-shaken)
		bothWays(t, client, server, 1<<20)
	})
}
