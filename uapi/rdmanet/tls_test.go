package rdmanet_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/nettest"

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

// overTLS are the tests of nettest that crypto/tls passes on a TCP connection.
// The others hang on one, too: a tls.Conn is of no use after a Write that a
// deadline ended.
const overTLS = "^(BasicIO|PingPong|RacyRead|RacyWrite|ReadTimeout|WriteTimeout|PresentTimeout|CloseTimeout)$"

// TestConnTLS runs nettest on TLS over a connection, in a process of its own:
// only -test.run chooses among nettest's tests.
func TestConnTLS(t *testing.T) {
	if testing.Short() {
		t.Skip("nettest needs a machine that keeps real time; run it without -short")
	}
	const inside = "RDMANET_TEST_TLS"
	if os.Getenv(inside) == "" {
		self, err := os.Executable()
		require.NoError(t, err)
		cmd := exec.CommandContext(limited(t), self, "-test.run=^TestConnTLS$/"+overTLS, "-test.v")
		cmd.Env = append(os.Environ(), inside+"=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Equal(t, 8, bytes.Count(out, []byte("--- PASS: TestConnTLS/")), "%s", out)
		return
	}
	h := softHost(t, rdmanet.Config{})
	server, client := certificate(t)
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		x, y, err := h.pipe()
		if err != nil {
			return nil, nil, nil, err
		}
		a, b := tls.Client(x, client), tls.Server(y, server)
		shaken := make(chan error, 1)
		go func() { shaken <- b.Handshake() }()
		if err := errors.Join(a.Handshake(), <-shaken); err != nil {
			return nil, nil, nil, err
		}
		return a, b, func() {
			_ = a.Close()
			_ = b.Close()
		}, nil
	})
}
