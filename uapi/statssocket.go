package uapi

import (
	"slices"
	"sync"

	"github.com/rdmashim/rdmashim/uapi/stats"
)

// statsSocket lets other processes of the user read this one's devices: a
// socket is there while a context is open on a device that they may read.
var statsSocket socket

type socket struct {
	mu     sync.Mutex
	users  int           // guarded by mu: contexts on devices that may be read
	server *stats.Server // guarded by mu; nil: there is none, or it could not be made
}

func (c *Context) statsReadable() bool { return c.device.StatsReadable() }

// add opens the socket for the first context. A socket that cannot be made
// fails nothing.
func (o *socket) add(c *Context) {
	if !c.statsReadable() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.users++
	if o.server != nil {
		return
	}
	server, err := stats.Serve(processName(), readAllReadable)
	if err != nil {
		c.log.Debug("no socket for rdmashim top: other processes cannot read the device's counters", "device", c.device.Name, "err", err)
		return
	}
	o.server = server
}

// remove closes the socket with the last context.
func (o *socket) remove(c *Context) {
	if !c.statsReadable() {
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

func readAllReadable() []stats.Device {
	return readStats(slices.DeleteFunc(opened.all(), func(c *Context) bool { return !c.statsReadable() }))
}
