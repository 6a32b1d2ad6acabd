package uapi

import (
	"context"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// named lets a host name have addresses for the length of a test.
func named(t *testing.T, name string, addrs ...string) {
	old := lookupIP
	t.Cleanup(func() { lookupIP = old })
	lookupIP = func(_ context.Context, _, host string) ([]netip.Addr, error) {
		if host != name {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
		var list []netip.Addr
		for _, a := range addrs {
			list = append(list, netip.MustParseAddr(a))
		}
		return list, nil
	}
}

// simAt opens a device at an address of a network.
func simAt(t *testing.T, net, addr string) *Device {
	d := must.Get(Open("sim:"+addr+"?net="+net, OpenConfig{}))(t)
	t.Cleanup(func() {
		require.Empty(t, d.OpenHandles())
		require.NoError(t, d.Close())
	})
	return d
}

// accepting accepts the listener's requests until the test ends.
func accepting(t *testing.T, l *Listener) {
	s := serveEach(l)
	t.Cleanup(func() {
		l.Close()
		s.all.Wait()
	})
}

// TestDialListenerAddr: a listener's Addr can be dialled, from its own device
// and from another of the process, although it is a wildcard.
func TestDialListenerAddr(t *testing.T) {
	a, b := twoDevices(t, "")
	l := must.Get(b.Listen(":0", ListenConfig{}))(t)
	require.True(t, l.Addr().Addr().IsUnspecified())
	accepting(t, l)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	for _, addr := range []string{l.Addr().String(), "0.0.0.0:" + port, ":" + port} {
		for _, d := range []*Device{a, b} {
			qp, err := d.Dial(t.Context(), addr, DialConfig{})
			require.NoError(t, err, addr)
			info := must.Get(d.QueryConn(qp))(t)
			require.Equal(t, addrOf(b), info.RemoteAddr.Addr())
			require.NoError(t, d.DestroyQP(qp))
		}
	}
}

// TestListenName: a name stands for the address that the device has, of
// whichever IP version.
func TestListenName(t *testing.T) {
	named(t, "localhost", "2001:db8::1", "10.1.0.9", "10.1.0.1")
	for _, addr := range []string{"10.1.0.1", "2001:db8::1"} {
		d := simAt(t, "listen-name", addr)
		l := must.Get(d.Listen("localhost:0", ListenConfig{}))(t)
		require.Equal(t, addr, l.Addr().Addr().String())
		same := must.Get(Listen("localhost:0", ListenConfig{}))(t)
		require.Equal(t, addr, same.Addr().Addr().String())
		require.NoError(t, same.Close())
		require.NoError(t, l.Close())
		require.NoError(t, d.Close())
	}
	d := simAt(t, "listen-name", "10.1.0.2")
	_, err := d.Listen("localhost:0", ListenConfig{})
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	_, err = d.Listen("nobody:0", ListenConfig{})
	var dns *net.DNSError
	require.ErrorAs(t, err, &dns)
}

// TestDialTriesAll: of a name's addresses one is silent, one refuses, one is of
// the other IP version and one answers. Each attempt has its share of the time,
// the receives are posted once.
func TestDialTriesAll(t *testing.T) {
	named(t, "peer", "2001:db8::9", "10.1.0.8", "10.1.0.3", "10.1.0.2")
	synctest.Test(t, func(t *testing.T) {
		a, b := simAt(t, "all", "10.1.0.1"), simAt(t, "all", "10.1.0.2")
		simAt(t, "all", "10.1.0.3") // no listener there
		l := must.Get(b.Listen(":7471", ListenConfig{}))(t)
		accepting(t, l)
		prepared := 0
		start := time.Now()
		config := DialConfig{Prepare: func(QP) error { prepared++; return nil }}
		qp := must.Get(a.Dial(t.Context(), "peer:7471", config))(t)
		require.Equal(t, 1, prepared)
		share := DefaultConnectTimeout / 4
		require.GreaterOrEqual(t, time.Since(start), share)
		require.Less(t, time.Since(start), share+time.Second)
		info := must.Get(a.QueryConn(qp))(t)
		require.Equal(t, "10.1.0.2:7471", info.RemoteAddr.String())
		require.NoError(t, a.DestroyQP(qp))

		// The error tells the answers of all addresses, within ctx.
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		start = time.Now()
		_, err := a.Dial(ctx, "peer:1", DialConfig{})
		require.ErrorIs(t, err, ErrRefused)
		require.ErrorIs(t, err, ErrUnreachable)
		require.ErrorIs(t, err, syscall.EAFNOSUPPORT)
		for _, part := range []string{"10.1.0.8 from 10.1.0.1", "the peer does not answer for 5s", "10.1.0.3", "10.1.0.2", "2001:db8::9"} {
			require.ErrorContains(t, err, part)
		}
		require.Less(t, time.Since(start), 6*time.Second)
	})
}

// TestDialStops: a refusal by the program at an address, an error of Prepare
// and the end of ctx are final.
func TestDialStops(t *testing.T) {
	named(t, "peer", "10.1.0.2", "10.1.0.3")
	synctest.Test(t, func(t *testing.T) {
		a, b, d := simAt(t, "stop", "10.1.0.1"), simAt(t, "stop", "10.1.0.2"), simAt(t, "stop", "10.1.0.3")
		refusing := must.Get(b.Listen(":1", ListenConfig{}))(t)
		defer refusing.Close()
		l := must.Get(d.Listen(":1", ListenConfig{}))(t)
		accepting(t, l)
		go func() {
			if r, err := refusing.Accept(t.Context()); err == nil {
				_ = r.Reject(0, nil)
			}
		}()
		var rejected *RejectError
		_, err := a.Dial(t.Context(), "peer:1", DialConfig{})
		require.ErrorAs(t, err, &rejected)
		require.Equal(t, RejectedByProgram, rejected.Reason)
		prepared := 0
		_, err = a.Dial(t.Context(), "peer:1", DialConfig{Prepare: func(QP) error { prepared++; return syscall.ENETUNREACH }})
		require.ErrorIs(t, err, syscall.ENETUNREACH)
		require.Equal(t, 1, prepared)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = a.Dial(ctx, "peer:1", DialConfig{})
		require.ErrorIs(t, err, context.Canceled)
	})
}

// TestListenErrors: an address that the device does not have and a port that is
// taken are told once, without the calls beneath.
func TestListenErrors(t *testing.T) {
	d := simAt(t, "listen-errors", "10.1.0.1")
	_, err := d.Listen("10.1.0.2:7000", ListenConfig{})
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	require.EqualError(t, err, "rdma Listen 10.1.0.2:7000: on sim:10.1.0.1?net=listen-errors: the device has the address 10.1.0.1, not 10.1.0.2 (cannot assign requested address)")
	l := must.Get(d.Listen(":7000", ListenConfig{}))(t)
	defer l.Close()
	for _, addr := range []string{":7000", "10.1.0.1:7000"} {
		_, err = d.Listen(addr, ListenConfig{})
		require.ErrorIs(t, err, syscall.EADDRINUSE)
		require.EqualError(t, err, "rdma Listen "+addr+": on sim:10.1.0.1?net=listen-errors: port 7000 is taken by another listener (address already in use)")
	}
	_, err = d.Dial(t.Context(), "10.1.0.2:1", DialConfig{LocalAddr: netip.MustParseAddrPort("10.1.0.9:0")})
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	require.NotContains(t, err.Error(), "RESOLVE_ADDR")
}
