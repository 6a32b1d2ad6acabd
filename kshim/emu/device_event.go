package emu

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
)

// deviceEvent is an event of a device, and of a port where it concerns one.
type deviceEvent struct {
	port  uint8
	event abi.EventType
}

// Event posts an event to each context of the device (ib_uverbs_event_handler).
// A context learns the state of the port by QUERY_PORT.
func (d *device) Event(port uint8, t abi.EventType) {
	d.ns.machine.changes.Add(1)
	d.mu.Lock()
	defer d.mu.Unlock()
	for f := range d.files {
		f.mu.Lock()
		for async := range f.asyncs {
			async.sourceOf(deviceEvent{port, t}).post()
		}
		f.mu.Unlock()
	}
}

// sourceOf returns the file's source of such an event. Preconditions: its
// owner's mu is held.
func (f *eventFile) sourceOf(e deviceEvent) *source {
	s := f.sources[e]
	if s == nil {
		s = &source{queue: f.queue, element: uint64(e.port), event: e.event}
		if f.sources == nil {
			f.sources = map[deviceEvent]*source{}
		}
		f.sources[e] = s
	}
	return s
}
