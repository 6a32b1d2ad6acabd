package stream

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
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

// Set reads "rdma:HOST:PORT", "tcp:HOST:PORT" or "unix:PATH", or a PORT alone.
func (p *place) Set(text string) error {
	network, address, _ := strings.Cut(text, ":")
	switch network {
	case "tcp", "rdma":
		if _, port, err := net.SplitHostPort((&place{network, address}).hostPort()); err != nil || port == "" {
			return errors.New(`want HOST:PORT or PORT after "` + network + `:"`)
		}
	case "unix":
		if address == "" {
			return errors.New(`want a PATH after "unix:"`)
		}
	default:
		return errors.New("want tcp:HOST:PORT, rdma:HOST:PORT or unix:PATH")
	}
	*p = place{network, address}
	return nil
}

// hostPort is the address, of a PORT alone on 127.0.0.1.
func (p *place) hostPort() string {
	if p.network == "unix" || strings.Contains(p.address, ":") {
		return p.address
	}
	return net.JoinHostPort("127.0.0.1", p.address)
}

// devices are those that RDMA goes by.
type devices struct {
	named *uapi.Context   // nil: rdmanet chooses one by the address
	all   []*uapi.Context // of a listener on every address

	config rdmanet.Config
}

// openDevices opens the named device, or those of a listener on every address.
// A plain soft device is put on the address that it listens on, and a listener
// at a PORT alone on the device's.
func openDevices(name string, listen *place, stderr io.Writer) (d devices, err error) {
	named := cmp.Or(name, os.Getenv("RDMASHIM_DEVICE")) != ""
	host, _, err := net.SplitHostPort(listen.address)
	every := err == nil && (host == "" || host == "0.0.0.0" || host == "::")
	switch err = nil; {
	case named && listen.network == "rdma" && !every:
		d.named, listen.address, err = cli.OpenToListen(listen.address, name, stderr)
	case named:
		d.named, err = cli.Open(name, stderr, uapi.OpenConfig{})
	case listen.network == "rdma" && every:
		d.all, err = peer.OpenToServe("", "", stderr)
	}
	listen.address = listen.hostPort()
	return d, err
}

// close waits a while for data that is on its way, and closes the device.
func (d devices) close() {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	_ = rdmanet.Flush(ctx)
	if d.named != nil {
		_ = d.named.Close()
	}
	for _, c := range d.all {
		_ = c.Close()
	}
	_ = uapi.Close() // the device that rdmanet.Listen opened
}

func (d devices) listen(ctx context.Context, at place) (net.Listener, error) {
	switch {
	case at.network != "rdma":
		return new(net.ListenConfig).Listen(ctx, at.network, at.address)
	case d.named != nil:
		return rdmanet.ListenOn(d.named, at.address, d.config)
	}
	return rdmanet.Listen(at.address, d.config)
}

func (d devices) dial(ctx context.Context, to place) (stream, error) {
	var dialer interface {
		DialContext(ctx context.Context, network, address string) (net.Conn, error)
	} = &net.Dialer{}
	if to.network == "rdma" {
		dialer = &rdmanet.Dialer{Context: d.named, Config: d.config}
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := dialer.DialContext(ctx, to.network, to.hostPort())
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
