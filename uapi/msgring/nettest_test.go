package msgring_test

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/net/nettest"

	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// netConn gives a Conn the addresses of a net.Conn.
type netConn struct{ *msgring.Conn }

func (c netConn) LocalAddr() net.Addr  { return addr(c.Info().LocalAddr) }
func (c netConn) RemoteAddr() net.Addr { return addr(c.Info().RemoteAddr) }

func addr(a netip.AddrPort) net.Addr { return net.TCPAddrFromAddrPort(a) }

// TestNetConn: with addresses, a connection of bytes is a net.Conn.
func TestNetConn(t *testing.T) {
	x, y := uapitest.Pair(t, "")
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		a, b := connect(t, x, y, msgring.Config{Ring: 16 << 10})
		return netConn{a}, netConn{b}, func() {
			_ = a.CloseContext(context.Background())
			_ = b.CloseContext(context.Background())
		}, nil
	})
}
