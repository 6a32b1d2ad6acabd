package core

import (
	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

// slotState is the server's knowledge of a slot's call n.
type slotState uint8

const (
	idle     slotState = iota // n was answered, or is 0; its reply is gone
	fetching                  // n arrived but for its body
	running                   // n's handler was started
	replied                   // n has its reply, which waits for n+1
)

// Session is the server's end of a session.
//
// Invariants: a slot goes from running to replied only, and to running only
// with a call whose sequence is one above that of the last call that ran,
// expired or was voided: so no call is executed twice. Only the connection live
// is listened to: epoch's, or none.
type Session struct {
	server    *Server
	id        [16]byte
	instance  uint64
	most      int    // slots
	share     *Share // of the address that it began from
	epoch     uint32 // of the last connection
	live      uint32 // epoch while that stands and the session goes on; 0: none
	away      bool
	tellAway  bool // a GOAWAY is to be posted
	ended     bool
	handlers  int
	idleSince Time  // without a connection
	kept      int64 // bytes of replies

	slots   []serverSlot // as many as were used
	pending fifo[uint16]
	methods []string // numbered on this connection, from 1
}

// serverSlot is a slot at the server.
type serverSlot struct {
	state     slotState
	sequence  uint32 // of the call that state speaks of
	stream    bool
	cancelled bool // CANCEL or VOID came, or the stream broke: the handler was told
	overrun   bool // the stream's client sent more than its window
	halved    bool // the stream's client has ended its messages
	finished  bool // the handler has ended; the answer waits for READs
	fetching  int  // READs under way
	method    string

	number uint32
	flow   flow
	slabs  fifo[Slab] // offered by STREAM_DATA, oldest first

	reply  reply
	kept   int64  // bytes of the reply that count
	serial uint64 // of the reply, in the order in which they were kept
	flight bool   // the reply does not count: the client may be reading its slab
	notes  notes
}

// Reply is a handler's answer.
type Reply struct {
	Flags    wire.Flags // Error, Bare
	Code     uint32     // with Error
	Text     []byte     // with Error
	Details  []byte     // with Error
	Metadata []byte
	Body     []byte
	Slab     Slab   // in place of Body
	Length   uint32 // bytes in Slab
}

// reply is a Reply whose bytes lie in one buffer of the slot.
type reply struct {
	flags                         wire.Flags
	code                          uint32
	text, details, metadata, body int // lengths in buffer, in this order
	buffer                        []byte
	slab                          Slab
	length                        uint32
}

func (r *reply) bytes() int64 { return int64(len(r.buffer)) + int64(r.length) }

// Disconnected tells that a connection has ended and its queue pair is
// destroyed. Handlers of streams are cancelled, others run on; bodies that were
// not read whole are read again when the call is repeated.
func (x *Session) Disconnected(now Time, epoch uint32, yield func(Event)) {
	if epoch != x.live {
		return
	}
	x.live, x.tellAway, x.idleSince = 0, false, now
	x.methods = x.methods[:0]
	x.pending.pop(x.pending.len())
	for i := range x.slots {
		y := &x.slots[i]
		y.notes = notes{}
		y.fetching = 0
		x.reclaim(y)
		switch {
		case y.state == fetching:
			y.state = idle
			y.sequence--
		case y.finished:
			y.finished, y.state = false, replied
		case y.state == running && y.stream && !y.cancelled:
			y.cancelled = true
			yield(Event{Kind: CancelHandler, Slot: uint16(i)})
		}
		if y.flight {
			y.flight = false
			x.server.keepReply(x, uint16(i), y.reply.bytes())
		}
	}
}

// End ends the session: its handlers are cancelled, and their answers dropped.
func (x *Session) End(yield func(Event)) {
	if x.ended {
		return
	}
	x.ended, x.live = true, 0
	delete(x.server.sessions, x.id)
	x.server.shares.Leave(x.share)
	x.server.shares.Give(x.share, 1)
	for i := range x.slots {
		y := &x.slots[i]
		x.reclaim(y)
		x.drop(y)
		if y.state == running && !y.finished && !y.cancelled {
			y.cancelled = true
			yield(Event{Kind: CancelHandler, Slot: uint16(i)})
		}
	}
}

// Ended reports whether the session is over.
func (x *Session) Ended() bool { return x.ended }

// GoAway asks the client to begin no more calls here. Calls that come all the
// same are answered UNAVAILABLE by the session, and not executed.
func (x *Session) GoAway() {
	x.away, x.tellAway = true, x.live != 0
}

// Quiet reports whether no handler runs and nothing waits to be posted.
func (x *Session) Quiet() bool {
	return x.handlers == 0 && !x.tellAway && x.pending.len() == 0
}

// Finish takes the answer of the slot's handler, which has ended. It copies the
// reply's bytes; the slab passes to the session. It queues the answer for Next.
func (x *Session) Finish(slot uint16, r *Reply) {
	y := &x.slots[slot]
	if y.state != running || y.finished || x.ended {
		x.release(r.Slab)
		return
	}
	x.handlers--
	if y.overrun {
		x.release(r.Slab)
		r = &Reply{Flags: wire.Error | wire.Session, Code: wire.ResourceExhausted, Text: []byte(beyondWindow)}
	}
	x.store(slot, r)
	if y.stream && y.fetching > 0 {
		y.finished = true
		return
	}
	x.answer(slot)
}

// answer queues the slot's answer.
func (x *Session) answer(slot uint16) {
	y := &x.slots[slot]
	y.state, y.finished = replied, false
	if x.live != 0 {
		y.notes.answer = true
		x.enqueue(slot)
	}
}

// store keeps a reply in its slot.
func (x *Session) store(slot uint16, r *Reply) {
	y := &x.slots[slot]
	b := y.reply.buffer[:0]
	for _, part := range [][]byte{r.Text, r.Details, r.Metadata, r.Body} {
		b = append(b, part...)
	}
	y.reply = reply{
		flags: r.Flags, code: r.Code, buffer: b, slab: r.Slab, length: r.Length,
		text: len(r.Text), details: len(r.Details), metadata: len(r.Metadata), body: len(r.Body),
	}
	if y.flight = r.Slab != 0 && x.live != 0; !y.flight {
		x.server.keepReply(x, slot, y.reply.bytes())
	}
}

// drop forgets the slot's reply.
func (x *Session) drop(y *serverSlot) {
	x.server.unkeep(x, y)
	x.release(y.reply.slab)
	y.flight = false
	if cap(y.reply.buffer) > CopyLimit {
		y.reply.buffer = nil
	}
	y.reply = reply{buffer: y.reply.buffer[:0]}
}

// oldest is the slot of the session's oldest reply that counts.
func (x *Session) oldest() (slot uint16) {
	least := uint64(1<<64 - 1)
	for i := range x.slots {
		if y := &x.slots[i]; y.kept > 0 && y.serial < least {
			slot, least = uint16(i), y.serial
		}
	}
	return slot
}

// entomb gives the slot's reply up: a client that asks for it hears that the
// call was executed.
func (x *Session) entomb(slot uint16) {
	y := &x.slots[slot]
	x.server.Tombstones++
	x.drop(y)
	y.reply.flags, y.reply.code = wire.Error|wire.Session, wire.DataLoss
}

// reclaim gives the slabs back that a stream's handler offered.
func (x *Session) reclaim(y *serverSlot) {
	for ; y.slabs.len() > 0; y.slabs.pop(1) {
		x.release(*y.slabs.at(0))
	}
}

func (x *Session) release(slab Slab) {
	if slab != 0 {
		x.server.freed.push(slab)
	}
}

func (x *Session) enqueue(slot uint16) {
	if n := &x.slots[slot].notes; !n.queued {
		n.queued = true
		x.pending.push(slot)
	}
}

// Next returns the next message beside a stream's data: REPLY, STREAM_END,
// TAKEN, STREAM_WINDOW, GOAWAY. The caller asks when there is room to post,
// until ok is false, after all other calls that may queue one.
func (x *Session) Next() (m Send, ok bool) {
	if x.live != 0 && x.tellAway {
		x.tellAway = false
		return Send{Message: wire.Message{Type: wire.GoAway}}, true
	}
	for x.live != 0 && x.pending.len() > 0 {
		slot := *x.pending.at(0)
		y := &x.slots[slot]
		m = Send{Message: wire.Message{Slot: slot, Sequence: y.sequence, Stream: y.number}}
		n := &y.notes
		switch {
		case n.answer:
			n.answer, n.window, n.taken = false, false, 0 // an answer says these too
			x.fill(&m, y)
		case n.taken > 0:
			n.taken--
			m.Type = wire.Taken
		case n.window:
			n.window = false
			w := y.flow.grantWindow()
			m.Type, m.Bytes, m.Messages = wire.StreamWindow, w.bytes, w.messages
		default:
			n.queued = false
			x.pending.pop(1)
			continue
		}
		return m, true
	}
	return Send{}, false
}

// fill makes m the slot's answer.
func (x *Session) fill(m *Send, y *serverSlot) {
	r := &y.reply
	b := r.buffer
	part := func(n int) (p []byte) {
		p, b = b[:n:n], b[n:]
		return p
	}
	m.Flags, m.Code = r.flags, r.code
	m.Text, m.Details, m.Metadata = part(r.text), part(r.details), part(r.metadata)
	if y.stream {
		m.Type, m.Flags = wire.StreamEnd, r.flags&(wire.Error|wire.Session)
		return
	}
	m.Type, m.Body = wire.Reply, part(r.body)
	if r.slab != 0 {
		x.server.unkeep(x, y)
		y.flight = true
		m.Slab, m.Flags, m.Offer.Length = r.slab, m.Flags|wire.Offered, r.length
	}
}
