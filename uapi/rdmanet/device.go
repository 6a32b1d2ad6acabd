package rdmanet

import (
	"context"
	"net"
	"net/netip"
	"os"
	"sync"

	"github.com/rdmashim/rdmashim/uapi"
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

// openToward opens the device on the way to address, in the IP version of way,
// udp4 or udp6.
func openToward(ctx context.Context, way, address string) (*device, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	r, err := routes.find(ctx, way, host)
	if err != nil {
		return nil, err
	}
	key := deviceKey{local: r.local, here: r.local == r.remote || r.remote.IsLoopback()}
	if os.Getenv("RDMASHIM_DEVICE") != "" {
		key = deviceKey{}
	}
	devices.mu.Lock()
	defer devices.mu.Unlock()
	d := devices.open[key]
	if d == nil {
		c, err := uapi.OpenRoute(ctx, r.remote.String(), uapi.OpenConfig{})
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
