package device

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/rdmashim/rdmashim/uapi/stats"
)

// statsSocket lets other processes of the user read this one's devices.
type statsSocket struct {
	mu     sync.Mutex
	server *stats.Server // guarded by mu; nil: there is none, or it could not be made
}

// update opens the socket with the first device of a list that other processes
// may read, and closes it with the last. d came or went. A socket that cannot
// be made fails nothing.
func (o *statsSocket) update(d *Device, list func() []*Device, log *slog.Logger) {
	if !d.readable() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch left := readable(list()); {
	case len(left) == 0 && o.server != nil:
		_ = o.server.Close()
		o.server = nil
	case len(left) > 0 && o.server == nil:
		server, err := stats.Serve(processName(), func() []stats.Device { return mini().read(readable(list())) })
		if err != nil {
			log.Debug("no socket for rdmashim top: other processes cannot read the device's counters", "device", d.Name, "err", err)
			return
		}
		o.server = server
	}
}

func processName() string { return filepath.Base(os.Args[0]) }

// readable are the devices that other processes may read.
func readable(list []*Device) []*Device {
	return slices.DeleteFunc(list, func(d *Device) bool { return !d.readable() })
}

// readable reports whether other processes may read the device's counters. One
// that can only be looked at counts nothing, and one that takes requests for
// others is none that a program opened.
func (d *Device) readable() bool {
	return d.Spec.stats && !d.Spec.unbound && d.Spec.role != roleSuccessor
}
