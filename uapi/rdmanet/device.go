package rdmanet

import (
	"context"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/loopback"
)

// device is one that dialers opened and share. The last user closes it.
type device struct {
	key    deviceKey
	device *uapi.Device
	users  int // guarded by devices.mu
}

// deviceKey says when two connections may have the same device: they leave from
// the same address of this host, both to this host or both to others. Where
// RDMASHIM_DEVICE names the device it is zero.
type deviceKey struct {
	local netip.Addr
	here  bool
}

var devices = struct {
	mu   sync.Mutex
	open map[deviceKey]*device // guarded by mu
}{open: map[deviceKey]*device{}}

// noRouteError is that a name has no address of an IP version, or the system no
// route to it.
type noRouteError struct{ error }

func (e *noRouteError) Unwrap() error { return e.error }

// openToward opens the device on the way to address, in the IP version of way,
// udp4 or udp6.
func openToward(ctx context.Context, way, address string) (*device, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	var udp net.Dialer // a socket that sends nothing
	route, err := udp.DialContext(ctx, way, net.JoinHostPort(host, strconv.Itoa(uapi.RoCEPort)))
	if err != nil {
		return nil, &noRouteError{loopback.Explain(err)}
	}
	local := route.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
	remote := route.RemoteAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
	if err := route.Close(); err != nil {
		return nil, err
	}
	key := deviceKey{local: local, here: local == remote || remote.IsLoopback()}
	if os.Getenv("RDMASHIM_DEVICE") != "" {
		key = deviceKey{}
	}
	devices.mu.Lock()
	defer devices.mu.Unlock()
	d := devices.open[key]
	if d == nil {
		c, err := uapi.OpenRoute(ctx, remote.String(), uapi.OpenConfig{})
		if err != nil {
			return nil, err
		}
		d = &device{key: key, device: c}
		devices.open[key] = d
	}
	d.users++
	return d, nil
}

// release ends a use of the device.
func (d *device) release() {
	devices.mu.Lock()
	d.users--
	last := d.users == 0
	if last {
		delete(devices.open, d.key)
	}
	devices.mu.Unlock()
	if last {
		_ = d.device.Close()
	}
}
