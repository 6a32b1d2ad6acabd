package rdmanet

import (
	"context"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/rdmashim/rdmashim/uapi"
)

// device is one that dialers opened and share. Without users it stays open for
// a moment: to open it takes as long as three dials.
type device struct {
	key    deviceKey
	device *uapi.Device
	users  int         // guarded by devices.mu
	idle   *time.Timer // ends the moment
}

// keepFor is that moment.
const keepFor = 100 * time.Millisecond

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
	if d != nil && d.users == 0 && !d.works() {
		_ = d.device.Close()
		d = nil
	}
	if d == nil {
		c, err := uapi.OpenRoute(ctx, r.remote.String(), uapi.OpenConfig{})
		if err != nil {
			return nil, err
		}
		d = &device{key: key, device: c}
		d.idle = time.AfterFunc(keepFor, func() { closeIdle(d) })
		devices.open[key] = d
	}
	d.idle.Stop()
	d.users++
	return d, nil
}

// works reports whether a device that had no user is as it was.
func (d *device) works() bool {
	info, err := d.device.QueryDevice()
	return err == nil && info.PortState == uapi.PortActive
}

// release ends a use of the device.
func (d *device) release() {
	devices.mu.Lock()
	defer devices.mu.Unlock()
	if d.users--; d.users == 0 {
		d.idle.Reset(keepFor)
	}
}

// closeIdle closes a device that has no users, or all of them for nil.
func closeIdle(which *device) {
	var idle []*device
	devices.mu.Lock()
	for key, d := range devices.open {
		if d.users == 0 && (which == nil || which == d) {
			d.idle.Stop()
			delete(devices.open, key)
			idle = append(idle, d)
		}
	}
	devices.mu.Unlock()
	for _, d := range idle {
		_ = d.device.Close()
	}
}
