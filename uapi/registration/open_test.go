package registration_test

import (
	"context"
	"crypto/tls"
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/registration"
)

// elsewhere is an address that no interface has (RFC 5737).
const elsewhere = "192.0.2.1"

// TestOpenRefuses: a configuration that cannot work fails at Open, with an
// errno of its own and a text that says what there is or what to do.
func TestOpenRefuses(t *testing.T) {
	here := registration.TCP{Addr: loopback()}
	with := func(change func(*registration.Config)) registration.Config {
		c := secure(here)
		c.TLS = c.TLS.Clone()
		change(&c)
		return c
	}
	on := func(transport registration.Transport) registration.Config { return plain(transport) }
	for name, row := range map[string]struct {
		config registration.Config
		errno  error
		text   string
	}{
		"no transport":      {registration.Config{Insecure: true}, syscall.EINVAL, "set Soft, Kernel or TCP"},
		"neither":           {registration.Config{Transport: here}, syscall.EINVAL, "neither TLS nor Insecure"},
		"both":              {with(func(c *registration.Config) { c.Insecure = true }), syscall.EINVAL, "TLS and Insecure"},
		"no protocol":       {with(func(c *registration.Config) { c.TLS.NextProtos = nil }), syscall.ENOPROTOOPT, "set NextProtos"},
		"protocol twice":    {with(func(c *registration.Config) { c.Protocol = "x" }), syscall.EINVAL, "TLS.NextProtos"},
		"no certificate":    {with(func(c *registration.Config) { c.TLS.Certificates = nil }), syscall.ENOENT, "DialOnly"},
		"streams":           {with(func(c *registration.Config) { c.Streams.MaxRecordSize = 1 }), syscall.EINVAL, "MaxRecord"},
		"tcp name":          {on(registration.TCP{Addr: "localhost"}), syscall.EINVAL, `"localhost" is not the IP address`},
		"tcp any":           {on(registration.TCP{Addr: "0.0.0.0"}), syscall.EINVAL, `"0.0.0.0" is not the IP address`},
		"tcp elsewhere":     {on(registration.TCP{Addr: elsewhere}), syscall.EADDRNOTAVAIL, "the interfaces have 127.0.0.1"},
		"soft no address":   {on(registration.Soft{}), syscall.EINVAL, `"" is not the IP address`},
		"soft elsewhere":    {on(registration.Soft{Addr: elsewhere}), syscall.EADDRNOTAVAIL, "the interfaces have 127.0.0.1"},
		"soft option":       {on(registration.Soft{Addr: loopback(), Options: "los=1%"}), syscall.EINVAL, "los"},
		"soft ring":         {on(registration.Soft{Addr: loopback(), Rings: registration.Rings{Ring: 17}}), syscall.EINVAL, "power of two"},
		"kernel elsewhere":  {on(registration.Kernel{Addr: elsewhere}), syscall.ENODEV, "no RDMA device of the kernel has 192.0.2.1"},
		"kernel no address": {on(registration.Kernel{Addr: "rxe0"}), syscall.EINVAL, `"rxe0" is not the IP address`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := registration.Open(soon(t), row.config)
			require.ErrorIs(t, err, row.errno)
			require.ErrorContains(t, err, row.text)
			require.NotContains(t, err.Error(), "\n")
			var named *registration.Error
			require.ErrorAs(t, err, &named)
			require.Equal(t, "open", named.Op)
			if row.config.Transport != nil {
				require.Equal(t, row.config.Transport.Kind(), named.Transport)
				require.ErrorContains(t, err, "registration "+named.Transport)
			}
		})
	}
}

// TestOpenCancelled: a context that has ended opens nothing.
func TestOpenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := registration.Open(ctx, plain(registration.TCP{Addr: loopback()}))
	require.ErrorIs(t, err, context.Canceled)
}

// TestDialRefused: no listener is there, or it has another protocol.
func TestDialRefused(t *testing.T) {
	everywhere(t, func(t *testing.T, config registration.Config) {
		r := open(t, config)
		l := listen(t, r)
		addr := l.Addr().String()
		require.NoError(t, l.Close())
		_, err := r.Dial(soon(t), addr)
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.ErrorContains(t, err, "registration "+r.Kind()+": dial "+addr)

		l = listen(t, r)
		other := config
		if config.TLS != nil {
			other.TLS = config.TLS.Clone()
			other.TLS.NextProtos = []string{"other/1"}
		} else {
			other.Protocol = "other/1"
		}
		c, err := open(t, other).Dial(soon(t), l.Addr().String())
		switch {
		case config.TLS != nil:
			require.ErrorContains(t, err, "no application protocol")
			require.Eventually(t, func() bool { // it counts after the client was told
				n, last := l.Failed()
				return n == 1 && last != nil
			}, patience, time.Millisecond)
		case r.Kind() == rdma():
			require.ErrorIs(t, err, syscall.ECONNREFUSED)
		default: // never looked at
			require.NoError(t, err)
			require.NoError(t, c.CloseWithError(0, ""))
		}
	})
}

// TestListenRefuses: a port that is none or taken, and a registration that only
// dials.
func TestListenRefuses(t *testing.T) {
	everywhere(t, func(t *testing.T, config registration.Config) {
		r := open(t, config)
		l := listen(t, r)
		_, err := r.Listen(soon(t), int(l.Addr().Port()))
		require.ErrorIs(t, err, syscall.EADDRINUSE)
		_, err = r.Listen(soon(t), 65536)
		require.ErrorIs(t, err, syscall.EINVAL)

		config.DialOnly = true
		_, err = open(t, config).Listen(soon(t), 0)
		require.ErrorIs(t, err, syscall.EINVAL)
	})
}

// TestDialOnly: a registration that only dials needs no certificate.
func TestDialOnly(t *testing.T) {
	for _, transport := range transports {
		config := secure(transport)
		l := listen(t, open(t, config))
		config.DialOnly, config.TLS = true, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}
		client, _ := connect(t, open(t, config), l)
		require.Equal(t, protocol, client.ConnectionState().Protocol)
	}
}

// TestServerName: where TLS checks certificates, it is for the host that is
// dialled.
func TestServerName(t *testing.T) {
	config := secure(registration.TCP{Addr: "127.0.0.1"})
	l := listen(t, open(t, config))
	config.TLS = config.TLS.Clone()
	config.TLS.InsecureSkipVerify = false
	_, err := open(t, config).Dial(soon(t), l.Addr().String())
	var unknown *tls.CertificateVerificationError
	require.ErrorAs(t, err, &unknown)
	_, err = open(t, config).Dial(soon(t), "nonsense")
	require.Error(t, err)
}

// TestSilence: a client and a server that never shake hands are given up; the
// listener counts.
func TestSilence(t *testing.T) {
	config := secure(registration.TCP{Addr: loopback()})
	config.Streams.HandshakeIdleTimeout = 100 * time.Millisecond
	r := open(t, config)
	l := listen(t, r)
	client := must.Get(net.Dial("tcp", l.Addr().String()))(t)
	defer client.Close()
	_, err := client.Read(make([]byte, 1))
	require.Error(t, err)
	require.Eventually(t, func() bool { return r.Stats().Failed == 1 }, patience, time.Millisecond)

	server := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer server.Close()
	_, err = r.Dial(soon(t), server.Addr().String())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "TLS handshake")
	require.EqualValues(t, 2, r.Stats().Failed)
}

// TestSilentHost: connections of a host that say nothing, more than a listener
// has places, keep neither another host nor, in the end, that host out.
func TestSilentHost(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // the address is no other system's
	}
	config := secure(registration.TCP{Addr: loopback()})
	config.Streams.HandshakeIdleTimeout = time.Hour
	l := listen(t, open(t, config))
	silent := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 99, 0, 1)}}
	for i := range 300 {
		c, err := silent.Dial("tcp", l.Addr().String())
		if err != nil && i > 128 {
			break // it was refused before it was connected
		}
		require.NoError(t, err)
		defer c.Close()
	}
	config.Streams.HandshakeIdleTimeout = 0
	for range 3 {
		c := must.Get(open(t, config).Dial(soon(t), l.Addr().String()))(t)
		s := must.Get(l.Accept(soon(t)))(t)
		require.NoError(t, c.CloseWithError(0, ""))
		require.NoError(t, s.CloseWithError(0, ""))
	}
	n, last := l.Failed()
	require.NotZero(t, n)
	require.ErrorContains(t, last, "given to another address")
}
