package emu

import "github.com/rdmashim/rdmashim/kshim/abi"

// EventSource is implemented by devices that raise events of their ports, or of
// their whole. Register gives them what to raise them through.
type EventSource interface {
	// SetEvents is called once, before the device is used.
	SetEvents(DeviceEvents)
}

// DeviceEvents is how a driver raises events that concern no single object
// (ib_dispatch_event). As CQEvents it never blocks and may be called with the
// driver's locks held.
type DeviceEvents interface {
	// Event tells every context of the device: PORT_ACTIVE, PORT_ERR, GID_CHANGE
	// and others of a port, or DEVICE_FATAL of all, with port 0.
	Event(port uint8, t abi.EventType)
}

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

// sourceOf gives the file's source of such events. Preconditions: its owner's mu
// is held.
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
