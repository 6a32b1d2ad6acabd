package quicudp_test

import (
	"context"
	"net"
	"net/netip"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/registration/quicudp"
)

// opening returns the first packet of a new connection.
func opening(t *testing.T, dial func(ctx context.Context, addr string)) []byte {
	t.Helper()
	silent := must.Get(net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))(t)
	defer silent.Close()
	ctx, cancel := context.WithCancel(soon(t))
	left := make(chan struct{})
	go func() {
		defer close(left)
		dial(ctx, silent.LocalAddr().String())
	}()
	packet := make([]byte, 1<<16)
	n := must.Get(silent.Read(packet))(t)
	cancel()
	<-left
	return packet[:n]
}

// TestStrangers: of clients that begin handshakes and do not go on, from many
// addresses, a listener keeps a bounded number and asks the others to prove
// their address; noise is passed over; and honest clients are served.
func TestStrangers(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // the addresses are no other system's
	}
	t.Parallel()
	r := open(t, quicudp.UDP{Addr: here()})
	l := must.Get(r.Listen(soon(t), 0))(t)
	const strangers = 200
	kept := 0
	for i := range strangers {
		packet := opening(t, func(ctx context.Context, addr string) { _, _ = r.Dial(ctx, addr) })
		at := netip.AddrFrom4([4]byte{127, 103, byte(i >> 8), byte(i)})
		c := must.Get(net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(at, 0)), net.UDPAddrFromAddrPort(l.Addr())))(t)
		defer c.Close()
		for n := 1; n < len(packet); n += len(packet) / 4 {
			must.Get(c.Write(packet[:n]))(t)
		}
		must.Get(c.Write(packet))(t)
		must.Get(c.Read(packet))(t)
		if packet[0]>>4 != 0xf { // RFC 9000, 17.2.5: a Retry packet
			kept++
		}
	}
	require.Equal(t, 32, kept)
	for range 3 {
		c := must.Get(r.Dial(soon(t), l.Addr().String()))(t)
		s := must.Get(l.Accept(soon(t)))(t)
		exchange(t, c, s, 1, 1000)
	}
}
