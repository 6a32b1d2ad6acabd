package emu

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
)

// deviceEvent is a kind of such events.
type deviceEvent struct {
	port  uint8
	event abi.EventType
}

// Event tells the contexts that there are (ib_uverbs_event_handler). They find
// out about the state of the port themselves.
func (d *device) Event(port uint8, t abi.EventType) {
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

// sourceOf gives the file's source of such events. Preconditions: its owner's
// mu is held.
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
