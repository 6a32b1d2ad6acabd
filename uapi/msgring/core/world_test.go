package core

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmashim/rdmashim/tests/explore"
)

// world is two ends and the queue pairs between them, which deliver in order,
// acknowledge late, and complete into one queue a side.
//
// Unless it is Fine, staging, committing and posting of a chunk are one step,
// as are the reads of all that has arrived, and the completions that are there;
// unless it is Late, so are the arrival and acknowledgement of a message.
type world struct {
	Side       [2]*side
	Fine, Late bool
}

// side is an end and the goroutines at it: a writer, a reader, a closer.
type side struct {
	End      *End
	Ring     []byte
	Staging  []byte
	Receives int    // posted
	Underway []Post // taken, not posted

	Wire []Post   // in the send queue, not delivered
	Acks []uint64 // signaled requests that were delivered and not acknowledged
	CQ   []event

	Left    uint64 // bytes that the writer has not committed
	Length  uint64 // bytes of the next Write; 0: all
	Whole   bool   // a Write is a message, one chunk
	Staged  uint64
	Blocked bool   // the writer was told to wait
	Written uint64 // bytes committed
	Read    uint64 // bytes read
	Reads   bool   // there is a reader
	Closes  bool   // the writer closes when it has written all
	Closed  bool
	Leaves  bool // a closer closes both directions, when all was written and read
	Resets  bool // or a closer does when there is unread data
	Gone    bool // it has
	Always  bool // a goroutine always works for the completion queue
}

// event is a completion: of request ID, or of a message.
type event struct {
	Sent bool
	ID   uint64
	Post Post
}

// bounds are a world's sizes, for both sides.
type bounds struct {
	config  Config
	longest uint64
}

func newSide(b bounds) *side {
	s := &side{
		End:      NewEnd(b.config),
		Ring:     bytes.Repeat([]byte{poison}, int(b.config.Ring.Size)),
		Staging:  bytes.Repeat([]byte{poison}, int(b.config.Staging.Size)),
		Receives: int(b.config.Ring.Size/b.config.Ring.Quantum + b.config.Controls),
	}
	s.End.Open(b.config.Ring, b.longest)
	return s
}

const poison = 0xa5

// content is byte i of what side n writes.
func content(n int, i uint64) byte { return byte(i) ^ byte(i>>8)*31 ^ byte(n)<<7 }

func cloneEnd(e *End) *End {
	c := *e
	c.in.chunks.items = slices.Clone(e.in.chunks.items)
	c.queue.ends.items = slices.Clone(e.queue.ends.items)
	return &c
}

func (w *world) clone() *world {
	c := &world{Fine: w.Fine, Late: w.Late}
	for i, s := range w.Side {
		d := *s
		d.End = cloneEnd(s.End)
		d.Ring, d.Staging = slices.Clone(s.Ring), slices.Clone(s.Staging)
		d.Underway = slices.Clone(s.Underway)
		d.Wire, d.Acks, d.CQ = slices.Clone(s.Wire), slices.Clone(s.Acks), slices.Clone(s.CQ)
		c.Side[i] = &d
	}
	return c
}

// action is something that can happen at a side. It returns a problem, or "".
type action struct {
	label string
	do    func(w *world, i int) string
}

// actions lists what can happen at side i now.
func (w *world) actions(i int) (out []action) {
	s := w.Side[i]
	add := func(possible bool, label string, do func(w *world, i int) string) {
		if possible {
			out = append(out, action{label, do})
		}
	}
	add(s.Left > 0 && s.Staged == 0 && (!s.Blocked || w.canStage(i)), "stages", (*world).stage)
	add(s.Staged > 0 && w.canCommit(i), "commits", (*world).commit)
	for k := range s.Underway {
		add(true, "posts", func(w *world, i int) string { return w.post(i, k) })
	}
	data, _, _ := s.End.Readable()
	add(s.Reads && data, "reads", (*world).readAll)
	add(s.Closes && s.Left == 0 && !s.Closed, "closes", (*world).close)
	add(s.Leaves && s.Closed && !s.Gone && w.Side[1-i].done() && s.Read == w.Side[1-i].Written, "leaves", (*world).leave)
	add(s.Resets && !s.Gone && s.done() && data, "leaves", (*world).leave)
	add(len(s.Wire) > 0, "message arrives from", (*world).deliver)
	add(len(s.Acks) > 0, "acknowledgement comes to", (*world).acknowledge)
	add(len(s.CQ) > 0 && (s.Always || w.waits(i)), "works at", (*world).workAll)
	return out
}

func (w *world) canStage(i int) bool {
	s := w.Side[i]
	_, n, _ := cloneEnd(s.End).Stage(s.want(), s.Whole)
	return n > 0
}

func (w *world) canCommit(i int) bool {
	c := cloneEnd(w.Side[i].End)
	_, ok, _ := c.Commit(w.Side[i].Staged)
	return ok
}

// waits reports whether a goroutine of the side waits, and so works.
func (w *world) waits(i int) bool {
	s := w.Side[i]
	data, eof, _ := s.End.Readable()
	return s.Reads && !data && !eof ||
		s.Blocked && !w.canStage(i) ||
		s.Staged > 0 && !w.canCommit(i) ||
		s.Closed && !s.End.Flushed() ||
		s.Gone && !s.End.Flushed() && !s.End.ResetFlushed()
}

// done reports whether the side has written all.
func (s *side) done() bool { return s.Left == 0 && s.Staged == 0 && len(s.Underway) == 0 }

// want is how many bytes the writer would have in the next chunk.
func (s *side) want() uint64 {
	if s.Length == 0 {
		return s.Left
	}
	return min(s.Length, s.Left)
}

func (w *world) stage(i int) string {
	s := w.Side[i]
	offset, n, err := s.End.Stage(s.want(), s.Whole)
	if errors.Is(err, syscall.ECONNRESET) && w.Side[1-i].Gone {
		s.Left, s.Blocked = 0, false
		return ""
	}
	if err != nil {
		return err.Error()
	}
	s.Staged, s.Blocked = n, n == 0
	for k := range n {
		s.Staging[offset+k] = content(i, s.Written+k)
	}
	return w.serve(i)
}

func (w *world) commit(i int) string {
	s := w.Side[i]
	p, ok, err := s.End.Commit(s.Staged)
	switch {
	case err != nil:
		return err.Error()
	case ok:
		s.Left -= s.Staged
		s.Written += s.Staged
		s.Staged = 0
		s.Underway = append(s.Underway, p)
	}
	return ""
}

// serve takes the control message that is to be posted, as each goroutine does
// before it gives up the endpoint's lock.
func (w *world) serve(i int) string {
	s := w.Side[i]
	if p, ok := s.End.TakeControl(); ok {
		s.Underway = append(s.Underway, p)
	}
	return ""
}

// post puts what was taken k-th into the send queue.
func (w *world) post(i, k int) string {
	s := w.Side[i]
	s.Wire = append(s.Wire, s.Underway[k])
	s.Underway = slices.Delete(s.Underway, k, k+1)
	s.End.Posted()
	if n := s.End.queue.posted - s.End.queue.done; n > s.End.queue.slots {
		return fmt.Sprintf("%d requests in %d slots: the post fails with ENOMEM", n, s.End.queue.slots)
	}
	return w.serve(i)
}

func (w *world) read(i int, n uint64) string {
	s := w.Side[i]
	offset, length := s.End.Peek()
	for j := range min(n, length) {
		if got, want := s.Ring[offset+j], content(1-i, s.Read); got != want {
			return fmt.Sprintf("byte %d is read as %#02x, not %#02x", s.Read, got, want)
		}
		s.Ring[offset+j] = poison
		s.Read++
	}
	s.End.Discard(n)
	if s.End.in.credited > s.End.in.consumed {
		return "more is told than consumed"
	}
	return w.serve(i)
}

// readAll reads the oldest chunk, or all.
func (w *world) readAll(i int) string {
	s := w.Side[i]
	for {
		_, length := s.End.Peek()
		problem := w.read(i, length)
		if w.Fine || problem != "" || !s.End.in.Unread() {
			return problem
		}
	}
}

func (w *world) close(i int) string {
	w.Side[i].Closed = true
	w.Side[i].End.CloseWrite()
	return w.serve(i)
}

func (w *world) leave(i int) string {
	w.Side[i].Gone = true
	w.Side[i].End.Close()
	return w.serve(i)
}

// parted says what is wrong when side i gives its queue pair back, and the
// other side takes in what has arrived.
func (w *world) parted(i int) string {
	s, peer := w.Side[i], w.Side[1-i]
	if !s.Leaves || !s.Gone || !s.End.Flushed() {
		return ""
	}
	end := cloneEnd(peer.End)
	for _, c := range peer.CQ {
		if !c.Sent && c.Post.Control.Type != 0 {
			_ = end.ReceiveControl(c.Post.Control.Append(nil))
		}
	}
	end.LoseBoth(syscall.ECONNRESET)
	if end.Undelivered() != nil {
		return fmt.Sprintf("side %d has read all and left, and the other does not know it", i)
	}
	return ""
}

// deliver is what the two devices do with the next message of side i.
func (w *world) deliver(i int) string {
	s, peer := w.Side[i], w.Side[1-i]
	p := s.Wire[0]
	s.Wire = s.Wire[1:]
	if peer.Receives--; peer.Receives < 0 {
		return "the message finds no receive (RNR)"
	}
	if p.Control.Type == 0 {
		for k := range p.Length {
			if peer.overwrites(p.Offset + k) {
				return fmt.Sprintf("ring byte %d is overwritten before it was read", p.Offset+k)
			}
			peer.Ring[p.Offset+k] = s.Staging[p.Staged+k]
		}
	}
	peer.CQ = append(peer.CQ, event{Post: p})
	if p.Signal {
		s.Acks = append(s.Acks, p.ID)
	}
	return ""
}

// overwrites reports whether a byte of the ring belongs to a chunk that has
// arrived and was not read whole.
func (s *side) overwrites(offset uint64) bool {
	c := &s.End.in
	for k := range c.chunks.len() {
		at := c.layout.Offset(c.chunks.at(k).start)
		if offset >= at && offset < at+c.chunks.at(k).length {
			return true
		}
	}
	return false
}

func (w *world) acknowledge(i int) string {
	s := w.Side[i]
	s.CQ = append(s.CQ, event{Sent: true, ID: s.Acks[0]})
	s.Acks = s.Acks[1:]
	return ""
}

// workAll takes one completion, or all.
func (w *world) workAll(i int) string {
	for {
		problem := w.work(i)
		if w.Fine || problem != "" || len(w.Side[i].CQ) == 0 {
			return problem
		}
	}
}

// work takes one completion, as the leader does.
func (w *world) work(i int) string {
	s := w.Side[i]
	c := s.CQ[0]
	s.CQ = s.CQ[1:]
	var err error
	switch {
	case c.Sent:
		before := s.End.queue
		s.End.Complete(c.ID)
		s.poison(&before)
	case c.Post.Control.Type == 0:
		s.Receives++
		err = s.End.ReceiveData(c.Post.Length, c.Post.Immediate)
	default:
		s.Receives++
		err = s.End.ReceiveControl(c.Post.Control.Append(nil))
	}
	if err != nil {
		return err.Error()
	}
	if credit, consumed := s.End.out.freed, w.Side[1-i].End.in.consumed; credit > consumed {
		return fmt.Sprintf("credit to %d, of %d consumed", credit, consumed)
	}
	return w.serve(i)
}

// poison overwrites staging that a completion gave back.
func (s *side) poison(before *SendQueue) {
	for pos := before.freed; pos < s.End.queue.freed; pos++ {
		s.Staging[s.End.queue.staging.Offset(pos)] = poison
	}
}

// unfinished says what was not done when nothing more can happen.
func (w *world) unfinished() string {
	for i, s := range w.Side {
		peer := w.Side[1-i]
		written := s.Left == 0 && s.Staged == 0 || peer.Gone // it reads no more
		switch {
		case !written && peer.Reads:
			return fmt.Sprintf("side %d has %d bytes left to write, and the peer reads", i, s.Left+s.Staged)
		case !written && s.End.out.Room() > 0 && !s.Whole:
			return fmt.Sprintf("side %d is blocked, and the peer's ring has room for %d bytes", i, s.End.out.Room())
		case s.Gone && !s.End.Flushed() && !s.End.ResetFlushed():
			return fmt.Sprintf("the last word of side %d never arrived", i)
		case s.Reads && s.Read != peer.Written:
			return fmt.Sprintf("side %d has read %d of %d bytes", i, s.Read, peer.Written)
		case s.Closes && written && !s.End.Flushed():
			return fmt.Sprintf("the FIN of side %d never arrived", i)
		case s.Reads && peer.Closed && !s.End.finSeen:
			return fmt.Sprintf("the reader of side %d waits for the FIN for ever", i)
		}
	}
	return ""
}

func (w *world) Steps() (out []explore.Step) {
	for i := range w.Side {
		for _, a := range w.actions(i) {
			c := w.clone()
			problem := a.do(c, i)
			if problem == "" {
				problem = c.settle(i)
			}
			if problem == "" {
				problem = c.parted(i)
			}
			out = append(out, explore.Step{Label: fmt.Sprintf("%s %d", a.label, i), Problem: problem, To: c})
		}
	}
	return out
}

// settle does at once what side i would do in further steps.
func (w *world) settle(i int) (problem string) {
	s := w.Side[i]
	for problem == "" {
		switch {
		case !w.Fine && len(s.Underway) > 0:
			problem = w.post(i, 0)
		case !w.Fine && s.Staged > 0 && w.canCommit(i):
			problem = w.commit(i)
		case !w.Late && len(s.Acks) > 0:
			problem = w.acknowledge(i)
		default:
			return ""
		}
	}
	return problem
}

func (w *world) Stuck() string { return w.unfinished() }
