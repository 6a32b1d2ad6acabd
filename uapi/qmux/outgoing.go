package qmux

import (
	"net"
	"time"
)

// outgoing is the turn to write to the byte stream. The writer has it, or a
// Write, which sends what there is itself. Long data goes out of the program's
// memory, whichever goroutine sends it: its Write returns behind that.
//
// taken and the fields up to rest are guarded by the connection's lock; the
// others are used by the goroutine that has the turn.
type outgoing struct {
	gather func(*net.Buffers) (int64, error) // nil: only the writer sends

	taken       bool          // a goroutine has the turn
	by          *SendStream   // of the Write that has it, nil: the writer has
	lenders     []*SendStream // whose memory is being sent
	interrupted bool          // the sending must end
	err         error         // of the byte stream, for the writer
	rest        []byte        // of records, that an interrupt left to the writer

	buf    []byte // records, or their heads
	pieces [maxPieces][]byte
	list   net.Buffers
	quick  bool // the last one went within sendTime
}

const (
	maxPieces = 67        // heads and data that go to the byte stream at once
	sendSize  = 128 << 10 // bytes that do, if they are more than a record
	longSend  = 512 << 10 // bytes that do while each takes less than sendTime
	sendTime  = time.Millisecond
)

// send sends the list. A byte stream that takes it at once gets more next time:
// each send wakes the peer. Else an urgent stream would wait for it.
func (o *outgoing) send() error {
	began := time.Now()
	_, err := o.gather(&o.list)
	o.quick = time.Since(began) < sendTime
	return err
}

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
		o.buf = make([]byte, writeSize)
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
		err := c.outgoing.send()
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
// Write of s, which has the turn, has no more for any; s is nil for the writer.
// The core is locked.
func (c *Conn) collect(s *SendStream) (last bool) {
	o := &c.outgoing
	o.allocate(c)
	o.list = o.pieces[:0]
	last = s != nil && isClosed(s.deadline.wait())
	most := sendSize
	if o.quick {
		most = longSend
	}
	begin := 0 // of the last piece, which is in buf
	for at, total := 0, 0; !last && len(o.list)+1 < len(o.pieces) && total < most && len(o.buf)-at >= c.core.Buffer(); {
		n, lent := c.record(o.buf[at:])
		if n == 0 {
			break
		}
		if at == begin {
			o.list = append(o.list, nil)
		}
		at, total = at+n, total+n+len(lent)
		o.list[len(o.list)-1] = o.buf[begin:at:at]
		if len(lent) > 0 {
			o.list, begin = append(o.list, lent), at
		}
		if s != nil {
			left, _ := c.core.Unsent(s.id)
			last = left == 0
		}
	}
	return last
}

// record is the next record: n bytes in buf, and those that a Write lends.
func (c *Conn) record(buf []byte) (n int, lent []byte) {
	o := &c.outgoing
	if o.gather == nil {
		return c.core.Transmit(c.now(), buf), nil
	}
	n, lent, of := c.core.TransmitLent(c.now(), buf)
	if lent != nil {
		s := &c.streams[of].send
		s.lends = true
		o.lenders = append(o.lenders, s)
	}
	return n, lent
}

// sent notes how records went, and reports whether a Write may send more. The
// writer sends the rest that an interrupt left. The core is locked.
func (c *Conn) sent(err error) bool {
	o := &c.outgoing
	if err != nil && o.interrupted {
		for _, b := range o.list {
			o.rest = append(o.rest, b...)
		}
		err = nil
	}
	o.list = nil
	clear(o.pieces[:])
	for _, s := range o.lenders {
		s.lends = false
		if left, _ := c.core.Unsent(s.id); s != o.by && (left == 0 || s.err != nil) {
			poke(s.ready)
		}
	}
	clear(o.lenders)
	o.lenders = o.lenders[:0]
	o.err = err
	return err == nil && !o.interrupted
}

// leave gives up the turn of a Write, to the writer if it left work. The core
// is locked.
func (c *Conn) leave() {
	o := &c.outgoing
	c.obey()
	o.by, o.taken = nil, len(o.rest) > 0 || o.err != nil
	if o.taken || c.core.OutputEnded() {
		poke(c.wake)
	}
}

// interrupt ends a sending out of the program's memory, or by a Write, which
// waits for the byte stream perhaps. The core is locked.
func (c *Conn) interrupt() {
	if o := &c.outgoing; (o.by != nil || len(o.lenders) > 0) && !o.interrupted {
		o.interrupted = true
		_ = c.conn.SetWriteDeadline(time.Now())
	}
}

// obey is behind an interrupt. The core is locked.
func (c *Conn) obey() {
	if c.outgoing.interrupted {
		c.outgoing.interrupted = false
		_ = c.conn.SetWriteDeadline(time.Time{})
	}
}

// late ends the sending for a Write when its deadline passes.
func (s *SendStream) late() {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.interrupt()
}

// interrupt ends the sending that the Write of s waits for. The core is locked.
func (s *SendStream) interrupt() {
	if s.lends || s.c.outgoing.by == s {
		s.c.interrupt()
	}
}
