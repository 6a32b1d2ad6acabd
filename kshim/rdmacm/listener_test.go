package rdmacm

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/kerneltest"
	"github.com/rdmashim/rdmashim/tests/must"
)

// listen serves the address; each request goes to serve, in turn.
func listen(t *testing.T, c *Channel, serve func(*Request)) *Listener {
	t.Helper()
	l := must.Get(c.Listen(server, 0, Options{}))(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			r, err := l.Accept(context.Background())
			if err != nil {
				return
			}
			serve(r)
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l
}

func TestListener(t *testing.T) {
	k := newFake(t)
	fetched := make(chan struct{}, 3)
	k.After = func(c *kerneltest.Call) {
		var ev abi.UCMEventResp
		if c.Cmd == abi.UCMCmdGetEvent && ev.Parse(c.Out) == nil && ev.Event == abi.UCMEventConnectRequest {
			fetched <- struct{}{}
		}
	}
	a, b := k.open(), k.open()
	must.Fail(b.Listen(netip.AddrPort{}, 0, Options{}))(t, syscall.EAFNOSUPPORT)
	require.Zero(t, k.IDs())
	l := must.Get(b.Listen(netip.MustParseAddrPort("0.0.0.0:0"), 2, Options{}))(t)
	require.NotZero(t, l.Addr().Port())
	must.Fail(b.Listen(l.Addr(), 2, Options{}))(t, syscall.EADDRNOTAVAIL, "a wildcard has the port")
	to := netip.AddrPortFrom(server.Addr(), l.Addr().Port())
	ends := make(chan error, 3)
	for range 3 {
		go func() {
			id, err := a.Resolve(t.Context(), nowhere, to, Options{})
			if err == nil {
				_, err = id.Connect(t.Context(), newFakeQP(1), ConnParam{})
				err = errors.Join(err, id.Destroy())
			}
			ends <- err
		}()
		<-fetched // the fake kernel, which does not ask again, has room for two
	}
	require.ErrorIs(t, <-ends, syscall.ECONNREFUSED, "no room")
	r := must.Get(l.Accept(t.Context()))(t)
	route := must.Get(r.Route())(t)
	require.Equal(t, "10.0.0.1", route.Remote.Addr().String())
	require.NoError(t, r.Destroy(), "refuses, too")
	require.ErrorIs(t, <-ends, syscall.ECONNREFUSED)
	waiting := make(chan error, 1)
	require.NoError(t, l.Close())
	require.ErrorIs(t, <-ends, syscall.ECONNREFUSED, "nobody took it")
	require.NoError(t, l.Close())
	must.Fail(l.Accept(t.Context()))(t, net.ErrClosed)
	require.Zero(t, k.IDs())

	for _, end := range []func(*Listener) error{
		(*Listener).Close,
		func(*Listener) error { return b.Close() },
	} {
		l := must.Get(b.Listen(server, 0, Options{}))(t)
		go func() {
			_, err := l.Accept(context.Background())
			waiting <- err
		}()
		require.NoError(t, end(l))
		require.ErrorIs(t, <-waiting, net.ErrClosed)
	}
}
