package core

import (
	"fmt"
	"syscall"
)

// Post is a request to be posted: a WRITE_WITH_IMM of data if Control.Type is
// 0, else a SEND of the control message.
type Post struct {
	ID        uint64 // numbers the end's requests from 0, for Complete
	Signal    bool
	Control   Control
	Staged    uint64 // offset in staging
	Offset    uint64 // offset in the peer's ring
	Length    uint64 // bytes
	Immediate uint32
}

// Stage returns the offset in staging and the length of the next chunk, for at
// most n bytes: what credit, a slot and staging allow to be posted now. A
// length of 0 says that the writer must wait. whole asks for all n bytes in one
// chunk, which are EMSGSIZE if they are more than Longest.
//
// The chunk stays staged, and keeps its slot, until Commit or Unstage; staging
// again replaces it.
func (e *End) Stage(n uint64, whole bool) (offset, length uint64, err error) {
	e.Unstage()
	if err := e.Writable(); err != nil {
		return 0, 0, err
	}
	if whole && n == 0 {
		return 0, 0, fmt.Errorf("an empty message; it has at least a byte: %w", syscall.EINVAL)
	}
	if whole && n > e.longest && e.opened {
		return 0, 0, fmt.Errorf("a message of %d bytes; the connection takes %d: %w", n, e.longest, syscall.EMSGSIZE)
	}
	if !whole {
		n = e.out.layout.Fill(e.out.next, e.out.Room(), min(n, e.longest))
	}
	if n == 0 || !e.opened || !e.out.Fits(n) || !e.queue.DataSlot() || !e.queue.Stages(n) {
		return 0, 0, nil
	}
	e.staged = n
	offset = e.queue.Stage(n)
	e.lent = max(e.lent, offset+n)
	return offset, n, nil
}

// Unstage gives up the staged chunk. A control message for which no slot was
// left goes with the next completion.
func (e *End) Unstage() { e.staged, e.queue.held = 0, 0 }

// Committable reports whether Commit need not wait: no post is under way.
func (e *End) Committable() bool {
	if e.Writable() != nil {
		return true
	}
	e.denied = e.denied || e.posting
	return !e.posting
}

// Commit takes the first n bytes of the staged chunk, at least 1, to be posted.
// ok is false if the writer must wait for a post that is under way, and for
// nothing else. After a take the caller posts, and calls Posted.
func (e *End) Commit(n uint64) (p Post, ok bool, err error) {
	if err := e.Writable(); err != nil {
		return Post{}, false, err
	}
	if !e.Committable() {
		return Post{}, false, nil
	}
	p.Staged, p.Length = e.queue.Stage(e.staged), n
	p.Offset = e.out.Put(n)
	p.Immediate = e.in.Immediate()
	e.queue.Commit(e.staged, n)
	e.staged = 0
	p.ID, p.Signal = e.queue.Put(false)
	e.posting = true
	return p, true, nil
}

// TakeControl takes the control message that is posted next; ok is false if
// none is noted, none may be posted now, or a post is under way. After a take
// the caller posts, and calls Posted. It is called after all that may note one
// or give back a slot: Open, Posted, Complete, Receive, Discard, CloseWrite,
// Reset.
func (e *End) TakeControl() (p Post, ok bool) {
	if !e.opened || e.posting || e.resetTaken || e.Lost() || !e.queue.ControlSlot() {
		return Post{}, false
	}
	m := &p.Control
	switch {
	case e.resetWanted:
		m.Type, m.Argument = RESET, uint64(e.resetCode)
		e.resetTaken = true
	case e.err != nil:
		return Post{}, false
	case e.finWanted && !e.finTaken:
		m.Type, m.Argument = FIN, e.out.bytes
		e.finTaken, e.finID = true, e.queue.posted
	case e.in.Due() || e.lastCredit():
		m.Type = CREDIT
	default:
		return Post{}, false
	}
	m.Consumed = e.in.Credit()
	p.Length = ControlLen
	p.ID, p.Signal = e.queue.Put(m.Type == FIN || m.Type == RESET || e.closing)
	if e.closing {
		e.lastID = p.ID
	}
	e.posting = true
	return p, true
}

// Posting reports whether a post is under way.
func (e *End) Posting() bool { return e.posting }

// Posted tells that the posts taken are in the send queue. wake says that a
// writer was refused meanwhile and can go on.
func (e *End) Posted() (wake bool) {
	wake = e.denied
	e.posting, e.denied = false, false
	return wake
}
