package stream

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/rdmashim/rdmashim/tools/rdmashim/internal/cli"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// dialTimeout bounds how long a connection waits for its target.
const dialTimeout = 10 * time.Second

// stream is a connection whose two directions end apart.
type stream interface {
	net.Conn
	CloseWrite() error
}

// place is where a listener listens, or a dialer dials, as a flag.
type place struct{ network, address string }

func (p *place) String() string {
	if p.network == "" {
		return ""
	}
	return p.network + ":" + p.address
}

func (*place) Type() string { return "place" }

// Set reads "rdma:HOST:PORT", "tcp:HOST:PORT" or "unix:PATH". A PORT alone is
// on 127.0.0.1.
func (p *place) Set(text string) error {
	network, address, _ := strings.Cut(text, ":")
	switch network {
	case "tcp", "rdma":
		if address != "" && !strings.Contains(address, ":") {
			address = net.JoinHostPort("127.0.0.1", address)
		}
		if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
			return errors.New("want HOST:PORT or PORT after " + network + ":")
		}
	case "unix":
		if address == "" {
			return errors.New("want a PATH after unix:")
		}
	default:
		return errors.New("want tcp:HOST:PORT, rdma:HOST:PORT or unix:PATH")
	}
	*p = place{network, address}
	return nil
}

// device is the device that RDMA goes by. Without a context rdmanet chooses one
// by the address.
type device struct{ context *uapi.Context }

// openDevice opens the named device; no name is rdmanet's choice. A plain soft
// device is put on the address that it listens on, or that the way to the
// target leaves from.
func openDevice(name string, listen, to place, stderr io.Writer) (d device, err error) {
	if name == "" {
		return d, nil
	}
	if kind, options, _ := strings.Cut(name, "?"); kind == "soft" {
		if addr := localAddr(listen, to); addr.IsValid() && !addr.IsUnspecified() {
			name = cli.WithOptions(cli.SoftAt(addr), options)
		}
	}
	d.context, err = cli.Open(name, stderr, uapi.OpenConfig{})
	return d, err
}

// localAddr is the address of this machine that RDMA goes by, if there is one
// that it must be. Toward this machine there is none: a listener may have it.
func localAddr(listen, to place) netip.Addr {
	if listen.network == "rdma" {
		at, _ := netip.ParseAddrPort(listen.address)
		return at.Addr()
	}
	route, err := net.Dial("udp", to.address) // sends nothing
	if err != nil {
		return netip.Addr{}
	}
	defer route.Close()
	local, remote := route.LocalAddr().(*net.UDPAddr), route.RemoteAddr().(*net.UDPAddr)
	if remote.IP.IsLoopback() || local.IP.Equal(remote.IP) {
		return netip.Addr{}
	}
	return local.AddrPort().Addr().Unmap()
}

// close waits a while for data that is on its way, and closes the device.
func (d device) close() {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	_ = rdmanet.Flush(ctx)
	if d.context != nil {
		_ = d.context.Close()
	}
	_ = uapi.Close() // what rdmanet.Listen opened
}

func (d device) listen(ctx context.Context, at place) (net.Listener, error) {
	switch {
	case at.network != "rdma":
		return new(net.ListenConfig).Listen(ctx, at.network, at.address)
	case d.context != nil:
		return rdmanet.ListenOn(d.context, at.address, rdmanet.Config{})
	}
	return rdmanet.Listen(at.address, rdmanet.Config{})
}

func (d device) dial(ctx context.Context, to place) (stream, error) {
	var dialer interface {
		DialContext(ctx context.Context, network, address string) (net.Conn, error)
	} = &net.Dialer{}
	if to.network == "rdma" {
		dialer = &rdmanet.Dialer{Context: d.context}
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := dialer.DialContext(ctx, to.network, to.address)
	if err != nil {
		return nil, err
	}
	return c.(stream), nil
}

// reset ends a connection so that its peer sees that it broke.
func reset(c net.Conn) {
	if c, ok := c.(interface{ SetLinger(sec int) error }); ok {
		_ = c.SetLinger(0)
	}
	_ = c.Close()
}
