package core

import (
	"fmt"
	"slices"

	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

// world is a client and a server, callers, connections that break, and slabs.
// Its callers begin in turn and act at any time.
type world struct {
	Client  *Client
	Server  *Server
	Session *Session
	Calls   []call
	Conns   []conn // by epoch-1
	Phase   phase
	Now     Time
	Running []int // by slot of the server: the call whose handler runs, 0: none
	Reads   []read
	Slabs   [2][]int // of the client and the server: the call whose body it holds; 0: free
	bounds
}

// bounds limit a world's actions.
type bounds struct {
	Epochs  int
	Slots   int
	Late    int  // calls, from the last, whose callers never leave
	Offer   bool // bodies and replies are offered
	Streams bool // all calls are streams
	Loses   bool // the server may lose the session
	Mixed   bool // every third call is a stream with messages, every other one offers, replies have bytes
}

// stream reports whether call k is one.
func (b *bounds) stream(k int) bool { return b.Streams || b.Mixed && k%3 == 0 }

// offers reports whether the bodies of call k are offered.
func (b *bounds) offers(k int) bool { return b.Offer && !(b.Mixed && k%2 == 0) }

// requests reports whether the request of call k offers its body.
func (b *bounds) requests(k int) bool { return b.offers(k) && !b.stream(k) }

type phase uint8

const (
	dialling  phase = iota // the REQ is under way
	answering              // the REP is
	connected
)

type call struct {
	Slot  int // -1: none
	State callState
	Sent  bool // as Abandon says
	Ran   int  // how often its handler was started
	Ended bool // the handler

	Out, In, Unread [2]int // messages of a stream, by the side that writes, reads, has to read: 0 is the caller's
}

type callState uint8

const (
	waits callState = iota
	has             // a slot
	left
	answeredOK
	unknown
	broke // a stream
)

type conn struct {
	Broken   bool
	Answer   Answer
	Known    bool      // to the client
	Stood    bool      // at the server, or never will
	To, From []message // the server, the client
}

type message struct {
	M    wire.Message
	Slab Slab
}

// read is a READ under way.
type read struct {
	Server bool // reads
	Epoch  uint32
	Slot   uint16
	Slab   Slab
	Call   int
	Code   uint32 // of the reply whose body it is
}

func newWorld(b bounds, calls int) *world {
	w := &world{Client: NewClient(b.Slots), Server: NewServer(ServerConfig{Slots: b.Slots}), bounds: b, Running: make([]int, b.Slots)}
	for range calls {
		w.Calls = append(w.Calls, call{Slot: -1})
	}
	if b.Offer {
		w.Slabs = [2][]int{make([]int, 1), make([]int, b.Slots)}
	}
	w.Client.Attempt()
	return w
}

// action is something that can happen.
type action struct {
	outside bool // it may never happen
	label   string
	do      func(*world) (problem string)
}

type adder func(outside bool, label string, do func(*world) (problem string))

// actions lists what can happen next.
func (w *world) actions() (out []action) {
	add := func(outside bool, label string, do func(*world) string) {
		out = append(out, action{outside, label, do})
	}
	for k := range w.Calls {
		w.callerSteps(k, add)
		if c := w.Calls[k]; c.Ran > 0 && !c.Ended {
			add(false, fmt.Sprintf("the handler of %d ends", k+1), func(d *world) string { return d.finish(k + 1) })
		}
	}
	w.connection(add)
	for i := range w.Conns {
		w.deliver(i, add)
	}
	if c := w.Client; c.up && c.pending.len() > 0 {
		add(false, "the client posts a note", func(d *world) string {
			if m, ok := d.Client.Next(); ok {
				d.toServer(m, 0)
			}
			return ""
		})
	}
	if x := w.Session; x != nil && x.live != 0 && x.pending.len() > 0 {
		add(false, "the server posts", func(d *world) string {
			if m, ok := d.Session.Next(); ok {
				d.toClient(m)
			}
			return ""
		})
	}
	for i, r := range w.Reads {
		if !w.Conns[r.Epoch-1].Broken {
			add(false, fmt.Sprintf("a READ of %d's body is complete", r.Call), func(d *world) string { return d.fetched(i) })
		}
	}
	return out
}

// perform does one of the actions.
func (w *world) perform(a action) (problem string) {
	problem = a.do(w)
	w.collect()
	return problem
}

// callerSteps is what the caller of call k+1 may do.
func (w *world) callerSteps(k int, add adder) {
	c := w.Calls[k]
	switch c.State {
	case waits:
		if len(w.Client.free) > 0 && !w.Client.away && (k == 0 || w.Calls[k-1].State != waits) {
			add(false, fmt.Sprintf("call %d begins", k+1), func(d *world) string {
				slot, _ := d.Client.Begin(d.stream(k + 1))
				d.Calls[k].State, d.Calls[k].Slot = has, int(slot)
				return ""
			})
		}
	case has:
		if w.Client.Unposted(uint16(c.Slot)) && (!w.requests(k+1) || slices.Contains(w.Slabs[0], 0)) {
			add(false, fmt.Sprintf("call %d is posted", k+1), func(d *world) string { return d.post(k) })
		}
		if k < len(w.Calls)-w.Late {
			add(true, fmt.Sprintf("the caller of %d leaves", k+1), func(d *world) string {
				d.Calls[k].Sent = d.Client.Abandon(uint16(c.Slot))
				d.Calls[k].State, d.Calls[k].Slot = left, -1
				return ""
			})
		}
	}
}

// slab fills a free slab of a side with the body of call k; 0: there is none.
func (w *world) slab(side, k int) Slab {
	i := slices.Index(w.Slabs[side], 0)
	if i >= 0 {
		w.Slabs[side][i] = k
	}
	return Slab(i + 1)
}

func (w *world) post(k int) string {
	var slab Slab
	if w.requests(k + 1) {
		slab = w.slab(0, k+1)
	}
	m, ok := w.Client.Request(uint16(w.Calls[k].Slot), "m", slab, 1)
	if !ok {
		return "Unposted, and nothing to post"
	}
	w.toServer(m, k+1)
	return ""
}

func (w *world) toServer(m Send, call int) {
	if c := &w.Conns[w.Client.epoch-1]; !c.Broken {
		if call != 0 {
			m.Metadata = []byte{byte(call)}
		}
		c.To = append(c.To, message{m.Message, m.Slab})
	}
}

func (w *world) toClient(m Send) {
	if c := &w.Conns[w.Session.live-1]; !c.Broken {
		if m.Type != wire.StreamData { // they lie in the slot
			m.Text, m.Metadata, m.Body = nil, nil, nil
		}
		c.From = append(c.From, message{m.Message, m.Slab})
	}
}

func (w *world) atServer(epoch uint32, m message) (problem string) {
	e, err := w.Session.Receive(epoch, &m.M)
	switch {
	case err != nil:
		return err.Error()
	case e.Kind == Fetch:
		w.Reads = append(w.Reads, read{true, epoch, e.Slot, m.Slab, int(m.M.Metadata[0]), 0})
	case e.Kind == Execute || e.Kind == Open:
		return w.run(e.Slot, int(m.M.Metadata[0]))
	case e.Kind == StreamMessage:
		w.arrived(w.Running[e.Slot], 1)
	case e.Kind == CancelHandler:
		k := w.Running[e.Slot]
		if s := w.Calls[k-1].State; s != left && s != broke {
			return fmt.Sprintf("the handler of %d is cancelled, and its caller waits", k)
		}
	}
	return ""
}

// run starts the handler of a call.
func (w *world) run(slot uint16, k int) (problem string) {
	w.Running[slot] = k
	c := &w.Calls[k-1]
	if c.Ran++; c.Ran > 1 {
		return fmt.Sprintf("call %d is executed %d times", k, c.Ran)
	}
	if c.State == left && !c.Sent {
		return fmt.Sprintf("call %d is executed, though it was never posted", k)
	}
	return ""
}

// finish ends the handler of call k, whose result is its number.
func (w *world) finish(k int) (problem string) {
	w.Calls[k-1].Ended = true
	slot := slices.Index(w.Running, k)
	w.Running[slot] = 0
	r := &Reply{Flags: wire.Error, Code: uint32(100 + k)}
	if w.Mixed {
		r.Metadata = block[:100*k%4000]
	}
	if w.requests(k) {
		if r.Slab, r.Length = w.slab(1, k), 1; r.Slab == 0 {
			return "a slab of the server has leaked"
		}
	}
	w.Session.Finish(uint16(slot), r)
	return ""
}

func (w *world) atClient(epoch uint32, m message) (problem string) {
	e, err := w.Client.Receive(epoch, &m.M)
	switch k := w.caller(int(e.Slot)); {
	case err != nil:
		return err.Error()
	case e.Kind == Fetch:
		w.Reads = append(w.Reads, read{false, epoch, e.Slot, m.Slab, w.Slabs[1][m.Slab-1], m.M.Code})
	case e.Kind == Answered, e.Kind == StreamEnded:
		if k > 0 && w.Mixed && m.M.Flags&wire.Session != 0 && m.M.Code == wire.DataLoss {
			m.M.Code = uint32(100 + k) // executed, as answered checks
		}
		return w.answered(k, e.Kind, m.M.Code)
	case e.Kind == StreamMessage:
		w.arrived(k, 0)
	}
	return ""
}

// arrived counts a message of the stream k at the caller's side, 0, or the
// handler's, 1.
func (w *world) arrived(k, side int) {
	w.Calls[k-1].Unread[side]++
	w.Calls[k-1].In[side]++
}

// caller is the call that has a slot, from 1; 0: none.
func (w *world) caller(slot int) int {
	return 1 + slices.IndexFunc(w.Calls, func(c call) bool { return c.Slot == slot })
}

// answered is the result that the caller of a call gets.
func (w *world) answered(k int, kind Kind, code uint32) (problem string) {
	if k == 0 {
		return "an answer for a caller that has left"
	}
	c := &w.Calls[k-1]
	if code != uint32(100+k) {
		return fmt.Sprintf("call %d gets status %d, the result of another", k, code)
	}
	if c.Ran != 1 {
		return fmt.Sprintf("call %d gets its result, and ran %d times", k, c.Ran)
	}
	if kind == StreamEnded {
		under := 0
		for _, r := range w.Reads {
			if !r.Server && int(r.Slot) == c.Slot {
				under++
			}
		}
		if c.In[0]+under != c.Out[1] {
			return fmt.Sprintf("the stream of %d ends after %d messages and %d READs of %d", k, c.In[0], under, c.Out[1])
		}
		w.Client.Abandon(uint16(c.Slot))
	}
	c.State, c.Slot = answeredOK, -1
	return ""
}

// fetched completes a READ: it must have read the body that was offered.
func (w *world) fetched(i int) (problem string) {
	r := w.Reads[i]
	w.Reads = slices.Delete(w.Reads, i, i+1)
	side := 1
	if r.Server {
		side = 0
	}
	if got := w.Slabs[side][r.Slab-1]; got != r.Call {
		return fmt.Sprintf("a READ of the body of %d gets that of %d", r.Call, got)
	}
	if !r.Server {
		k := w.caller(int(r.Slot))
		switch e := w.Client.Fetched(r.Epoch, r.Slot); e.Kind {
		case Answered:
			return w.answered(k, e.Kind, r.Code)
		case StreamMessage:
			w.arrived(k, 0)
		}
		return ""
	}
	switch e := w.Session.Fetched(r.Epoch, r.Slot); e.Kind {
	case Execute:
		return w.run(r.Slot, r.Call)
	case StreamMessage:
		w.arrived(r.Call, 1)
	}
	return ""
}

// event takes in what the end of a connection, or of the session, means.
func (w *world) event(e Event) {
	c := &w.Calls[w.caller(int(e.Slot))-1]
	switch e.Kind {
	case EndedUnknown:
		c.State, c.Slot = unknown, -1
	case NotPosted:
		c.State, c.Slot = waits, -1
	case Broken:
		w.Client.Abandon(e.Slot)
		c.State, c.Slot = broke, -1
	}
}

// collect takes the slabs back that the ends have freed.
func (w *world) collect() {
	for slab, ok := w.Client.Freed(); ok; slab, ok = w.Client.Freed() {
		w.Slabs[0][slab-1] = 0
	}
	for slab, ok := w.Server.Freed(); ok; slab, ok = w.Server.Freed() {
		w.Slabs[1][slab-1] = 0
	}
}

// Stuck says what is wrong with a world in which nothing more happens.
func (w *world) Stuck() string {
	for k, c := range w.Calls {
		switch {
		case c.State == waits || c.State == has:
			return fmt.Sprintf("call %d never ends", k+1)
		case c.State == unknown && !w.Loses:
			return fmt.Sprintf("the fate of call %d is unknown, though the session was never lost", k+1)
		}
	}
	switch {
	case len(w.Client.free) != w.Client.usable:
		return "a slot has leaked"
	case w.Offer && slices.Max(w.Slabs[0]) > 0:
		return "a slab of the client has leaked"
	}
	return ""
}
