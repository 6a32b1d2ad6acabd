package quicudp_test

import (
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// relay is a UDP path that loses each nth packet of either direction, between
// one client and a server.
type relay struct {
	addr string
	lost atomic.Int64
}

func newRelay(t *testing.T, server netip.AddrPort, nth int) *relay {
	t.Helper()
	bind := func() *net.UDPConn {
		c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(server.Addr(), 0)))
		require.NoError(t, err)
		return c
	}
	front, back := bind(), bind()
	r := &relay{addr: front.LocalAddr().String()}
	var client atomic.Pointer[netip.AddrPort]
	ended := make(chan struct{}, 2)
	carry := func(in, out *net.UDPConn, to func(from netip.AddrPort) netip.AddrPort) {
		defer func() { ended <- struct{}{} }()
		buf := make([]byte, 1<<16)
		for n := 1; ; n++ {
			k, from, err := in.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			if n%nth == 0 {
				r.lost.Add(1)
				continue
			}
			_, _ = out.WriteToUDPAddrPort(buf[:k], to(from))
		}
	}
	go carry(front, back, func(from netip.AddrPort) netip.AddrPort {
		client.Store(&from)
		return server
	})
	go carry(back, front, func(netip.AddrPort) netip.AddrPort { return *client.Load() })
	t.Cleanup(func() {
		front.Close()
		back.Close()
		<-ended
		<-ended
	})
	return r
}
