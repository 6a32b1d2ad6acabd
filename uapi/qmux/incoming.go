package qmux

import (
	"errors"
	"io"
	"net"
	"os"
	"time"
)

// incoming is the turn to read the byte stream. The reader has it, or a Read
// that waits, which then needs no other goroutine to bring its bytes and to
// wake it. When a Read leaves, the turn is free: mostly the program reads again
// at once. The reader takes it when another call waits, or when no Read had it
// between two ticks.
//
// All but ring and buf are guarded by the connection's lock.
type incoming struct {
	ring io.WriterTo // lends what arrived; nil: it is read into buf
	buf  []byte

	shared   bool           // Reads may have the turn
	standing bool           // the reader has it
	by       *ReceiveStream // whose Read has it
	told     bool           // who has it must give it up
	heir     *ReceiveStream // for whose Read the reader must
	fresh    bool           // a Read had it since the last tick
	asleep   bool           // the reader does not tick
	ended    bool           // the byte stream has
	alone    int            // Reads in a row for which alone the reader stood
	waiting  int            // calls that wait, but for those that read or accept
	wake     chan struct{}  // the reader has work
}

const (
	// readTick is how long nobody reads the byte stream, twice at most.
	readTick = time.Millisecond
	// lonely is how many Reads in a row wait for the reader alone before one
	// takes its place, which costs two switches of goroutines.
	lonely = 8
	// lastWords is how long reading may go on after a Write has failed.
	lastWords = time.Second
)

func newIncoming(conn net.Conn) incoming {
	in := incoming{standing: true, wake: make(chan struct{}, 1)}
	in.shared = conn.SetReadDeadline(time.Time{}) == nil
	if ring, ok := conn.(io.WriterTo); ok && overRDMA(conn) {
		in.ring = ring
	} else {
		in.buf = make([]byte, readSize)
	}
	return in
}

// receive is the reader.
func (c *Conn) receive() {
	defer close(c.readerEnded)
	tick := time.NewTimer(readTick)
	defer tick.Stop()
	for {
		switch c.posture() {
		case ends:
			return
		case sleeps:
			<-c.incoming.wake
		case ticks:
			tick.Reset(readTick)
			select {
			case <-tick.C:
			case <-c.incoming.wake:
			}
		case stands:
			err := c.hear()
			c.do(func() { c.heard(err) })
		}
	}
}

// posture is what the reader does next.
type posture uint8

const (
	stands posture = iota
	ticks
	sleeps
	ends
)

func (c *Conn) posture() posture {
	c.mu.Lock()
	defer c.mu.Unlock()
	in := &c.incoming
	switch {
	case in.ended:
		return ends
	case in.by == nil && (in.standing || !in.fresh || c.wanted()):
		in.standing = true
		return stands
	case in.by != nil && !in.fresh:
		in.asleep = true
		return sleeps
	}
	in.fresh = false
	return ticks
}

// wanted reports whether the turn must not be free. The core is locked.
func (c *Conn) wanted() bool {
	return c.incoming.waiting > 0 || c.writeErr != nil || c.core.Cause() != nil
}

// errPiece ends the loan of what arrived behind a piece.
var errPiece = errors.New("qmux: one piece")

// arrival takes what the byte stream lends.
type arrival struct{ c *Conn }

func (a arrival) Write(p []byte) (int, error) {
	a.c.do(func() { a.c.core.Receive(a.c.now(), p) })
	return len(p), errPiece
}

// hear reads the byte stream once. The caller has the turn.
func (c *Conn) hear() error {
	in := &c.incoming
	if in.ring != nil {
		switch _, err := in.ring.WriteTo(arrival{c}); {
		case err == nil:
			return io.EOF
		case err != errPiece:
			return err
		}
		return nil
	}
	n, err := c.conn.Read(in.buf)
	if n > 0 {
		c.do(func() { c.core.Receive(c.now(), in.buf[:n]) })
	}
	return err
}

// heard notes how reading went. The reader that was told to gives the turn up;
// a Read that may not go on sees it in told and ended. The core is locked.
func (c *Conn) heard(err error) {
	in := &c.incoming
	if in.told && errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	if in.told && in.by == nil {
		c.obey()
		in.standing, in.fresh, in.alone = false, true, 0
		if in.heir != nil {
			in.by, in.heir = in.heir, nil
			poke(in.by.ready)
		}
	}
	if err != nil {
		in.ended = true
		c.broke(err)
	}
}

// lead gives the turn to the Read of s if it is free, or asks the reader for it
// if that stands for s alone. The core is locked.
func (c *Conn) lead(s *ReceiveStream) bool {
	in := &c.incoming
	switch {
	case !in.shared || in.ended || in.by != nil || c.writeErr != nil || c.core.Cause() != nil:
	case !in.standing:
		in.by, in.fresh = s, true
		return true
	case in.waiting > 0:
		in.alone = 0
	default:
		if in.alone++; in.alone > lonely && !in.told {
			in.heir = s
			c.tell()
		}
	}
	return false
}

// leads reports whether the Read of s has the turn now, for which it waits no
// more. The core is locked.
func (c *Conn) leads(s *ReceiveStream) bool {
	if in := &c.incoming; in.heir == s {
		in.heir = nil
	}
	return c.incoming.by == s
}

// quit gives the turn of a Read up. The core is locked.
func (c *Conn) quit() {
	in := &c.incoming
	c.obey()
	in.by, in.fresh = nil, true
	if in.asleep || in.ended || c.wanted() {
		in.asleep = false
		poke(in.wake)
	}
}

// await notes that a call waits, or does not any more. The core is locked.
func (c *Conn) await(waits *bool, now bool) {
	in := &c.incoming
	switch {
	case *waits == now:
	case now:
		if in.waiting++; in.by == nil && !in.standing {
			poke(in.wake)
		}
	default:
		in.waiting--
	}
	*waits = now
}

// tell ends the reading of who has the turn. The core is locked.
func (c *Conn) tell() {
	if in := &c.incoming; !in.told {
		in.told = true
		_ = c.conn.SetReadDeadline(time.Now())
	}
}

// obey is behind tell: the byte stream can be read again. The core is locked.
func (c *Conn) obey() {
	if in := &c.incoming; in.told {
		in.told = false
		var until time.Time
		if c.writeErr != nil {
			until = time.Now().Add(lastWords)
		}
		_ = c.conn.SetReadDeadline(until)
	}
}

// broke notes an error of the byte stream.
func (c *Conn) broke(err error) {
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		c.core.ReceiveEnd()
	default:
		if c.writeErr != nil {
			err = c.writeErr
		}
		if c.broken == nil && !c.core.Over() {
			c.broken = err
		}
		c.core.Abort()
	}
}

// awaitReader breaks the connection off when the reader has read what the peer
// said before a Write failed with err: why it closes, perhaps.
func (c *Conn) awaitReader(err error) {
	in := &c.incoming
	c.do(func() {
		c.writeErr = err
		switch {
		case in.by != nil:
			c.tell()
		case !in.told:
			_ = c.conn.SetReadDeadline(time.Now().Add(lastWords))
		}
		poke(in.wake)
	})
	if in.shared {
		<-c.readerEnded
	}
	c.do(func() { c.broke(err) })
}
