package qmux

import (
	"net"
	"time"
)

// outgoing is the turn to write to the byte stream. The writer has it, or a
// Write, which sends what there is itself, its own bytes out of the program's
// memory.
//
// taken and the fields up to rest are guarded by the connection's lock; the
// others are used by the goroutine that has the turn.
type outgoing struct {
	gather func(*net.Buffers) (int64, error) // nil: only the writer sends

	taken       bool        // a goroutine has the turn
	by          *SendStream // of the Write that has it, nil: the writer has
	interrupted bool        // by must give the turn up
	err         error       // that a Write met, for the writer
	rest        []byte      // of records, that a Write left to the writer

	buf    []byte // records, or their heads
	pieces [maxPieces][]byte
	list   net.Buffers
}

const (
	maxPieces = 33        // heads and data that go to the byte stream at once
	sendSize  = 128 << 10 // bytes that do, if they are more than a record
)

// gatherer returns how conn sends several pieces at once without a copy, and
// can be interrupted: nil, if it cannot.
func gatherer(conn net.Conn) func(*net.Buffers) (int64, error) {
	switch conn := conn.(type) {
	case *net.TCPConn, *net.UnixConn:
		return func(b *net.Buffers) (int64, error) { return b.WriteTo(conn) }
	case interface {
		WriteBuffers(*net.Buffers) (int64, error)
	}:
		return conn.WriteBuffers
	}
	return nil
}

// allocate makes the memory for records. The core is locked.
func (o *outgoing) allocate(c *Conn) {
	if o.buf == nil {
		o.buf = make([]byte, max(writeSize, c.core.Buffer()))
	}
}

// take gives the turn to the Write of s, if no other goroutine has it, and
// reports whether there is something to send. The core is locked.
func (c *Conn) take(s *SendStream) (mine, last bool) {
	o := &c.outgoing
	if o.gather == nil || o.taken || c.core.OutputEnded() {
		return false, false
	}
	o.taken, o.by = true, s
	return c.next(s)
}

// sendOwn sends what the Write of s has collected, and what is due, until all
// bytes of it are sent, or none may be. last says that they are collected.
func (c *Conn) sendOwn(s *SendStream, last bool) {
	for mine := true; mine; {
		_, err := c.outgoing.gather(&c.outgoing.list)
		c.step(func() {
			if mine = c.sent(err) && !last; mine {
				mine, last = c.next(s)
			} else {
				c.leave()
			}
		})
	}
}

// next collects what the Write of s sends next, or gives the turn up.
func (c *Conn) next(s *SendStream) (mine, last bool) {
	last = c.collect(s)
	if mine = len(c.outgoing.list) > 0; !mine {
		c.leave()
	}
	return mine, last
}

// collect fills the list with records that are due, and reports whether the
// Write of s has no more for any. The core is locked.
func (c *Conn) collect(s *SendStream) (last bool) {
	o := &c.outgoing
	o.allocate(c)
	o.list = o.pieces[:0]
	last = isClosed(s.deadline.wait())
	for at, total := 0, 0; !last && len(o.list)+1 < len(o.pieces) && total < sendSize && len(o.buf)-at >= c.core.Buffer(); {
		n, lent := c.core.TransmitLent(c.now(), o.buf[at:], s.id)
		if n == 0 {
			break
		}
		o.list = append(o.list, o.buf[at:at+n:at+n])
		if len(lent) > 0 {
			o.list = append(o.list, lent)
		}
		at, total = at+n, total+n+len(lent)
		left, _ := c.core.Unsent(s.id)
		last = left == 0
	}
	return last
}

// sent notes how records of a Write went, and reports whether it may send more.
// The writer sends the rest that an interrupt left. The core is locked.
func (c *Conn) sent(err error) bool {
	o := &c.outgoing
	if err != nil && o.interrupted {
		for _, b := range o.list {
			o.rest = append(o.rest, b...)
		}
		err = nil
	}
	clear(o.pieces[:])
	o.err = err
	return err == nil && !o.interrupted
}

// leave gives up the turn of a Write, to the writer if it left work. The core
// is locked.
func (c *Conn) leave() {
	o := &c.outgoing
	if o.interrupted {
		o.interrupted = false
		_ = c.conn.SetWriteDeadline(time.Time{})
	}
	o.by, o.taken = nil, len(o.rest) > 0 || o.err != nil
	if o.taken || c.core.OutputEnded() {
		poke(c.wake)
	}
}

// interrupt ends a Write's sending, which waits for the byte stream perhaps.
// The core is locked.
func (c *Conn) interrupt() {
	if o := &c.outgoing; o.by != nil && !o.interrupted {
		o.interrupted = true
		_ = c.conn.SetWriteDeadline(time.Now())
	}
}

// late ends a Write that sends when its deadline passes.
func (s *SendStream) late() {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if s.c.outgoing.by == s {
		s.c.interrupt()
	}
}
