package uapi

import (
	"log/slog"
	"slices"
	"sync"

	"github.com/rdmashim/rdmashim/uapi/stats"
)

// offers is what other processes of the user may read of this one: a socket while there is a device that is offered.
var offers statsOffer

type statsOffer struct {
	mu       sync.Mutex
	stations []*station    // guarded by mu
	server   *stats.Server // guarded by mu; nil: there is none, or it could not be made
}

// add offers a device. That it cannot be offered is no reason not to have it.
func (o *statsOffer) add(s *station, log *slog.Logger) {
	if s.stats == nil || !s.spec.offersStats() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stations = append(o.stations, s)
	if o.server != nil {
		return
	}
	server, err := stats.Serve(processName(), o.read)
	if err != nil {
		log.Debug("no socket for rdmashim top: other processes cannot read the device's counters", "device", s.name, "err", err)
		return
	}
	o.server = server
}

// remove ends the offer of a device, and with the last one the socket.
func (o *statsOffer) remove(s *station) {
	o.mu.Lock()
	i := slices.Index(o.stations, s)
	if i < 0 {
		o.mu.Unlock()
		return
	}
	o.stations = slices.Delete(o.stations, i, i+1)
	var server *stats.Server
	if len(o.stations) == 0 {
		server, o.server = o.server, nil
	}
	o.mu.Unlock()
	if server != nil {
		server.Close() // waits for read, which takes mu
	}
}

// read reads what is offered.
func (o *statsOffer) read() []stats.Device {
	o.mu.Lock()
	stations := slices.Clone(o.stations)
	o.mu.Unlock()
	list := make([]stats.Device, len(stations))
	for i, s := range stations {
		list[i] = s.reading()
	}
	return list
}
