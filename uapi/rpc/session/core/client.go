package core

import "github.com/rdmashim/rdmashim/uapi/rpc/session/wire"

// Client is the client's end of a session. The caller serialises all calls.
//
// A slot number is the handle of a call, from Begin until an event ends the
// call (Answered, EndedUnknown, NotPosted) or Abandon; a stream's always until
// Abandon.
//
// Invariants: a slot's sequence grows by one when a call is first posted, and
// the slot is held from then until the server answered just that sequence, or
// the server lost the session. Slots that are not held are in free, once. A
// message to be posted beside requests is a note in its slot, and the slot is
// in pending.
type Client struct {
	most     int    // slots asked for
	usable   int    // slots that the server has; 0 before the first connection
	epoch    uint32 // of the last attempt
	instance uint64 // of the session at the server
	live     uint32 // of the connection that the slots speak of; 0: none
	up       bool   // live is epoch, and set up
	away     bool   // the server is going away
	slots    []clientSlot
	free     []uint16
	pending  fifo[uint16]
	freed    fifo[Slab]
	methods  map[string]uint16 // numbered on this connection
	streams  uint32            // number of the last stream

	Repeats uint64 // requests posted again
	Voids   uint64 // calls that were not repeated
	Dropped uint64 // messages of another connection or call
}

// clientSlot is a slot at the client.
type clientSlot struct {
	sequence uint32 // of the last call that was posted, 0 of none
	held     bool   // a call has the slot
	caller   bool   // its caller has not left
	stream   bool
	posted   bool // on this connection: the request, or VOID
	ever     bool // on any connection
	answered bool // by the server; READs are under way, or a stream's caller is
	over     bool // the stream broke, or went beyond its window
	halved   bool // the stream's last message was sent
	fetching int  // READs under way

	number uint32 // the stream's
	flow   flow
	slabs  fifo[Slab] // offered, oldest first
	notes  notes
}

// notes are the messages that a slot waits to have posted.
type notes struct {
	queued bool // the slot is in pending
	answer bool // server: REPLY or STREAM_END; client: STREAM_END
	void   bool
	cancel bool
	half   bool
	window bool
	taken  int // TAKENs
}

// NewClient makes the client's end of a session with at most so many slots, 1 …
// MaxSlots; 0 is DefaultSlots.
func NewClient(slots int) *Client {
	if slots == 0 {
		slots = DefaultSlots
	}
	return &Client{most: min(max(slots, 1), MaxSlots)}
}

// Attempt returns the epoch of the next attempt to dial, each of which has its
// own: the server may have taken an attempt whose answer was lost. Messages of
// older connections no longer count.
func (c *Client) Attempt() (epoch uint32) {
	c.epoch++
	c.up = false
	return c.epoch
}

// Slots is how many slots the client asks for.
func (c *Client) Slots() int { return c.most }

// Connected takes in the server's answer to the attempt epoch; from now on
// messages are posted, and received. Unposted tells which calls are posted
// again. If the session is not the instance that the client knows, all calls
// end, whatever state says: the answer that called it Unknown may have been
// lost. The error is a *wire.Breach; the answer to an older attempt is dropped.
func (c *Client) Connected(epoch uint32, state SessionState, instance uint64, slots int, yield func(Event)) error {
	switch {
	case epoch != c.epoch || c.up:
		c.Dropped++
		return nil
	case slots < 1 || slots > MaxSlots || state < New || state > Unknown:
		return wire.Breached("an answer with %d slots for a session in state %d", slots, state)
	case c.usable != 0 && state == Resumed && instance == c.instance && slots < c.usable:
		return wire.Breached("an answer with %d slots for a session of %d", slots, c.usable)
	}
	c.disconnect(yield)
	switch {
	case c.usable == 0: // an earlier attempt's session, if any, is empty
		c.begin(slots)
	case state != Resumed || instance != c.instance:
		c.forget(yield)
		c.begin(slots)
	}
	c.instance = instance
	c.live, c.up, c.away = epoch, true, false
	c.methods = map[string]uint16{}
	for i := range c.slots {
		s := &c.slots[i]
		if s.held && s.ever && !s.answered && (s.stream || !s.caller) {
			s.notes.void = true
			c.enqueue(uint16(i))
		}
	}
	return nil
}

// begin has a session of no calls but streams whose callers have yet to leave.
func (c *Client) begin(slots int) {
	c.usable = min(slots, c.most)
	for len(c.slots) < c.usable {
		c.slots = append(c.slots, clientSlot{})
	}
	c.free = c.free[:0]
	for i := c.usable - 1; i >= 0; i-- { // low numbers are given first
		if !c.slots[i].held {
			c.free = append(c.free, uint16(i))
		}
	}
}

// forget ends all calls, since the server has lost them.
func (c *Client) forget(yield func(Event)) {
	for i := range c.slots {
		s := &c.slots[i]
		s.sequence = 0
		if !s.held {
			continue
		}
		c.reclaim(s)
		switch {
		case s.stream && s.ever && s.caller:
			s.answered = true // nothing more is awaited
			if !s.over {
				s.over = true
				yield(Event{Kind: Broken, Slot: uint16(i)})
			}
			continue
		case s.caller && s.ever:
			yield(Event{Kind: EndedUnknown, Slot: uint16(i)})
		case s.caller:
			yield(Event{Kind: NotPosted, Slot: uint16(i)})
		}
		s.held, s.caller = false, false
	}
}

// Disconnected tells that a connection has ended and its queue pair is
// destroyed. Streams are Broken; unary calls go on with the next connection.
func (c *Client) Disconnected(epoch uint32, yield func(Event)) {
	if epoch == c.live {
		c.disconnect(yield)
	}
}

func (c *Client) disconnect(yield func(Event)) {
	c.live, c.up = 0, false
	for i := range c.slots {
		s := &c.slots[i]
		s.notes = notes{}
		lost := s.fetching > 0
		s.posted, s.fetching = false, 0
		c.reclaim(s)
		switch {
		case !s.held:
		case !s.stream:
			s.answered = false // its body was not read
		case s.answered && !s.caller:
			c.release(uint16(i))
		case s.ever && s.caller && !s.over && (lost || !s.answered):
			s.over = true
			yield(Event{Kind: Broken, Slot: uint16(i)})
		}
	}
	c.pending.pop(c.pending.len())
}

// Close ends all calls, and the session at this end.
func (c *Client) Close(yield func(Event)) {
	c.Attempt()
	c.disconnect(yield)
	c.forget(yield)
	c.usable, c.free = 0, nil
}

// Begin gives a call a slot. It returns false if none is free, before the first
// connection, and when the server is going away.
func (c *Client) Begin(stream bool) (slot uint16, ok bool) {
	n := len(c.free)
	if n == 0 || c.away {
		return 0, false
	}
	slot = c.free[n-1]
	c.free = c.free[:n-1]
	s := &c.slots[slot]
	*s = clientSlot{sequence: s.sequence, held: true, caller: true, stream: stream, number: s.number, slabs: s.slabs, notes: s.notes}
	return slot, true
}

// Unposted reports whether a call's request is to be posted on this connection,
// for the first time or again.
func (c *Client) Unposted(slot uint16) bool {
	s := &c.slots[slot]
	return c.up && s.held && s.caller && !s.posted && !s.answered && !(s.stream && s.ever)
}

// Request returns the head of the call's REQUEST or STREAM_OPEN, at the moment
// at which it is posted. The caller adds metadata, timeout, and the body if it
// is not the first length bytes of slab. It returns false if there is nothing
// to post: the connection ended, or the answer came before the repeat.
func (c *Client) Request(slot uint16, method string, slab Slab, length uint32) (m Send, ok bool) {
	if !c.Unposted(slot) {
		return Send{}, false
	}
	s := &c.slots[slot]
	if s.ever {
		c.Repeats++
	} else {
		s.sequence++
		s.notes.answer, s.notes.taken = false, 0 // the next request says so
		s.number = 0
		if s.stream {
			c.streams = max(c.streams+1, 1)
			s.number, s.flow = c.streams, newFlow()
		}
	}
	s.posted, s.ever = true, true
	if s.notes.half {
		c.enqueue(slot)
	}
	m = Send{Message: wire.Message{Type: wire.Request, Slot: slot, Sequence: s.sequence}}
	if s.stream {
		m.Type, m.Stream = wire.StreamOpen, s.number
	} else {
		m.offer(slab, length, &s.slabs)
	}
	c.name(&m.Message, method)
	return m, true
}

// offer makes m offer length bytes of slab, which passes to the core.
func (m *Send) offer(slab Slab, length uint32, to *fifo[Slab]) {
	if slab != 0 {
		to.push(slab)
		m.Slab, m.Flags, m.Offer.Length = slab, m.Flags|wire.Offered, length
	}
}

// name numbers the method for this connection, in the order in which requests
// are posted, or sends its name alone when the numbers are used up.
func (c *Client) name(m *wire.Message, method string) {
	n, ok := c.methods[method]
	if !ok {
		if len(c.methods) < MaxMethods {
			n = uint16(len(c.methods) + 1)
			c.methods[method] = n
		}
		m.Flags |= wire.Define
		m.Name = []byte(method)
	}
	m.Method = n
}

// Abandon tells that a call's caller leaves, or is done with a stream. posted
// is false if the call was never posted, and so is never executed. The slot
// returns when the server has answered.
func (c *Client) Abandon(slot uint16) (posted bool) {
	s := &c.slots[slot]
	if !s.held || !s.caller {
		return s.ever
	}
	s.caller = false
	switch {
	case !s.ever:
		c.release(slot)
		return false
	case s.answered && s.fetching == 0:
		c.finish(slot)
	case s.answered || !c.up:
	case s.posted:
		s.notes.cancel = true
		c.enqueue(slot)
	default:
		s.notes.void = true
		c.enqueue(slot)
	}
	return true
}

// finish gives an answered call's slot back, and lets the server know.
func (c *Client) finish(slot uint16) {
	s := &c.slots[slot]
	if s.notes.answer = s.stream && s.posted && c.up; s.notes.answer {
		c.enqueue(slot)
	}
	c.release(slot)
}

func (c *Client) release(slot uint16) {
	s := &c.slots[slot]
	c.reclaim(s)
	s.held, s.caller = false, false
	s.notes.void, s.notes.cancel, s.notes.half, s.notes.window = false, false, false, false
	if int(slot) < c.usable {
		c.free = append(c.free, slot)
	}
}

// reclaim gives the slabs that a slot offered back.
func (c *Client) reclaim(s *clientSlot) {
	for ; s.slabs.len() > 0; s.slabs.pop(1) {
		c.freed.push(*s.slabs.at(0))
	}
}

// Freed returns a slab that is the caller's again. A repeated request is
// offered from another.
func (c *Client) Freed() (slab Slab, ok bool) { return take(&c.freed) }

func take(f *fifo[Slab]) (slab Slab, ok bool) {
	if f.len() == 0 {
		return 0, false
	}
	slab = *f.at(0)
	f.pop(1)
	return slab, true
}

func (c *Client) enqueue(slot uint16) {
	if n := &c.slots[slot].notes; !n.queued {
		n.queued = true
		c.pending.push(slot)
	}
}

// Next returns the next message beside requests and data: CANCEL, VOID, TAKEN,
// STREAM_HALF, STREAM_WINDOW, STREAM_END. The caller asks when there is room to
// post, until ok is false, after all other calls that may queue one.
func (c *Client) Next() (m Send, ok bool) {
	for c.up && c.pending.len() > 0 {
		slot := *c.pending.at(0)
		s := &c.slots[slot]
		m = Send{Message: wire.Message{Slot: slot, Sequence: s.sequence}}
		n := &s.notes
		switch {
		case n.void:
			n.void, s.posted = false, true
			m.Type = wire.Void
			c.Voids++
		case n.cancel:
			n.cancel = false
			m.Type = wire.Cancel
		case n.taken > 0:
			n.taken--
			m.Type, m.Stream = wire.Taken, s.number
		case n.half && s.posted:
			n.half = false
			m.Type, m.Stream = wire.StreamHalf, s.number
		case n.window:
			n.window = false
			w := s.flow.grantWindow()
			m.Type, m.Stream, m.Bytes, m.Messages = wire.StreamWindow, s.number, w.bytes, w.messages
		case n.answer:
			n.answer = false
			m.Type, m.Stream = wire.StreamEnd, s.number
		default:
			n.queued = false
			c.pending.pop(1)
			continue
		}
		return m, true
	}
	return Send{}, false
}
