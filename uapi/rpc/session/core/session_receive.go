package core

import "github.com/rdmashim/rdmashim/uapi/rpc/session/wire"

// Receive takes in a message of the connection epoch. The error is a
// *wire.Breach, a call out of its slot's order too: the caller cuts the
// connection off and ends the session.
func (x *Session) Receive(epoch uint32, m *wire.Message) (Event, error) {
	if epoch != x.live {
		x.server.Dropped++
		return Event{}, nil
	}
	switch m.Type {
	case wire.Request, wire.StreamOpen, wire.Void, wire.Cancel, wire.Taken, wire.StreamData, wire.StreamHalf, wire.StreamEnd, wire.StreamWindow:
	default:
		return Event{}, wire.Breached("%v, which is a server's", m.Type)
	}
	if int(m.Slot) >= x.most {
		return Event{}, wire.Breached("%v for slot %d of %d", m.Type, m.Slot, x.most)
	}
	for len(x.slots) <= int(m.Slot) {
		x.slots = append(x.slots, serverSlot{})
	}
	y := &x.slots[m.Slot]
	switch m.Type {
	case wire.Request, wire.StreamOpen, wire.Void:
		return x.call(y, m)
	}
	if m.Sequence != y.sequence || y.state == idle || m.Stream != 0 && m.Stream != y.number {
		x.server.Dropped++ // a late word on a call that has ended
		return Event{}, nil
	}
	switch m.Type {
	case wire.Cancel:
		return x.cancel(y, m), nil
	case wire.Taken:
		x.taken(y)
	case wire.StreamEnd:
		if y.stream && y.state == replied {
			x.reclaim(y)
		}
	default:
		if y.stream && y.state == running && !y.cancelled && !y.finished {
			return x.ofStream(y, m)
		}
		x.server.Dropped++
	}
	return Event{}, nil
}

// call takes in REQUEST, STREAM_OPEN or VOID by the slot's rule: one above the
// last sequence is a call, the last one asks for its answer, and any other ends
// the session.
func (x *Session) call(y *serverSlot, m *wire.Message) (Event, error) {
	method, err := x.method(m)
	if err != nil {
		return Event{}, err
	}
	switch {
	case m.Sequence == y.sequence+1 && (y.state == idle || y.state == replied):
		return x.begin(y, m, method), nil
	case m.Sequence != y.sequence || y.state == idle:
		return Event{}, wire.Breached("%v %d in slot %d out of order: the last was %d", m.Type, m.Sequence, m.Slot, y.sequence)
	case y.state == replied:
		x.server.Replays++
		y.notes.answer = true
		x.enqueue(m.Slot)
	case m.Type == wire.Void:
		return x.cancel(y, m), nil
	default:
		x.server.Attaches++
	}
	return Event{}, nil
}

// method returns the name of the method that m calls, and takes in a number
// for it.
func (x *Session) method(m *wire.Message) (string, error) {
	n := int(m.Method)
	switch {
	case m.Type == wire.Void:
		return "", nil
	case m.Flags&wire.Define == 0 && n >= 1 && n <= len(x.methods):
		return x.methods[n-1], nil
	case m.Flags&wire.Define == 0:
		return "", wire.Breached("%v of method %d; %d are defined", m.Type, n, len(x.methods))
	case n == 0:
		return string(m.Name), nil
	case n != len(x.methods)+1 || n > MaxMethods:
		return "", wire.Breached("a definition of method %d; %d are defined, and at most %d", n, len(x.methods), MaxMethods)
	}
	x.methods = append(x.methods, string(m.Name))
	return x.methods[n-1], nil
}

// begin takes in a call, which acknowledges the reply of the one before it.
func (x *Session) begin(y *serverSlot, m *wire.Message, method string) Event {
	x.drop(y)
	x.reclaim(y)
	*y = serverSlot{sequence: m.Sequence, stream: m.Type == wire.StreamOpen, number: m.Stream, method: method,
		slabs: y.slabs, reply: y.reply, notes: notes{queued: y.notes.queued}}
	switch {
	case m.Type == wire.Void:
		x.server.Voids++
		return x.refuse(m.Slot, wire.Cancelled, "the caller gave the call up before it arrived")
	case x.away:
		return x.refuse(m.Slot, wire.Unavailable, "the server is going away and has not executed the call")
	case m.Flags&wire.Offered != 0:
		y.state, y.fetching = fetching, 1
		return Event{Kind: Fetch, Slot: m.Slot, Message: m, Method: method}
	}
	return x.run(y, m.Slot, m)
}

// refuse answers a call in place of its handler.
func (x *Session) refuse(slot uint16, code uint32, text string) Event {
	x.store(slot, &Reply{Flags: wire.Error | wire.Session, Code: code, Text: []byte(text)})
	x.answer(slot)
	return Event{}
}

// run starts the handler of the slot's call.
func (x *Session) run(y *serverSlot, slot uint16, m *wire.Message) Event {
	y.state = running
	x.handlers++
	x.server.Executed++
	if y.stream {
		y.flow = newFlow()
		return Event{Kind: Open, Slot: slot, Message: m, Method: y.method}
	}
	return Event{Kind: Execute, Slot: slot, Message: m, Method: y.method}
}

// cancel asks the handler of the slot's call to end, or keeps it from starting.
func (x *Session) cancel(y *serverSlot, m *wire.Message) Event {
	if y.state == replied || y.cancelled || y.finished {
		return Event{}
	}
	y.cancelled = true
	if y.state == fetching { // the answer would free the slab that is being read
		return Event{}
	}
	return Event{Kind: CancelHandler, Slot: m.Slot}
}

// taken ends the loan of a reply's slab, or of a stream's oldest.
func (x *Session) taken(y *serverSlot) {
	switch slab, ok := take(&y.slabs); {
	case ok:
		x.release(slab)
	case y.state == replied && y.reply.slab != 0 && !y.notes.answer:
		x.drop(y)
		y.reply.flags, y.reply.code = wire.Error|wire.Session, wire.DataLoss
	default:
		x.server.Dropped++
	}
}

// ofStream takes in a message for a stream whose handler listens.
func (x *Session) ofStream(y *serverSlot, m *wire.Message) (Event, error) {
	switch {
	case m.Type == wire.StreamWindow:
		y.flow.widen(m)
		return Event{Kind: StreamRoom, Slot: m.Slot}, nil
	case y.halved:
		return Event{}, wire.Breached("%v behind the end of a stream's messages", m.Type)
	case m.Type == wire.StreamData && !y.flow.arrive(m):
		y.overrun = true
		return x.cancel(y, m), nil
	}
	y.halved = m.Type == wire.StreamHalf
	if m.Flags&wire.Offered != 0 {
		y.fetching++
		return Event{Kind: Fetch, Slot: m.Slot, Message: m, Method: y.method}, nil
	}
	return Event{Kind: StreamMessage, Slot: m.Slot, Message: m}, nil
}

// FetchWanted reports whether a body that was not read yet is still wanted. If
// not, the caller calls Fetched without a READ.
func (x *Session) FetchWanted(epoch uint32, slot uint16) bool {
	y := &x.slots[slot]
	return epoch == x.live && y.fetching > 0 && !y.cancelled && !y.finished
}

// Fetched tells that the READ of the slot's oldest offer is complete. READs
// that fail end their connection, and are not told.
func (x *Session) Fetched(epoch uint32, slot uint16) Event {
	y := &x.slots[slot]
	if epoch != x.live || y.fetching == 0 {
		return Event{}
	}
	y.fetching--
	switch {
	case y.state == fetching && y.cancelled:
		return x.refuse(slot, wire.Cancelled, "the caller gave the call up")
	case y.finished:
		if y.fetching == 0 {
			x.answer(slot)
		}
		return Event{}
	}
	y.notes.taken++
	x.enqueue(slot)
	switch {
	case !y.stream:
		return x.run(y, slot, nil)
	case y.cancelled:
		return Event{}
	}
	return Event{Kind: StreamMessage, Slot: slot}
}

// Data returns the head of a STREAM_DATA at the moment at which it is posted,
// with bytes of metadata and body, or the first length bytes of slab for a
// body. It returns false if the window has no room: StreamRoom tells when.
// Errors: ErrStreamOver; EMSGSIZE.
func (x *Session) Data(slot uint16, bytes int, slab Slab, length uint32) (m Send, ok bool, err error) {
	y := &x.slots[slot]
	if x.live == 0 || !y.stream || y.state != running || y.cancelled || y.finished {
		return Send{}, false, ErrStreamOver
	}
	if ok, err := y.flow.put(bytes); !ok {
		return Send{}, false, err
	}
	m = Send{Message: wire.Message{Type: wire.StreamData, Slot: slot, Sequence: y.sequence, Stream: y.number}}
	m.offer(slab, length, &y.slabs)
	return m, true, nil
}

// Consumed tells that a message of a stream with so many bytes of metadata and
// body, without what it offered, was read.
func (x *Session) Consumed(slot uint16, bytes int) {
	y := &x.slots[slot]
	if x.live != 0 && y.stream && y.state == running && !y.cancelled && !y.finished && y.flow.consume(bytes) {
		y.notes.window = true
		x.enqueue(slot)
	}
}
