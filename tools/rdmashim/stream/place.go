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

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// dialTimeout bounds how long a connection waits for its target.
const dialTimeout = 10 * time.Second

// Stream is a connection whose two directions end apart.
type Stream interface {
	net.Conn
	CloseWrite() error
}

// Place is where a listener listens, or a dialer dials, as a flag: on a network
// ("rdma", "tcp", "unix") at an address (HOST:PORT, PORT, a path).
type Place struct{ Network, Address string }

// String is the flag's text.
func (p *Place) String() string {
	if p.Network == "" {
		return ""
	}
	return p.Network + ":" + p.Address
}

// Type is the flag's.
func (*Place) Type() string { return "place" }

// Set reads "rdma:HOST:PORT", "tcp:HOST:PORT" or "unix:PATH", or a PORT alone.
func (p *Place) Set(text string) error {
	network, address, _ := strings.Cut(text, ":")
	switch network {
	case "tcp", "rdma":
		if _, port, err := net.SplitHostPort((&Place{network, address}).hostPort()); err != nil || port == "" {
			return errors.New(`want HOST:PORT or PORT after "` + network + `:"`)
		}
	case "unix":
		if address == "" {
			return errors.New(`want a PATH after "unix:"`)
		}
	default:
		return errors.New("want tcp:HOST:PORT, rdma:HOST:PORT or unix:PATH")
	}
	*p = Place{network, address}
	return nil
}

// hostPort is the address, of a PORT alone on 127.0.0.1.
func (p *Place) hostPort() string {
	if p.Network == "unix" || strings.Contains(p.Address, ":") {
		return p.Address
	}
	return net.JoinHostPort("127.0.0.1", p.Address)
}

// Devices are those that RDMA goes by.
type Devices struct {
	flags  cli.DeviceFlags
	config rdmanet.Config

	named *uapi.Device   // nil: rdmanet chooses one by the address
	all   []*uapi.Device // of a listener on every address
}

// AddFlags adds --device and --ring to a command.
func (d *Devices) AddFlags(cmd *cobra.Command) {
	d.flags.AddDevice(cmd)
	cli.BytesVar(cmd.Flags(), &d.config.Ring, "ring", "", 0, "bytes that an RDMA connection has on its way in each direction: a power of two (default: 1048576, on a kernel's device 262144)")
}

// Open opens the named device, or those of a listener on every address. A plain
// soft device is put on the address that it listens on, and a listener at a
// PORT alone on the device's. A dialer has no place to listen.
func (d *Devices) Open(listen *Place, stderr io.Writer) (err error) {
	if err := d.config.Check(); err != nil {
		return cli.Usagef("--ring: %w", err)
	}
	name := d.flags.Device
	named := cmp.Or(name, os.Getenv("RDMASHIM_DEVICE")) != ""
	host, _, err := net.SplitHostPort(listen.Address)
	every := err == nil && (host == "" || host == "0.0.0.0" || host == "::")
	switch err = nil; {
	case named && listen.Network == "rdma" && !every:
		d.named, listen.Address, err = cli.OpenToListen(listen.Address, name, stderr)
	case named:
		d.named, err = cli.Open(name, stderr, uapi.OpenConfig{})
	case listen.Network == "rdma" && every:
		d.all, err = peer.OpenToServe("", "", stderr)
	}
	listen.Address = listen.hostPort()
	return err
}

// Close waits a while for data that is on its way, and closes the devices.
func (d *Devices) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	_ = rdmanet.Flush(ctx)
	if d.named != nil {
		_ = d.named.Close()
	}
	for _, c := range d.all {
		_ = c.Close()
	}
	return uapi.Close() // the device that rdmanet.Listen opened
}

// Listen listens at a place.
func (d *Devices) Listen(ctx context.Context, at Place) (net.Listener, error) {
	switch {
	case at.Network != "rdma":
		return new(net.ListenConfig).Listen(ctx, at.Network, at.Address)
	case d.named != nil:
		return rdmanet.ListenOn(d.named, at.Address, d.config)
	}
	return rdmanet.Listen(at.Address, d.config)
}

// Dial connects to a place, within 10 s.
func (d *Devices) Dial(ctx context.Context, to Place) (Stream, error) {
	var dialer interface {
		DialContext(ctx context.Context, network, address string) (net.Conn, error)
	} = &net.Dialer{}
	if to.Network == "rdma" {
		dialer = &rdmanet.Dialer{Device: d.named, Config: d.config}
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := dialer.DialContext(ctx, to.Network, to.hostPort())
	if err != nil {
		return nil, err
	}
	return c.(Stream), nil
}

// Reset ends a connection so that its peer sees that it broke.
func Reset(c net.Conn) {
	if c, ok := c.(interface{ SetLinger(sec int) error }); ok {
		_ = c.SetLinger(0)
	}
	_ = c.Close()
}
