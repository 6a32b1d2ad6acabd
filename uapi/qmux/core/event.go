package core

import "github.com/rdmashim/rdmashim/uapi/qmux/wire"

// EventKind says what an Event makes worth trying.
type EventKind uint16

const (
	// EventReady: the peer's parameters are here: streams may be opened.
	EventReady EventKind = 1 << iota
	// EventAccept: the peer opened streams of the kind of Stream: Accept.
	EventAccept
	// EventReadable: data, an end or a reset is here: Read.
	EventReadable
	// EventWritable: all lent bytes are sent, or the peer stopped the stream:
	// Write.
	EventWritable
	// EventOpen: Open, which found no credit for Stream's kind, finds some now.
	EventOpen
	// EventDatagram: a datagram is here: ReceiveDatagram.
	EventDatagram
	// EventDatagramRoom: SendDatagram, which found no room, finds some now.
	EventDatagramRoom
	// EventClosed: the connection ended; see Cause.
	EventClosed
	// EventFinished: both halves of Stream are over, and it is forgotten.
	EventFinished
)

// Event is something that the program may wait for. It is an invitation to
// look: the call that it names may find nothing.
type Event struct {
	Kind   EventKind
	Stream wire.StreamID // of EventReadable, EventWritable, EventFinished; of the kind of EventAccept, EventOpen
}

// events collects what Events hands out; each is there at most once.
type events struct {
	list   []Event
	out    []Event
	queued EventKind // those of the connection
}

// Events returns what happened since the last call. The slice is valid until
// the next call.
func (c *Conn) Events() []Event {
	e := &c.events
	e.out, e.list = e.list, e.out[:0]
	e.queued = 0
	for _, ev := range e.out {
		if s := c.streams[ev.Stream]; s != nil {
			s.eventsQueued &^= ev.Kind
		}
		if ev.Kind == EventAccept || ev.Kind == EventOpen {
			c.kinds[ev.Stream].queued = false
		}
	}
	return e.out
}

// queueEvent appends an event of the connection, unless it is queued already.
func (c *Conn) queueEvent(kind EventKind) {
	if c.events.queued&kind == 0 {
		c.events.queued |= kind
		c.events.list = append(c.events.list, Event{Kind: kind})
	}
}

// queueKindEvent appends an EventAccept or EventOpen.
func (c *Conn) queueKindEvent(id wire.StreamID, kind EventKind) {
	if k := &c.kinds[id&3]; !k.queued {
		k.queued = true
		c.events.list = append(c.events.list, Event{kind, id & 3})
	}
}

// queueStreamEvent appends an event of a stream.
func (c *Conn) queueStreamEvent(s *stream, kind EventKind) {
	if s.eventsQueued&kind == 0 {
		s.eventsQueued |= kind
		c.events.list = append(c.events.list, Event{kind, s.id})
	}
}
