package session

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

// turn is the right to read a connection (leader/followers). The connection's
// reader has it, and wakes the callers whose answers come; but a caller that is
// alone reads for itself, and no goroutine is woken.
//
// Invariants: token is in its channel while no goroutine reads. The goroutine
// that took it out owns fault, chunk, rest and message.
type turn struct {
	token   chan struct{}
	kick    chan struct{} // tells the connection's reader to read
	led     atomic.Uint64 // how often a caller began to read
	fault   error         // the error that a caller's read ended with
	chunk   int           // bytes of the chunk that is being read, 0 for none
	rest    []byte        // of the chunk
	message wire.Message  // of the goroutine that reads
}

func (t *turn) init() {
	t.token, t.kick = make(chan struct{}, 1), make(chan struct{}, 1)
	t.token <- struct{}{}
}

// parked is how long the connection's reader waits for callers that lead. If
// none came within it, the reader reads itself.
const parked = time.Millisecond

// park leaves the reading to callers that are alone, until none has come for a
// while.
func (t *turn) park() {
	timer := time.NewTimer(parked)
	defer timer.Stop()
	for {
		led := t.led.Load()
		select {
		case <-t.kick:
			return
		case <-timer.C:
			if t.led.Load() == led {
				return
			}
			timer.Reset(parked)
		}
	}
}

// lead reads in a caller's goroutine until its call is done, if no other reads.
// The caller kicks the connection's goroutine if others wait as well.
func (x *link) lead(p *pending) {
	t, ctx := &x.turn, p.ctx
	select {
	case <-t.token:
	default:
		return
	}
	t.led.Add(1)
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, x.conn.Interrupt)()
	}
	for t.fault == nil && len(p.done) == 0 && ctx.Err() == nil {
		t.fault = x.readOne()
		x.flush()
	}
	if t.fault != nil {
		wake(t.kick)
	}
	t.token <- struct{}{}
}

// readOne gives the peer's next message to the end. Preconditions: the caller
// has the turn.
func (x *link) readOne() (err error) {
	t := &x.turn
	if t.chunk == 0 {
		t.rest, err = x.conn.Peek()
		if errors.Is(err, msgring.ErrInterrupted) {
			return nil
		}
		if err != nil {
			return err
		}
		t.chunk = len(t.rest)
	}
	if t.rest, err = t.message.Parse(t.rest); err == nil {
		err = x.end.receive(x, &t.message)
		x.post()
	}
	if err != nil || len(t.rest) == 0 {
		x.conn.Discard(t.chunk)
		t.chunk, t.rest = 0, nil
	}
	return err
}
