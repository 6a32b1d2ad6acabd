package qmux

import (
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
	return s.wait(func() (n int, ok bool, err error) {
		n, err = s.take(p)
		return n, n > 0 || len(p) == 0, err
	})
}

// Peek waits until all of p is filled, and leaves the bytes for Read. It
// returns fewer with Read's error if they are the stream's last. A p that is
// longer than the stream's window may wait for ever.
func (s *ReceiveStream) Peek(p []byte) (n int, err error) {
	return s.wait(func() (n int, ok bool, err error) {
		n, err = s.peek(p)
		return n, n == len(p), err
	})
}

// wait calls get with the core locked until it has a result or an error.
func (s *ReceiveStream) wait(get func() (n int, ok bool, err error)) (n int, err error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	for {
		late := s.deadline.wait()
		if err := s.deadline.check(); err != nil {
			return 0, err
		}
		ok := false
		s.c.do(func() { n, ok, err = get() })
		if ok || err != nil {
			return n, err
		}
		select {
		case <-s.ready:
		case <-late:
		}
	}
}

// over is why nothing can be read any more. The core is locked.
func (s *ReceiveStream) over() error {
	if s.err != nil {
		return s.err
	}
	if cause := s.c.core.Cause(); cause != nil && !cause.Remote && cause.Kind == core.Application {
		return s.c.failed()
	}
	return nil
}

// take reads the bytes that are there. The core is locked.
func (s *ReceiveStream) take(p []byte) (int, error) {
	if err := s.over(); err != nil {
		return 0, err
	}
	n, err := s.c.core.Read(s.id, p)
	if err != nil {
		s.err = translate(err, s.c.broken)
	}
	return n, s.err
}

// peek is take, and leaves the bytes. The core is locked.
func (s *ReceiveStream) peek(p []byte) (int, error) {
	if err := s.over(); err != nil {
		return 0, err
	}
	n, err := s.c.core.Peek(s.id, p)
	if err != nil {
		err = translate(err, s.c.broken)
	}
	return n, err
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
		poke(s.ready)
	})
}

// SetReadDeadline is when Read ends; the zero time means never. The error is
// always nil.
func (s *ReceiveStream) SetReadDeadline(t time.Time) error {
	s.c.setDeadline(&s.deadline, t)
	return nil
}
