package rdmanet_test

import (
	"context"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/link/udp"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/wiretest"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/msgring/core"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// TestDialErrors: a table of peers, and the errors that users of TCP expect.
func TestDialErrors(t *testing.T) {
	h := softHost(t, rdmanet.Config{Service: "time"})
	plain := must.Get(h.server.Listen(":0", uapi.ListenConfig{}))(t) // a program that rejects
	defer plain.Close()
	go func() {
		for {
			r, err := plain.Accept(context.Background())
			if err != nil {
				return
			}
			_ = r.Reject(0, []byte("go away"))
		}
	}()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	host, _, err := net.SplitHostPort(h.addr)
	require.NoError(t, err)
	rejects := h.beside(port(plain.Addr().String()))
	for _, c := range []struct {
		name, network, addr string
		ctx                 context.Context
		config              rdmanet.Config
		want                error
	}{
		{"nobody listens", "rdma", h.beside("9"), nil, rdmanet.Config{}, syscall.ECONNREFUSED},
		{"the program rejects", "tcp", rejects, nil, rdmanet.Config{}, syscall.ECONNREFUSED},
		{"another service", "rdma", h.addr, nil, rdmanet.Config{Service: "date"}, syscall.ECONNREFUSED},
		{"canceled", "rdma", h.addr, canceled, rdmanet.Config{}, context.Canceled},
		{"a network of another kind", "unix", h.addr, nil, rdmanet.Config{}, net.UnknownNetworkError("unix")},
		{"no port", "rdma", host, nil, rdmanet.Config{}, syscall.EINVAL},
		{"an odd ring", "rdma", h.addr, nil, rdmanet.Config{Ring: 12345}, syscall.EINVAL},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := rdmanet.Dialer{Device: h.Device, Config: c.config}
			ctx := c.ctx
			if ctx == nil {
				ctx = limited(t)
			}
			conn, err := d.DialContext(ctx, c.network, c.addr)
			require.Nil(t, conn)
			requireOpError(t, err, "dial", c.want)
			require.Contains(t, err.Error(), c.addr)
		})
	}
}

func port(addr string) string {
	_, p, _ := net.SplitHostPort(addr)
	return p
}

// TestHandshakeError: a peer that speaks otherwise is named with both versions,
// and the listener counts it.
func TestHandshakeError(t *testing.T) {
	virtual(t, func(t *testing.T) {
		h := newHost(t, rdmanet.Config{Service: "time"})
		h.Config.Service = "date"
		_, err := h.DialContext(limited(t), "rdma", h.addr)
		requireOpError(t, err, "dial", uapi.ErrRefused)
		var e *rdmanet.HandshakeError
		require.ErrorAs(t, err, &e)
		require.Equal(t, []any{msgring.Version, "service"}, []any{e.Version, e.Reason})
		require.Contains(t, err.Error(), "of version 1, refuses this end, of version 1: hello refused (service)")
		h.Config.Service = "time"
		x, y := h.join(t)
		n, last := h.Failed()
		require.EqualValues(t, 1, n)
		requireOpError(t, last, "accept", syscall.ECONNREFUSED)
		require.NoError(t, x.Close())
		require.NoError(t, y.Close())
	})
}

// TestListenersKeepAlive: the connections that a listener accepts ask their
// idle peers as its Config says, whichever call made it.
func TestListenersKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := open(t, "sim:10.64.1.1?net=keepalive"), open(t, "sim:10.64.1.2?net=keepalive")
		dialer := rdmanet.Dialer{Device: client, Config: rdmanet.Config{KeepAlive: uapi.None}}
		on := func(addr string, config rdmanet.Config) (*rdmanet.Listener, error) {
			return rdmanet.ListenOn(server, addr, config)
		}
		for _, listen := range []func(string, rdmanet.Config) (*rdmanet.Listener, error){rdmanet.Listen, on} {
			for interval, want := range map[time.Duration]uint64{uapi.None: 0, time.Minute: 60, 0: 720} {
				l := must.Get(listen("10.64.1.1:0", rdmanet.Config{KeepAlive: interval}))(t)
				x := must.Get(dialer.DialContext(limited(t), "rdma", l.Addr().String()))(t)
				y := must.Get(l.Accept())(t)
				synctest.Wait()
				before := must.Get(server.Counters())(t)
				time.Sleep(time.Hour) // of the bubble
				probes := must.Get(server.Counters())(t).Since(before).Summarize().SentPackets
				require.InDelta(t, want, probes, 5, "in an hour, by %v", interval)
				for _, c := range []net.Conn{x, y} {
					require.NoError(t, c.(*rdmanet.Conn).CloseContext(limited(t)))
				}
				require.NoError(t, l.Close())
			}
		}
	})
}

// fallback notes the addresses that it is asked for.
type fallback struct {
	network, addr string
}

func (f *fallback) DialContext(_ context.Context, network, addr string) (net.Conn, error) {
	f.network, f.addr = network, addr
	x, y := net.Pipe()
	_ = y.Close()
	return x, nil
}

// TestFallback: the fallback is used when no listener answers by RDMA, and else
// not.
func TestFallback(t *testing.T) {
	h := softHost(t, rdmanet.Config{})
	var f fallback
	h.Dialer.Fallback = &f
	x, y := h.join(t)
	require.Zero(t, f, "a peer answers by RDMA")
	require.NoError(t, y.SetLinger(0))
	require.NoError(t, y.Close())
	_, err := x.Read(make([]byte, 1))
	require.Error(t, err)
	require.NoError(t, x.Close())
	require.Zero(t, f, "a connection was there")

	nobody := h.beside("9")
	c := must.Get(h.DialContext(limited(t), "rdma4", nobody))(t)
	require.NoError(t, c.Close())
	require.Equal(t, fallback{"tcp4", nobody}, f)

	f = fallback{}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = h.DialContext(canceled, "tcp", nobody)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, f, "the caller gave up")
}

// TestDeviceOfItsOwn: a Dialer without a Device opens one for all
// connections, and the end of the last one closes it.
func TestDeviceOfItsOwn(t *testing.T) {
	if os.Getenv("RDMASHIM_DEVICE") != "" {
		t.Skip("RDMASHIM_DEVICE names the device")
	}
	h := softHost(t, rdmanet.Config{})
	h.Device = nil
	x, xPeer := h.join(t)
	y, yPeer := h.join(t)
	device := x.Device()
	require.Same(t, device, y.Device())
	require.Equal(t, h.addr, x.RemoteAddr().String())
	require.Equal(t, "rdma", x.RemoteAddr().Network())
	require.Equal(t, x.LocalAddr(), xPeer.RemoteAddr())
	require.NoError(t, x.CloseContext(limited(t)))
	_, err := device.QueryDevice()
	require.NoError(t, err, "y has it still")
	require.NoError(t, y.CloseContext(limited(t)))
	_, err = device.QueryDevice()
	require.ErrorIs(t, err, net.ErrClosed)
	c, err := rdmanet.Dial(limited(t), h.beside("9"), rdmanet.Config{})
	require.Nil(t, c)
	requireOpError(t, err, "dial", syscall.ECONNREFUSED)
	require.NoError(t, xPeer.Close())
	require.NoError(t, yPeer.Close())
}

// forge sends n requests, of this protocol and in the name of an address that
// never confirms.
func forge(t *testing.T, h *host, n int) {
	t.Helper()
	to := must.Get(netip.ParseAddrPort(h.addr))(t)
	from := netip.AddrFrom4([4]byte{127, 99, byte(os.Getpid() >> 8), byte(os.Getpid())})
	l := must.Get(udp.Listen(netip.AddrPortFrom(from, uapi.RoCEPort), udp.Options{}))(t)
	defer l.Close()
	for i := range n {
		forgeFrom(t, l, to, i)
	}
}

// forgeFrom sends request number n, by a link of its own, to a listener.
func forgeFrom(t *testing.T, l link.Link, to netip.AddrPort, n int) {
	t.Helper()
	const userData = 56 // at the end of a REQ
	hello := core.Hello{Mode: core.Bytes, Quantum: 256, Addr: 4096, RKey: 1, Ring: core.MinRing, Controls: core.Controls, Longest: core.MinRing / 4}
	mad := wiretest.Request(l.Caps().Local.Addr(), to.Addr(), to.Port(), n)
	hello.Append(mad[len(mad)-userData:][:0], false)
	packet := link.Packet{Peer: netip.AddrPortFrom(to.Addr(), uapi.RoCEPort), Head: wiretest.Datagram(mad)}
	require.NoError(t, l.Send([]link.Packet{packet}))
}

// TestListenerClose ends Accept, and connections that it did not return.
func TestListenerClose(t *testing.T) {
	virtual(t, func(t *testing.T) {
		h := newHost(t, rdmanet.Config{})
		c := must.Get(h.DialContext(limited(t), "rdma", h.addr))(t)
		l := must.Get(rdmanet.ListenOn(h.server, ":0", rdmanet.Config{}))(t)
		accepting := make(chan error)
		go func() {
			_, err := l.Accept()
			accepting <- err
		}()
		require.NoError(t, l.Close())
		requireOpError(t, <-accepting, "accept", net.ErrClosed)
		require.ErrorIs(t, l.Close(), net.ErrClosed)

		_, err := rdmanet.ListenOn(h.server, h.addr, rdmanet.Config{})
		requireOpError(t, err, "listen", syscall.EADDRINUSE)
		_, err = rdmanet.ListenOn(h.server, ":0", rdmanet.Config{Ring: 12345})
		requireOpError(t, err, "listen", syscall.EINVAL)

		require.NoError(t, h.Listener.Close())
		_, err = c.Read(make([]byte, 1))
		requireOpError(t, err, "read", syscall.ECONNRESET)
		require.NoError(t, c.Close())
	})
}
