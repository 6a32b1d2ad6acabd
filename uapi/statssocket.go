package uapi

import (
	"slices"
	"sync"

	"github.com/rdmashim/rdmashim/uapi/stats"
)

// statsSocket lets other processes of the user read this one's devices.
var statsSocket socket

type socket struct {
	mu     sync.Mutex
	server *stats.Server // guarded by mu; nil: there is none, or it could not be made
}

// update opens the socket with the first open device that other
// processes may read, and closes it with the last. c was opened or closed. A
// socket that cannot be made fails nothing.
func (o *socket) update(d *Device) {
	if !d.where.StatsReadable() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch left := readable(); {
	case len(left) == 0 && o.server != nil:
		_ = o.server.Close()
		o.server = nil
	case len(left) > 0 && o.server == nil:
		server, err := stats.Serve(processName(), func() []stats.Device { return readStats(readable()) })
		if err != nil {
			d.log.Debug("no socket for rdmashim top: other processes cannot read the device's counters", "device", d.where.Name, "err", err)
			return
		}
		o.server = server
	}
}

// readable are the open devices that other processes may read.
func readable() []*Device {
	return slices.DeleteFunc(opened.all(), func(d *Device) bool { return !d.where.StatsReadable() })
}
