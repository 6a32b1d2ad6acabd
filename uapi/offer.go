package uapi

import (
	"slices"
	"sync"

	"github.com/rdmashim/rdmashim/uapi/stats"
)

// offers is what other processes of the user may read of this one: a socket while
// there is a context on a device that is offered.
var offers statsOffer

type statsOffer struct {
	mu     sync.Mutex
	users  int           // guarded by mu: contexts on devices that are offered
	server *stats.Server // guarded by mu; nil: there is none, or it could not be made
}

func (c *Context) offered() bool { return c.station.spec.offersStats() }

// add offers the context's device. That it cannot be offered is no reason not to
// have it.
func (o *statsOffer) add(c *Context) {
	if !c.offered() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.users++
	if o.server != nil {
		return
	}
	server, err := stats.Serve(processName(), readOffered)
	if err != nil {
		c.log.Debug("no socket for rdmashim top: other processes cannot read the device's counters", "device", c.station.name, "err", err)
		return
	}
	o.server = server
}

// remove ends a context's offer, and with the last one the socket.
func (o *statsOffer) remove(c *Context) {
	if !c.offered() {
		return
	}
	o.mu.Lock()
	var server *stats.Server
	if o.users--; o.users == 0 {
		server, o.server = o.server, nil
	}
	o.mu.Unlock()
	if server != nil {
		server.Close()
	}
}

func readOffered() []stats.Device {
	return readStats(slices.DeleteFunc(opened.all(), func(c *Context) bool { return !c.offered() }))
}
