package registration

import (
	"context"
	"net"
	"net/netip"

	"github.com/rdmashim/rdmashim/uapi/registration/internal/address"
)

// TCP is TCP from and to an address of this machine.
type TCP struct {
	Addr string // an IP address
}

// Kind is "tcp".
func (TCP) Kind() string { return "tcp" }

// Open shows that the address is this machine's by binding a socket to it.
func (t TCP) Open(_ context.Context, config *Config) (Datapath, error) {
	addr, err := address.Parse("tcp", t.Addr)
	if err != nil {
		return nil, err
	}
	c := &tcpCarrier{at: addr}
	l, err := c.listen(0)
	if err != nil {
		return nil, address.Explain(err)
	}
	return newMuxed(config, c), l.Close()
}

type tcpCarrier struct{ at netip.Addr }

func (c *tcpCarrier) addr() netip.Addr { return c.at }

func (c *tcpCarrier) listen(port int) (net.Listener, error) {
	return net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(c.at, uint16(port))))
}

func (c *tcpCarrier) dial(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(c.at, 0))}
	return d.DialContext(ctx, "tcp", addr)
}

func (c *tcpCarrier) describe(net.Conn, *ConnectionState) {}

func (c *tcpCarrier) count(conn net.Conn, b *Below) {
	retransmitted, rtt := tcpInfo(conn.(*net.TCPConn))
	b.Retransmitted += retransmitted
	b.measured(rtt)
}

func (c *tcpCarrier) countDevice(int, *Below) {}

func (c *tcpCarrier) abort(conn net.Conn) { _ = conn.(*net.TCPConn).SetLinger(0) }

func (c *tcpCarrier) close(context.Context) error { return nil }
