package registration_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http/httptest"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/qmux"
	"github.com/rdmashim/rdmashim/uapi/registration"
)

// patience bounds hangs, and is the idle time of connections: a busy machine
// ends none.
const patience = time.Minute

// protocol is the application protocol of the tests.
const protocol = "test/1"

// loopback is an address that other processes do not use.
func loopback() string {
	if runtime.GOOS != "linux" {
		return "127.0.0.1"
	}
	return fmt.Sprintf("127.102.%d.%d", os.Getpid()>>8&0xff, os.Getpid()&0xff)
}

// realDevice is a device of the kernel, which tests/guest names. Tests run on
// it instead of the soft device then: it holds the UDP port of all addresses.
var realDevice = os.Getenv("REGISTRATION_TEST_DEVICE")

// transports are what the tests run on.
var transports = map[string]registration.Transport{
	"tcp":  registration.TCP{Addr: loopback()},
	rdma(): onRDMA(registration.Rings{}),
}

// rdma is the kind of the transport that is RDMA.
func rdma() string {
	if realDevice != "" {
		return "kernel"
	}
	return "soft"
}

// onRDMA is the transport that is RDMA, with those sizes.
func onRDMA(rings registration.Rings) registration.Transport {
	if realDevice == "" {
		return registration.Soft{Addr: loopback(), Rings: rings}
	}
	return registration.Kernel{Addr: realAddr(), Rings: rings}
}

// realAddr is an address of realDevice, or "" if it has none.
func realAddr() string {
	list, _ := uapi.Devices()
	for _, d := range list {
		if d.Name == realDevice {
			return d.Address.Addr().String()
		}
	}
	return ""
}

// certificate is net/http's own for tests.
var certificate = sync.OnceValue(func() tls.Certificate {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	return server.TLS.Certificates[0]
})

// streams configures qmux as the tests need it.
var streams = qmux.Config{EnableDatagrams: true, MaxIdleTimeout: patience, HandshakeIdleTimeout: patience}

// secure is a configuration with TLS, both for servers and for clients.
func secure(transport registration.Transport) registration.Config {
	return registration.Config{
		Transport: transport, Streams: streams,
		TLS: &tls.Config{
			Certificates: []tls.Certificate{certificate()}, InsecureSkipVerify: true, NextProtos: []string{protocol},
		},
	}
}

// plain is a configuration without TLS.
func plain(transport registration.Transport) registration.Config {
	return registration.Config{Transport: transport, Streams: streams, Insecure: true, Protocol: protocol}
}

// forms are the configurations of a transport with and without TLS.
var forms = map[string]func(registration.Transport) registration.Config{"tls": secure, "plain": plain}

// everywhere runs a test on all transports, with and without TLS.
func everywhere(t *testing.T, f func(t *testing.T, config registration.Config)) {
	for name, transport := range transports {
		for form, config := range forms {
			t.Run(name+" "+form, func(t *testing.T) { f(t, config(transport)) })
		}
	}
}

// soon bounds a hang.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// open opens a registration for the test.
func open(t testing.TB, config registration.Config) *registration.Registration {
	t.Helper()
	r := must.Get(registration.Open(soon(t), config))(t)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// listen listens at a free port.
func listen(t testing.TB, r *registration.Registration) *registration.Listener {
	t.Helper()
	return must.Get(r.Listen(soon(t), 0))(t)
}

// connect makes a connection from one registration to a listener of another.
func connect(t testing.TB, from *registration.Registration, l *registration.Listener) (client, server *registration.Conn) {
	t.Helper()
	client = must.Get(from.Dial(soon(t), l.Addr().String()))(t)
	server = must.Get(l.Accept(soon(t)))(t)
	return client, server
}
