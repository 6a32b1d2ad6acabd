package qmux

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/rdmashim/rdmashim/uapi/qmux/core"
)

// errClosed is the error of a Write behind Close.
var errClosed = fmt.Errorf("qmux: write on a closed stream: %w", net.ErrClosed)

// SendStream is the sending half of a stream.
//
// err is why it has ended, lost how many bytes of the Write that waits were not
// sent then, and lends whether its memory is being sent. These and the context
// are guarded by the connection's lock.
type SendStream struct {
	c        *Conn
	id       StreamID
	writing  sync.Mutex // one Write at a time
	ready    chan struct{}
	deadline deadline

	err    error
	lost   int
	lends  bool
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// StreamID is the stream's number.
func (s *SendStream) StreamID() StreamID { return s.id }

// Write sends p. It returns when all of it is in records on their way, or with
// fewer bytes and an error: os.ErrDeadlineExceeded, after which the stream goes
// on, a *StreamError, net.ErrClosed behind Close, or that of the connection's
// end. It waits while the peer gives no credit.
func (s *SendStream) Write(p []byte) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.deadline.check(); err != nil {
		return 0, err
	}
	var err error
	var mine, last, waits bool
	s.c.do(func() {
		if err = s.lend(p); err == nil {
			mine, last = s.c.take(s)
		}
	})
	if err != nil {
		return 0, err
	}
	if mine {
		s.c.sendOwn(s, last)
	}
	for {
		late := s.deadline.wait()
		left, lends, err := s.left(&waits)
		if !lends && (left == 0 || err != nil) {
			return len(p) - left, err
		}
		select {
		case <-s.ready:
		case <-late:
			return s.withdraw(p, &waits)
		}
	}
}

// lend gives p to the core, which is locked.
func (s *SendStream) lend(p []byte) error {
	if s.err != nil {
		return s.err
	}
	s.lost = 0
	err := s.c.core.Write(s.id, p, false)
	if err != nil {
		s.end(translate(err, s.c.broken))
		return s.err
	}
	return nil
}

// left is how many bytes of the last Write are not sent, for which it waits,
// and whether it lends others. With an error they never will be sent.
func (s *SendStream) left(waits *bool) (n int, lends bool, err error) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	n, _ = s.c.core.Unsent(s.id)
	s.c.await(waits, n > 0 && s.lost == 0)
	if s.lost > 0 {
		return s.lost, s.lends, s.err
	}
	return n, s.lends, nil
}

// withdraw ends a Write at its deadline, once no other goroutine sends its
// memory.
func (s *SendStream) withdraw(p []byte, waits *bool) (n int, err error) {
	lends := false
	s.c.do(func() {
		s.c.await(waits, false)
		n = len(p) - s.lost - s.c.core.Withdraw(s.id)
		if err = s.err; err == nil && n < len(p) {
			err = os.ErrDeadlineExceeded
		}
		lends = s.lends
		s.interrupt() // late came before that, perhaps
	})
	for lends {
		<-s.ready
		_, lends, _ = s.left(waits)
	}
	return n, err
}

// update takes in how the half ended, if it did, and wakes its Write. The
// core is locked.
func (s *SendStream) update() {
	if s.err == nil {
		if n, err := s.c.core.Unsent(s.id); err != nil {
			s.lost = n
			s.end(translate(err, s.c.broken))
		}
	}
	if !s.lends { // else when it does no more
		poke(s.ready)
	}
}

// end notes why the half has ended. The core is locked.
func (s *SendStream) end(err error) {
	if s.err == nil {
		s.err = err
		s.interrupt()
	}
	if s.cancel != nil {
		s.cancel(s.err)
	}
}

// Close ends the stream behind all that was written, and does not wait. It must
// not be called while a Write waits: that is EBUSY. The error is that of the
// stream's or connection's end, if there was one.
func (s *SendStream) Close() (err error) {
	s.c.do(func() {
		switch {
		case s.err == errClosed:
		case s.err != nil:
			err = s.err
		default:
			if err = s.c.core.Write(s.id, nil, true); err == core.ErrBusy {
				return
			}
			if err != nil {
				err = translate(err, s.c.broken)
				s.end(err)
			}
			s.end(errClosed)
		}
	})
	return err
}

// CancelWrite ends the stream with an error for the peer's reader. Bytes that
// are not sent are dropped. Behind Close it does nothing.
func (s *SendStream) CancelWrite(code StreamErrorCode) {
	s.c.do(func() {
		if s.err != nil {
			return
		}
		s.lost, _ = s.c.core.Unsent(s.id)
		cancelled := &core.StreamError{Stream: s.id, Code: uint64(code)}
		s.c.core.Reset(s.id, uint64(code))
		s.end(translate(cancelled, nil))
		poke(s.ready)
	})
}

// SetReliableBoundary makes the bytes written so far arrive even if the stream
// is cancelled later. A peer that does not know this, of draft 1 perhaps, may
// still drop it.
func (s *SendStream) SetReliableBoundary() {
	s.c.do(func() { s.c.core.SetReliable(s.id) })
}

// SetPriority changes whose data goes first when there is more than the byte
// stream takes (RFC 9218): streams of a lower urgency, clipped to 0 to 7, and 3
// at first. Of one urgency, incremental streams take turns, as all do at first;
// the others go one after another by their IDs.
func (s *SendStream) SetPriority(urgency int8, incremental bool) {
	s.c.do(func() { s.c.core.SetPriority(s.id, urgency, incremental) })
}

// SetWriteDeadline is when Write ends; the zero time means never. The error is
// always nil.
func (s *SendStream) SetWriteDeadline(t time.Time) error {
	s.c.setDeadline(&s.deadline, t, s.late)
	return nil
}

// Context ends with this half, or the connection.
func (s *SendStream) Context() context.Context {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if s.ctx == nil {
		s.ctx, s.cancel = context.WithCancelCause(s.c.ctx)
		s.update()
		if s.err != nil {
			s.cancel(s.err)
		}
	}
	return s.ctx
}
