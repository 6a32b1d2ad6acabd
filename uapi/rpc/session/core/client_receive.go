package core

import "github.com/rdmashim/rdmashim/uapi/rpc/session/wire"

// Receive takes in a message of the connection epoch. Connected comes before
// it. The error is a *wire.Breach: the caller cuts the connection off, closes
// the session and begins another.
func (c *Client) Receive(epoch uint32, m *wire.Message) (Event, error) {
	if epoch != c.epoch || !c.up {
		c.Dropped++
		return Event{}, nil
	}
	switch m.Type {
	case wire.Reply, wire.StreamEnd, wire.StreamData, wire.StreamWindow, wire.Taken:
	case wire.GoAway:
		c.away = true
		return Event{Kind: GoneAway}, nil
	default:
		return Event{}, wire.Breached("%v, which is a client's", m.Type)
	}
	if int(m.Slot) >= len(c.slots) {
		return Event{}, wire.Breached("%v for slot %d of %d", m.Type, m.Slot, len(c.slots))
	}
	s := &c.slots[m.Slot]
	if !s.held || !s.ever || s.answered || m.Sequence != s.sequence || m.Stream != 0 && m.Stream != s.number {
		c.Dropped++ // a late word on a call that was answered
		return Event{}, nil
	}
	switch m.Type {
	case wire.Reply, wire.StreamEnd:
		return c.answer(s, m)
	case wire.Taken:
		if slab, ok := take(&s.slabs); ok {
			c.freed.push(slab)
		}
		return Event{}, nil
	}
	if !s.stream || !s.posted || !s.caller || s.over {
		c.Dropped++
		return Event{}, nil
	}
	return c.ofStream(s, m)
}

// answer takes in the server's answer to the slot's call.
func (c *Client) answer(s *clientSlot, m *wire.Message) (Event, error) {
	if s.caller && !s.over && s.stream != (m.Type == wire.StreamEnd) {
		return Event{}, wire.Breached("%v for a call of another kind", m.Type)
	}
	s.answered = true
	c.reclaim(s)
	switch {
	case s.stream && !s.caller && s.fetching == 0:
		c.finish(m.Slot)
	case s.stream && s.caller && !s.over:
		return Event{Kind: StreamEnded, Slot: m.Slot, Message: m}, nil
	case s.stream:
	case m.Flags&wire.Offered != 0 && s.caller:
		s.fetching = 1
		return Event{Kind: Fetch, Slot: m.Slot, Message: m}, nil
	default:
		caller := s.caller
		c.release(m.Slot)
		if m.Flags&wire.Offered != 0 {
			s.notes.taken++
			c.enqueue(m.Slot)
		}
		if caller {
			return Event{Kind: Answered, Slot: m.Slot, Message: m}, nil
		}
	}
	return Event{}, nil
}

// ofStream takes in a message for a stream whose caller listens.
func (c *Client) ofStream(s *clientSlot, m *wire.Message) (Event, error) {
	switch {
	case m.Type == wire.StreamWindow:
		s.flow.widen(m)
		return Event{Kind: StreamRoom, Slot: m.Slot}, nil
	case !s.flow.arrive(m):
		s.over = true
		s.notes.cancel = true
		c.enqueue(m.Slot)
		return Event{Kind: StreamEnded, Slot: m.Slot, Message: &wire.Message{
			Type: wire.StreamEnd, Flags: wire.Error | wire.Session, Slot: m.Slot, Sequence: m.Sequence, Stream: s.number,
			Code: wire.ResourceExhausted, Text: []byte(beyondWindow),
		}}, nil
	case m.Flags&wire.Offered != 0:
		s.fetching++
		return Event{Kind: Fetch, Slot: m.Slot, Message: m}, nil
	}
	return Event{Kind: StreamMessage, Slot: m.Slot, Message: m}, nil
}

const beyondWindow = "the stream's peer sent more than its window"

// Fetched tells that the READ of the slot's oldest offer is complete. READs
// that fail end their connection, and are not told.
func (c *Client) Fetched(epoch uint32, slot uint16) Event {
	s := &c.slots[slot]
	if epoch != c.epoch || !c.up || s.fetching == 0 {
		return Event{}
	}
	s.fetching--
	caller := s.caller
	s.notes.taken++
	c.enqueue(slot)
	switch {
	case !s.stream:
		c.release(slot)
		if caller {
			return Event{Kind: Answered, Slot: slot}
		}
	case caller && !s.over:
		return Event{Kind: StreamMessage, Slot: slot}
	case !caller && s.answered && s.fetching == 0:
		c.finish(slot)
	}
	return Event{}
}

// Data returns the head of a STREAM_DATA at the moment at which it is posted,
// with bytes of metadata and body, or the first length bytes of slab for a
// body. It returns false if the window has no room: StreamRoom tells when.
// Errors: ErrStreamOver; EMSGSIZE.
func (c *Client) Data(slot uint16, bytes int, slab Slab, length uint32) (m Send, ok bool, err error) {
	s := &c.slots[slot]
	if !s.stream || !s.caller || !s.posted || !c.up || s.answered || s.over || s.halved {
		return Send{}, false, ErrStreamOver
	}
	if ok, err := s.flow.put(bytes); !ok {
		return Send{}, false, err
	}
	m = Send{Message: wire.Message{Type: wire.StreamData, Slot: slot, Sequence: s.sequence, Stream: s.number}}
	m.offer(slab, length, &s.slabs)
	return m, true, nil
}

// CloseSend ends the stream's messages.
func (c *Client) CloseSend(slot uint16) {
	if s := &c.slots[slot]; s.stream && s.caller && !s.halved && !s.over && !s.answered {
		s.halved, s.notes.half = true, true
		c.enqueue(slot)
	}
}

// Consumed tells that a message of a stream with so many bytes of metadata and
// body, without what it offered, was read.
func (c *Client) Consumed(slot uint16, bytes int) {
	if s := &c.slots[slot]; s.stream && s.caller && !s.over && !s.answered && s.flow.consume(bytes) {
		s.notes.window = true
		c.enqueue(slot)
	}
}
