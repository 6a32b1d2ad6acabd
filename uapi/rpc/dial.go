package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/stats"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rpc/session"
)

// Dial makes a ClientConn to the server at addr, HOST:PORT. It does not wait
// for a connection: the first call does, and connects again after a break.
//
// Errors: those of uapi.OpenRoute, where config has neither a Device nor
// Connect; EINVAL for an invalid configuration or an address without a port.
func Dial(ctx context.Context, addr string, config ClientConfig) (_ *ClientConn, err error) {
	c := &ClientConn{
		config: config, target: addr, conn: context.Background(),
		unary:  chain(config.UnaryInterceptors, joinUnaryClient),
		stream: chain(config.StreamInterceptors, joinStreamClient),
	}
	device := config.Device
	if device == nil && config.Session.Connect == nil {
		if device, err = uapi.OpenRoute(ctx, addr, uapi.OpenConfig{}); err != nil {
			return nil, err
		}
		c.device = device
	}
	if c.session, err = session.Dial(device, addr, config.Session); err != nil {
		return nil, errors.Join(err, c.closeDevice())
	}
	if c.unary != nil || c.stream != nil {
		c.named, err = grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("rpc: target %s: %w", addr, err), c.session.Close(), c.closeDevice())
		}
	}
	local, remote := c.addrs()
	for _, h := range config.StatsHandlers {
		c.conn = h.TagConn(c.conn, &stats.ConnTagInfo{LocalAddr: local, RemoteAddr: remote})
	}
	for _, h := range config.StatsHandlers {
		h.HandleConn(c.conn, &stats.ConnBegin{Client: true})
	}
	return c, nil
}

// Session returns the session that carries the calls. It does what gRPC has no
// words for.
func (c *ClientConn) Session() *session.Client { return c.session }

// Addr is the address of an end.
type Addr struct{ netip.AddrPort }

// Network is "rdma".
func (Addr) Network() string { return "rdma" }

// addrs are those of the last connection; before the first one the server's is
// the address that Dial was given.
func (c *ClientConn) addrs() (local, remote net.Addr) {
	l, r := Addr{c.session.LocalAddr()}, Addr{c.session.RemoteAddr()}
	if !r.IsValid() {
		r.AddrPort, _ = netip.ParseAddrPort(c.target)
	}
	return l, r
}

func (c *ClientConn) closeDevice() error {
	if c.device == nil {
		return nil
	}
	return c.device.Close()
}
