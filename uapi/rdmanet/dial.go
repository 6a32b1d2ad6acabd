package rdmanet

import (
	"context"
	"errors"
	"net"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
)

// Dial connects to the listener of this package at addr, HOST:PORT, from the
// device on the way there, as a Dialer without a Device does. Errors are those
// of Dialer.DialContext.
func Dial(ctx context.Context, addr string, config Config) (*Conn, error) {
	d := Dialer{Config: config}
	c, err := d.dial(ctx, "rdma", addr)
	if err != nil {
		return nil, opError("dial", addr, err)
	}
	return c, nil
}

// Dialer makes connections. The zero value opens the device on the way to the
// peer by itself.
type Dialer struct {
	// Device is the device to dial from, which must stay open as long as its
	// connections. nil: the one that uapi.OpenRoute opens, once for all
	// connections from the same address of this host. It closes 100 ms behind
	// the end of the last of them, or at a CloseContext or a Flush.
	Device *uapi.Device
	Config Config
	// Fallback dials, too, when RDMA has made no connection after 250 ms, or as
	// soon as no device leads to the peer (ENODEV, ENETUNREACH, EHOSTUNREACH)
	// or no peer of this package answers there (ECONNREFUSED): a net.Dialer,
	// for TCP. The first connection is returned, and the other attempt
	// cancelled (RFC 8305). nil: none.
	Fallback interface {
		DialContext(ctx context.Context, network, address string) (net.Conn, error)
	}
}

// families are the IP versions of a network, as net.Dial names them for UDP, in
// the order in which they are tried.
var families = map[string][]string{
	"tcp": {"udp4", "udp6"}, "tcp4": {"udp4"}, "tcp6": {"udp6"},
	"rdma": {"udp4", "udp6"}, "rdma4": {"udp4"}, "rdma6": {"udp6"},
}

// Dial is DialContext without a context.
func (d *Dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialContext connects to the listener of this package at address, HOST:PORT.
// network is "rdma" or, for callers that know no other, "tcp"; with 4 or 6
// behind it, it chooses the device's IP version. It has the form of
// http.Transport's DialContext, and returns a *Conn or what Fallback returns.
//
// Errors are *net.OpError: ECONNREFUSED, ETIMEDOUT, ENODEV, ctx's own,
// *HandshakeError, and those of uapi.Device.Dial and uapi.OpenRoute; with a
// Fallback, those of both.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if d.Fallback != nil && ctx.Err() == nil && families[network] != nil {
		return d.race(ctx, network, address)
	}
	c, err := d.dial(ctx, network, address)
	if err != nil {
		return nil, opError("dial", address, err)
	}
	return c, nil
}

// GRPC has the form that grpc.WithContextDialer takes.
func (d *Dialer) GRPC(ctx context.Context, address string) (net.Conn, error) {
	return d.DialContext(ctx, "rdma", address)
}

func (d *Dialer) dial(ctx context.Context, network, address string) (c *Conn, err error) {
	ways := families[network]
	if ways == nil {
		return nil, net.UnknownNetworkError(network)
	}
	if err := d.Config.Check(); err != nil {
		return nil, err
	}
	if d.Device != nil {
		return d.connect(ctx, d.Device, nil, address)
	}
	for _, way := range ways {
		device, e := openToward(ctx, way, address)
		var none *noRouteError
		if errors.As(e, &none) && err != nil {
			break // the other IP version has been tried
		}
		if e == nil {
			if c, e = d.connect(ctx, device.device, device.release, address); e == nil {
				return c, nil
			}
			device.release()
		}
		err = e
		var refused *HandshakeError
		if ctx.Err() != nil || errors.As(err, &refused) {
			break
		}
	}
	return nil, err
}

func (d *Dialer) connect(ctx context.Context, device *uapi.Device, giveBack func(), address string) (*Conn, error) {
	ring, err := msgring.Dial(ctx, device, address, d.Config.rings())
	if err != nil {
		return nil, handshake(err)
	}
	return newConn(ring, giveBack), nil
}
