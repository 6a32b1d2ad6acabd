package core

import (
	"errors"
	"fmt"
	"syscall"
)

// Config is fixed when an end is made.
type Config struct {
	Ring     Layout // this end's ring, which the peer writes
	Longest  uint64 // longest chunk that the peer may write, in bytes
	Staging  Layout // memory that this end's chunks are sent from
	Slots    uint64 // depth of the send queue
	Controls uint64 // slots that data leaves free
}

// End is one end of a connection. Its methods must not be called concurrently:
// the caller holds the endpoint's lock, and gives it up to post.
//
// Invariants: at most one post is under way (posting), so that posts reach the
// send queue in the order in which they were taken here, and the credit that
// they carry only grows. A post is a note here until it is made: a caller that
// finds a post under way, or no slot, leaves the note to the next caller that
// may post.
type End struct {
	out   Producer
	in    Consumer
	queue SendQueue

	opened  bool   // posting is allowed: the connection is set up
	posting bool   // a post was taken and is not posted yet
	denied  bool   // a writer was refused because of it
	longest uint64 // longest chunk that this end may write
	staged  uint64 // bytes of the chunk that is staged; 0: none
	lent    uint64 // bytes of staging that were a chunk's

	finWanted, finTaken bool
	finID, lastID       uint64 // requests of the FIN, and of the last message of a Close
	finSeen             bool   // the peer's data has ended
	closing             bool   // nothing more is read

	resetWanted, resetTaken bool
	resetCode               ResetCode
	resetSeen               bool

	err         error // why the end failed
	lostSending error // why nothing more can be sent
	lostBoth    error // why nothing more comes either, behind what has arrived
}

// NewEnd makes an end. It takes in the peer's messages from now on, and posts
// nothing before Open.
func NewEnd(c Config) *End {
	return &End{
		out:   Producer{layout: Layout{Size: 0, Quantum: 1}},
		in:    Consumer{layout: c.Ring, longest: c.Longest},
		queue: SendQueue{slots: c.Slots, controls: c.Controls, staging: c.Staging},
	}
}

// Open allows posting, into the peer's ring. longest bounds this end's chunks,
// in bytes; a quarter of either ring or staging bounds them too. Posts that
// were noted before may be taken now.
func (e *End) Open(peer Layout, longest uint64) {
	e.out.layout = peer
	e.longest = min(longest, peer.Size/4, e.queue.staging.Size/4)
	e.opened = true
}

// Lent is how much of staging has been chunks' so far, committed or not, in
// bytes from its start.
func (e *End) Lent() uint64 { return e.lent }

// Longest is the longest chunk that Stage takes, in bytes.
func (e *End) Longest() uint64 { return e.longest }

// Writable is nil while data may be written; then EPIPE after CloseWrite and
// when a peer has gone that had ended its data (tcp_reset in Linux's
// tcp_input.c), or why the connection ended.
func (e *End) Writable() error {
	if why := e.stopped(); why != nil {
		return why
	}
	if e.finWanted {
		return errSendingClosed
	}
	return nil
}

var (
	errReset         = fmt.Errorf("reset by the peer: %w", syscall.ECONNRESET)
	errPeerClosed    = fmt.Errorf("the peer has closed: %w", syscall.EPIPE)
	errSendingClosed = fmt.Errorf("the sending side is closed: %w", syscall.EPIPE)
)

// stopped is why nothing can be sent though this end would.
func (e *End) stopped() error {
	why := e.ended()
	if why == nil {
		why = e.lostSending
	}
	if why != nil && e.finSeen && errors.Is(why, syscall.ECONNRESET) {
		return errPeerClosed
	}
	return why
}

// Readable reports what a reader gets now: data, the end of the peer's data, or
// why the connection ended. All three zero: nothing yet. What arrived before a
// RESET is read before it; a breach of the protocol discards it.
func (e *End) Readable() (data, eof bool, err error) {
	switch {
	case e.err != nil:
		return false, false, e.err
	case e.in.Unread():
		return true, false, nil
	case e.finSeen:
		return false, true, nil
	case e.resetSeen:
		return false, false, e.ended()
	}
	return false, false, e.lostBoth
}

// ended is why neither end sends any more, if the ends said so.
func (e *End) ended() error {
	switch {
	case e.err != nil:
		return e.err
	case e.resetSeen:
		return errReset
	}
	return nil
}

// Over reports whether both directions have ended, or the connection broke. A
// peer that has gone behind its FIN leaves this end its own to say.
func (e *End) Over() bool {
	why := e.stopped()
	return e.finSeen && e.finWanted || e.resetSeen || why != nil && why != errPeerClosed
}

// Fail ends the connection for the reason err; the first one stays. A breach of
// the protocol is told to the peer, by RESET.
func (e *End) Fail(err error) {
	if e.err != nil {
		return
	}
	e.err = err
	if _, ok := err.(*ProtocolError); ok {
		e.Reset(ProtocolViolated)
	}
}

// LoseSending notes that a post or a send failed, for the reason err: nothing
// more is posted. Arrived data is still taken in and read; the first reason
// stays.
func (e *End) LoseSending(err error) {
	if e.lostSending == nil {
		e.lostSending = err
	}
}

// LoseBoth is LoseSending when a receive failed, which it does behind all that
// arrived: a reader gets err behind that, or the end of the data if the peer's
// FIN has arrived.
func (e *End) LoseBoth(err error) {
	e.LoseSending(err)
	if e.lostBoth == nil {
		e.lostBoth = err
	}
}

// Lost reports whether nothing more can be sent or is taken in.
func (e *End) Lost() bool { return e.lostSending != nil || e.resetSeen }

// LostBoth reports whether LoseBoth was called.
func (e *End) LostBoth() bool { return e.lostBoth != nil }

// CloseWrite notes a FIN. Data that is staged and not committed is not sent.
func (e *End) CloseWrite() { e.finWanted = true }

// Close ends both directions: by a RESET if there is unread data, else by a
// FIN. A FIN that went before is followed by a CREDIT, so that the peer knows
// that all was read (Undelivered).
func (e *End) Close() {
	if e.in.Unread() {
		e.Reset(ClosedUnread)
	}
	e.finWanted, e.closing = true, true
}

// lastCredit reports whether the CREDIT behind the FIN is to be sent: there is
// something to tell, or it was told by a message without an acknowledgement.
func (e *End) lastCredit() bool {
	return e.closing && e.finTaken && (e.in.consumed != e.in.credited || e.queue.posted > max(e.finID, e.lastID)+1)
}

// Flushed reports whether the FIN, and so all before it, has arrived at the
// peer's device, and nothing is to follow it.
func (e *End) Flushed() bool {
	return e.finArrived() && e.queue.done > e.lastID && !e.lastCredit() && !e.resetWanted
}

func (e *End) finArrived() bool { return e.finTaken && e.queue.done > e.finID }

// Undelivered is nil if all that was written has arrived at the peer's device:
// a FIN or RESET behind it has, or the peer has told that it has read it. Else
// it is why nothing more can arrive, or EINPROGRESS.
func (e *End) Undelivered() error {
	if e.finArrived() || e.ResetFlushed() || e.out.freed == e.out.next {
		return nil
	}
	if why := e.stopped(); why != nil {
		return why
	}
	return syscall.EINPROGRESS
}

// Reset notes a RESET, unless one was noted before. Nothing is posted behind
// it.
func (e *End) Reset(code ResetCode) {
	if !e.resetWanted {
		e.resetWanted, e.resetCode = true, code
	}
}

// ResetFlushed reports whether a RESET has arrived at the peer's device.
func (e *End) ResetFlushed() bool { return e.resetTaken && e.queue.Idle() }

// Peek and Discard are those of the Consumer.
func (e *End) Peek() (offset, length uint64) { return e.in.Peek() }
func (e *End) Discard(n uint64)              { e.in.Discard(n) }
