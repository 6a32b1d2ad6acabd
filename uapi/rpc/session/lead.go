package session

import (
	"context"
	"errors"
	"time"

	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

// intake is what the owner of a connection's turn reads.
type intake struct {
	fault   error        // the error that a caller's read ended with
	chunk   int          // bytes of the chunk that is being read, 0 for none
	rest    []byte       // of the chunk
	message wire.Message // at hand
}

// parked is how long the connection's reader waits for callers that lead. If
// none came within it, the reader reads itself.
const parked = time.Millisecond

// park leaves the reading to callers that are alone, until none has come for a
// while, or one needs the reader. Preconditions: the caller is the reader, and
// has the turn. It has it again afterwards.
func (x *link) park() {
	t := &x.turn
	t.move(park)
	if x.end.demand() != none { // a caller came meanwhile, and may not lead
		t.move(rouse)
	}
	timer := time.NewTimer(parked)
	defer timer.Stop()
	for t.owner() != listening {
		led := t.led.Load()
		select {
		case <-t.unpark:
		case <-timer.C:
			if t.led.Load() == led {
				t.move(resume)
			}
			if t.owner() != awaited { // its leave unparks
				timer.Reset(parked)
			}
		}
	}
}

// lead reads in a caller's goroutine until its call is done, if no other reads.
func (x *link) lead(p *pending) {
	t, r, ctx := &x.turn, &x.intake, p.ctx
	if !t.move(claim) {
		return
	}
	t.led.Add(1)
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, x.conn.Interrupt)()
	}
	for r.fault == nil && len(p.done) == 0 && ctx.Err() == nil {
		r.fault = x.readOne()
		x.flush()
	}
	fault := r.fault
	t.move(leave)
	if fault != nil {
		t.move(rouse)
	}
}

// readOne gives the peer's next message to the end. Preconditions: the caller
// has the turn.
func (x *link) readOne() (err error) {
	r := &x.intake
	if r.chunk == 0 {
		r.rest, err = x.conn.Peek()
		if errors.Is(err, msgring.ErrInterrupted) {
			return nil
		}
		if err != nil {
			return err
		}
		r.chunk = len(r.rest)
	}
	if r.rest, err = r.message.Parse(r.rest); err == nil {
		err = x.end.receive(x, &r.message)
		x.post()
	}
	if err != nil || len(r.rest) == 0 {
		x.conn.Discard(r.chunk)
		r.chunk, r.rest = 0, nil
	}
	return err
}
