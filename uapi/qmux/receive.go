package qmux

import (
	"os"
	"sync"
	"time"

	"github.com/rdmashim/rdmashim/uapi/qmux/core"
)

// ReceiveStream is the receiving half of a stream.
type ReceiveStream struct {
	c        *Conn
	id       StreamID
	reading  sync.Mutex // one Read at a time
	ready    chan struct{}
	deadline deadline
	err      error // why it has ended; guarded by the connection's lock
}

// StreamID is the stream's number.
func (s *ReceiveStream) StreamID() StreamID { return s.id }

// Read waits for bytes. io.EOF comes at the stream's end, with its last bytes
// perhaps. The other errors are os.ErrDeadlineExceeded, after which the stream
// goes on, a *StreamError, and that of the connection's end; if the peer ended
// it, all that had arrived is read before.
func (s *ReceiveStream) Read(p []byte) (n int, err error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	if err := s.deadline.check(); err != nil {
		return 0, err
	}
	c := s.c
	leads, waits, passed := false, false, false
	var failed error
	for {
		late := s.deadline.wait()
		c.do(func() {
			passed = isClosed(late) // now: late recalls none but the Read that leads
			c.await(&waits, false)
			if leads {
				c.hasRead(failed)
			}
			leads = c.turn().granted(s.id)
			n, err = s.take(p)
			again := n == 0 && err == nil && !passed && len(p) > 0
			if leads && (!again || c.incoming.turn.mustLeave()) {
				leads = false
				c.carry(c.turn().leave())
			}
			if again {
				c.core.AwaitRead(s.id, p)
				leads = leads || c.claim(s)
				c.await(&waits, !leads)
			}
		})
		switch {
		case n > 0 || len(p) == 0 || err != nil:
			return n, err
		case passed:
			return 0, os.ErrDeadlineExceeded
		case leads:
			failed = c.readOnce()
			continue
		}
		select {
		case <-s.ready:
		case <-late:
		}
	}
}

// claim makes the Read of s read the byte stream, if it may. The core is
// locked.
func (c *Conn) claim(s *ReceiveStream) bool {
	leads, do := c.turn().claim(s.id)
	c.carry(do)
	return leads
}

// late ends a Read that reads the byte stream when its deadline passes.
func (s *ReceiveStream) late() {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.interrupt()
}

// interrupt ends its Read's turn, if it has it. The core is locked.
func (s *ReceiveStream) interrupt() { s.c.carry(s.c.turn().recallLeader(s.id)) }

// take reads the bytes that are there. The core is locked.
func (s *ReceiveStream) take(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if cause := s.c.core.Cause(); cause != nil && !cause.Remote && cause.Kind == core.Application {
		return 0, s.c.failed()
	}
	n, err := s.c.core.Read(s.id, p)
	if err != nil {
		s.err = translate(err, s.c.broken)
	}
	return n, s.err
}

// CancelRead asks the peer to send no more, and drops bytes that come all the
// same. Behind the stream's end it does nothing.
func (s *ReceiveStream) CancelRead(code StreamErrorCode) {
	s.c.do(func() {
		if s.err != nil {
			return
		}
		s.c.core.Stop(s.id, uint64(code))
		s.err = translate(&core.StreamError{Stream: s.id, Code: uint64(code)}, nil)
		s.interrupt()
		poke(s.ready)
	})
}

// SetReadDeadline is when Read ends; the zero time means never. The error is
// always nil.
func (s *ReceiveStream) SetReadDeadline(t time.Time) error {
	s.c.setDeadline(&s.deadline, t, s.late)
	return nil
}
