package grpctest

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// patience bounds hangs.
const patience = time.Minute

// virtual runs a test on virtual time, in which a busy machine makes nothing
// late.
func virtual(t *testing.T, f func(t *testing.T)) { synctest.Test(t, f) }

// flushed waits until connections have given everything back, whether or not
// all has arrived.
func flushed(t *testing.T) {
	t.Helper()
	if err := rdmanet.Flush(limited(t)); !errors.Is(err, rdmanet.ErrUndelivered) {
		require.NoError(t, err)
	}
}

// limited is a context that ends a test that hangs, also in its cleanups.
func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// softPair opens two soft devices on loopback.
func softPair(t *testing.T) (server, client *uapi.Device) {
	t.Helper()
	for _, c := range []**uapi.Device{&server, &client} {
		device := must.Get(uapi.Open("soft", uapi.OpenConfig{}))(t)
		t.Cleanup(func() { require.NoError(t, device.Close()) })
		*c = device
	}
	return server, client
}

// simPair opens two devices on a network in memory, for a test on virtual time.
func simPair(t *testing.T) (server, client *uapi.Device) {
	t.Helper()
	return uapitest.Pair(t, "")
}

// faultyPair is simPair with a network that loses, reorders and doubles.
func faultyPair(t *testing.T) (server, client *uapi.Device) {
	t.Helper()
	return uapitest.Pair(t, "loss=1%&reorder=5%&dup=1%&seed=7")
}

// slowPair is simPair with a network that takes its time.
func slowPair(t *testing.T) (server, client *uapi.Device) {
	t.Helper()
	return uapitest.Pair(t, "delay=10ms")
}

// host is a listener on one device, and a dialer to it on another.
type host struct {
	*rdmanet.Listener
	rdmanet.Dialer
	addr     string
	accepted atomic.Int64 // connections
}

// newHost makes a host of two devices that pair opens. When the test ends its
// listener is closed, all data has arrived, and nothing is left of a dial that
// a client gave up.
func newHost(t *testing.T, pair func(t *testing.T) (server, client *uapi.Device)) *host {
	t.Helper()
	server, client := pair(t)
	l := must.Get(rdmanet.ListenOn(server, ":0", rdmanet.Config{}))(t)
	info := must.Get(server.QueryDevice())(t)
	addr := netip.AddrPortFrom(info.Address.Addr(), l.Addr().(rdmanet.Addr).Port())
	t.Cleanup(func() {
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			require.NoError(t, err)
		}
		flushed(t)
		require.Eventually(t, func() bool {
			return len(server.OpenHandles())+len(client.OpenHandles()) == 0
		}, patience, time.Millisecond)
	})
	return &host{Listener: l, Dialer: rdmanet.Dialer{Device: client}, addr: addr.String()}
}

func (h *host) Accept() (net.Conn, error) {
	c, err := h.Listener.Accept()
	if err == nil {
		h.accepted.Add(1)
	}
	return c, err
}

// dial makes a gRPC client of the host's server.
func (h *host) dial(t *testing.T, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	plain := []grpc.DialOption{grpc.WithContextDialer(h.GRPC), grpc.WithTransportCredentials(insecure.NewCredentials())}
	c := must.Get(grpc.NewClient("passthrough:///"+h.addr, append(plain, options...)...))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// serve runs a gRPC server with the service of grpc-go's interoperability
// suite.
func (h *host) serve(t *testing.T, options ...grpc.ServerOption) *grpc.Server {
	t.Helper()
	s := grpc.NewServer(append(options, grpc.WaitForHandlers(true))...)
	testgrpc.RegisterTestServiceServer(s, interop.NewTestServer())
	serve(t, s, h)
	return s
}

// serve has a gRPC server serve a listener until the test ends.
func serve(t *testing.T, s *grpc.Server, l net.Listener) {
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		require.NoError(t, <-served)
	})
}

// overTCP has a gRPC server serve TCP too, and makes a client of it there.
func overTCP(t *testing.T, s *grpc.Server, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	l := must.Get(net.Listen("tcp", "localhost:0"))(t)
	serve(t, s, l)
	plain := grpc.WithTransportCredentials(insecure.NewCredentials())
	c := must.Get(grpc.NewClient(l.Addr().String(), append(options, plain)...))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// encryption is the two ends of TLS, with a certificate for this test.
func encryption(t *testing.T) (server grpc.ServerOption, client grpc.DialOption) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	pool := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	return grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: s.TLS.Certificates})),
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool, ServerName: "example.com"}))
}
