package quicudp_test

import (
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// relay is a UDP path between one client and a server. In either direction it
// loses each 100th packet, doubles each 37th, and lets each 23rd be overtaken.
type relay struct {
	addr  string
	lost  atomic.Int64
	dead  atomic.Bool // it loses all
	sound atomic.Bool // it loses nothing
}

func newRelay(t *testing.T, server netip.AddrPort) *relay {
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
		buf, held := make([]byte, 1<<16), []byte(nil)
		for n := 1; ; n++ {
			k, from, err := in.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			next := to(from)
			switch {
			case r.dead.Load():
				continue
			case r.sound.Load():
			case n%100 == 0:
				r.lost.Add(1)
				continue
			case n%23 == 0:
				held = slices.Clone(buf[:k])
				continue
			case n%37 == 0:
				_, _ = out.WriteToUDPAddrPort(buf[:k], next)
			}
			_, _ = out.WriteToUDPAddrPort(buf[:k], next)
			if held != nil {
				_, _ = out.WriteToUDPAddrPort(held, next)
				held = nil
			}
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
