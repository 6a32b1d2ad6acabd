package stream

import (
	"context"
	"io"
	"net"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// Link is a place and the devices that lead there, for commands that put
// another protocol on a stream.
type Link struct {
	at      place
	devices devices
}

// OpenLink opens the device that a listener on an address, or a dialer to it,
// needs. The network is "tcp" or "rdma", the address HOST:PORT, or PORT on
// 127.0.0.1, and for a listener on the device's address if that is named.
func OpenLink(network, address, device string, listen bool, stderr io.Writer) (l *Link, err error) {
	l = new(Link)
	if err = l.at.Set(network + ":" + address); err != nil {
		return nil, cli.Usagef("%q: %w", address, err)
	}
	at := new(place)
	if listen {
		at = &l.at
	}
	l.devices, err = openDevices(device, at, stderr)
	return l, err
}

// Listen listens at the place.
func (l *Link) Listen(ctx context.Context) (net.Listener, error) { return l.devices.listen(ctx, l.at) }

// Dial connects to the place, within 10 s.
func (l *Link) Dial(ctx context.Context) (net.Conn, error) { return l.devices.dial(ctx, l.at) }

// Close waits a while for data that is on its way, and closes the devices.
func (l *Link) Close() { l.devices.close() }

// Reset ends a connection so that its peer sees that it broke.
func Reset(c net.Conn) { reset(c) }
