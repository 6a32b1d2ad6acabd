package core

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/rdmashim/rdmashim/tests/explore"
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
	Running []int // by slot of the server: the call whose handler runs, 0: none
	Reads   []read
	Slabs   [2][]int // of the client and the server: the call whose body it holds; 0: free
	bounds
}

// bounds are what a world may do.
type bounds struct {
	Epochs  int
	Slots   int
	Late    int  // calls, from the last, whose callers never leave
	Offer   bool // bodies and replies are offered
	Streams bool // all calls are streams
	Loses   bool // the server may lose the session
}

type phase uint8

const (
	dialling  phase = iota // the REQ is under way
	answering              // the REP is
	connected
)

type call struct {
	Slot   int // -1: none
	State  callState
	Sent   bool // as Abandon says
	Ran    int  // how often its handler was started
	Ended  bool // the handler
	Result int  // the call whose result it got, -1 of no handler
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
	Answer   SessionState
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

func (f fifo[T]) clone() fifo[T] { return fifo[T]{items: slices.Clone(f.items[f.head:])} }

// clone copies all but counters, which are zero.
func (w *world) clone() *world {
	d := *w
	c := *w.Client
	c.Repeats, c.Voids, c.Dropped = 0, 0, 0
	c.slots, c.free, c.methods = slices.Clone(c.slots), slices.Clone(c.free), maps.Clone(c.methods)
	for i := range c.slots {
		c.slots[i].slabs = c.slots[i].slabs.clone()
	}
	c.pending, c.freed = c.pending.clone(), c.freed.clone()
	d.Client = &c
	s := &Server{config: w.Server.config, sessions: map[[16]byte]*Session{}, freed: w.Server.freed.clone()}
	d.Server = s
	if w.Session != nil {
		x := *w.Session
		x.server = s
		x.slots, x.methods, x.pending = slices.Clone(x.slots), slices.Clone(x.methods), x.pending.clone()
		for i := range x.slots {
			y := &x.slots[i]
			y.slabs = y.slabs.clone()
			y.reply.buffer = slices.Clone(y.reply.buffer)
		}
		if !x.ended {
			s.sessions[x.id] = &x
		}
		d.Session = &x
	}
	d.Calls, d.Reads, d.Running = slices.Clone(w.Calls), slices.Clone(w.Reads), slices.Clone(w.Running)
	d.Slabs = [2][]int{slices.Clone(w.Slabs[0]), slices.Clone(w.Slabs[1])}
	d.Conns = slices.Clone(w.Conns)
	for i := range d.Conns {
		d.Conns[i].To, d.Conns[i].From = slices.Clone(d.Conns[i].To), slices.Clone(d.Conns[i].From)
	}
	return &d
}

// Steps lists what can happen next.
func (w *world) Steps() (out []explore.Step) {
	add := func(outside bool, label string, change func(*world) (problem string)) {
		d := w.clone()
		problem := change(d)
		d.collect()
		out = append(out, explore.Step{Label: label, Problem: problem, To: d, Outside: outside})
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
	if x := w.Session; x != nil && x.up && x.pending.len() > 0 {
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

type adder func(outside bool, label string, change func(*world) (problem string))

// callerSteps is what the caller of call k+1 may do.
func (w *world) callerSteps(k int, add adder) {
	c := w.Calls[k]
	switch c.State {
	case waits:
		if w.Client.Free() > 0 && (k == 0 || w.Calls[k-1].State != waits) {
			add(false, fmt.Sprintf("call %d begins", k+1), func(d *world) string {
				slot, _ := d.Client.Begin(d.Streams)
				d.Calls[k].State, d.Calls[k].Slot = has, int(slot)
				return ""
			})
		}
	case has:
		if w.Client.Unposted(uint16(c.Slot)) && (!w.Offer || slices.Contains(w.Slabs[0], 0)) {
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

func (w *world) post(k int) string {
	var slab Slab
	if w.Offer {
		i := slices.Index(w.Slabs[0], 0)
		w.Slabs[0][i] = k + 1
		slab = Slab(i + 1)
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
		m.Text = nil // they lie in the slot
		m.Metadata, m.Body = nil, nil
		c.From = append(c.From, message{m.Message, m.Slab})
	}
}

// connection is what may become of the newest connection.
func (w *world) connection(add adder) {
	c, epoch := w.Client, w.Client.epoch
	switch {
	case w.Phase == dialling:
		add(false, fmt.Sprintf("the server takes REQ %d", epoch), func(d *world) string { return d.admit() })
	case w.Phase == answering && !w.Conns[epoch-1].Broken:
		add(false, fmt.Sprintf("the client gets REP %d", epoch), func(d *world) string { return d.connected() })
	}
	if w.Phase != dialling && !w.Conns[epoch-1].Broken && int(epoch) < w.Epochs {
		add(true, fmt.Sprintf("connection %d breaks", epoch), func(d *world) string {
			d.Conns[epoch-1].Broken = true
			return ""
		})
	}
	if w.Phase != dialling && w.Conns[epoch-1].Broken {
		add(false, fmt.Sprintf("the client dials with epoch %d", epoch+1), func(d *world) string {
			d.Client.Disconnected(d.Client.live, d.event)
			d.Reads = slices.DeleteFunc(d.Reads, func(r read) bool { return !r.Server })
			d.Client.Attempt()
			d.Phase = dialling
			return ""
		})
	}
	if x := w.Session; x != nil && x.live != 0 && w.Conns[x.live-1].Broken {
		add(false, fmt.Sprintf("the server sees that connection %d is broken", x.live), func(d *world) string {
			d.lost(d.Session.live)
			return ""
		})
	}
	if x := w.Session; w.Loses && x != nil && !x.ended && !x.open && x.handlers == 0 && int(c.epoch) <= w.Epochs {
		add(true, "the session's life ends", func(d *world) string {
			d.Server.Expire(1<<60, func(*Session) {})
			return ""
		})
	}
}

// lost is what the server does when a connection's queue pair is destroyed.
func (w *world) lost(epoch uint32) {
	w.Session.Disconnected(0, epoch, func(Event) {})
	w.Reads = slices.DeleteFunc(w.Reads, func(r read) bool { return r.Server && r.Epoch == epoch })
}

func (w *world) admit() (problem string) {
	epoch := w.Client.epoch
	x, state, err := w.Server.Admit(0, [16]byte{1}, epoch, w.Client.Slots())
	if err != nil {
		return fmt.Sprintf("epoch %d is refused: %v", epoch, err)
	}
	if w.Session != nil && w.Session.live != 0 {
		w.Conns[w.Session.live-1].Broken = true
		w.lost(w.Session.live)
	}
	w.Session = x
	for len(w.Conns) < int(epoch) {
		w.Conns = append(w.Conns, conn{})
	}
	w.Conns[epoch-1].Answer = state
	x.Connected(epoch)
	w.Phase = answering
	return ""
}

func (w *world) connected() (problem string) {
	epoch := w.Client.epoch
	w.Phase = connected
	if err := w.Client.Connected(epoch, w.Conns[epoch-1].Answer, w.Session.Slots(), w.event); err != nil {
		return err.Error()
	}
	return ""
}

// deliver is what may become of the messages of connection i+1. Those that have
// completed are polled even when the connection is broken, or lost.
func (w *world) deliver(i int, add adder) {
	c, epoch := w.Conns[i], uint32(i+1)
	if len(c.To) > 0 {
		m := c.To[0]
		add(c.Broken, fmt.Sprintf("the server polls %v %d of slot %d from %d", m.M.Type, m.M.Sequence, m.M.Slot, epoch), func(d *world) string {
			d.Conns[i].To = d.Conns[i].To[1:]
			return d.atServer(epoch, m)
		})
	}
	if len(c.From) > 0 && (epoch < w.Client.epoch || w.Phase == connected) {
		m := c.From[0]
		add(c.Broken, fmt.Sprintf("the client polls %v %d of slot %d from %d", m.M.Type, m.M.Sequence, m.M.Slot, epoch), func(d *world) string {
			d.Conns[i].From = d.Conns[i].From[1:]
			return d.atClient(epoch, m)
		})
	}
	if c.Broken && len(c.To)+len(c.From) > 0 {
		add(false, fmt.Sprintf("the rest of connection %d is lost", epoch), func(d *world) string {
			d.Conns[i].To, d.Conns[i].From = nil, nil
			return ""
		})
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
	if w.Offer {
		i := slices.Index(w.Slabs[1], 0)
		if i < 0 {
			return "a slab of the server has leaked"
		}
		w.Slabs[1][i] = k
		r.Slab, r.Length = Slab(i+1), 1
	}
	w.Session.Finish(0, uint16(slot), r)
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
		return w.answered(k, e.Kind, m.M.Code)
	}
	return ""
}

// caller is the call that has a slot, from 1; 0: none.
func (w *world) caller(slot int) int {
	return 1 + slices.IndexFunc(w.Calls, func(c call) bool { return c.Slot == slot })
}

// answered is what the caller of a call gets.
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
		if e := w.Client.Fetched(r.Epoch, r.Slot); e.Kind == Answered {
			return w.answered(k, e.Kind, r.Code)
		}
		return ""
	}
	if e := w.Session.Fetched(r.Epoch, r.Slot); e.Kind == Execute {
		return w.run(r.Slot, r.Call)
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
	case !w.Client.Idle():
		return "a slot has leaked"
	case w.Offer && slices.Max(w.Slabs[0]) > 0:
		return "a slab of the client has leaked"
	}
	return ""
}

// worlds are the bounds of the exploration.
var worlds = []struct {
	name   string
	calls  int
	bounds bounds
	long   bool
}{
	{"two calls", 2, bounds{Epochs: 2, Slots: 1, Late: 1}, false},
	{"three calls, three connections", 3, bounds{Epochs: 3, Slots: 1, Late: 2}, true},
	{"two slots", 2, bounds{Epochs: 2, Slots: 2, Late: 2}, true},
	{"offers", 2, bounds{Epochs: 2, Slots: 1, Late: 1, Offer: true}, false},
	{"offers, two slots", 2, bounds{Epochs: 2, Slots: 2, Late: 2, Offer: true}, true},
	{"streams", 2, bounds{Epochs: 2, Slots: 1, Late: 1, Streams: true}, false},
	{"a session that is lost", 2, bounds{Epochs: 2, Slots: 1, Late: 1, Loses: true}, false},
}

// TestExplore holds, in all interleavings, that no call is executed twice, that
// each result is the call's own, that every call ends, that both ends stay in
// step, and that slots and slabs return.
func TestExplore(t *testing.T) {
	for _, c := range worlds {
		t.Run(c.name, func(t *testing.T) {
			if c.long && testing.Short() {
				t.Skip("takes seconds; run it without -short")
			}
			t.Logf("%d states", explore.Check(t, newWorld(c.bounds, c.calls), 2_000_000))
		})
	}
}
