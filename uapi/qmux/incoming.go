package qmux

import (
	"errors"
	"io"
	"net"
	"os"
	"time"
)

// incoming is the receiving side of the byte stream. turn is guarded by the
// connection's lock; the goroutine that has the turn uses the others.
type incoming struct {
	turn readTurn
	wake chan struct{} // the reader looks
	ring io.WriterTo   // lends what arrived; nil: it is read into buf
	buf  []byte
}

const (
	// readTick is how long no goroutine reads the byte stream, twice at most.
	readTick = time.Millisecond
	// lastWords is how long reading may go on after a Write has failed.
	lastWords = time.Second
)

func newIncoming(conn net.Conn) incoming {
	in := incoming{turn: newReadTurn(conn.SetReadDeadline(time.Time{}) == nil), wake: make(chan struct{}, 1)}
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
		var next posture
		c.mu.Lock()
		next = c.turn().look()
		c.mu.Unlock()
		switch next {
		case ends:
			return
		case parks:
			<-c.incoming.wake
		case ticks:
			tick.Reset(readTick)
			select {
			case <-tick.C:
			case <-c.incoming.wake:
			}
		case reads:
			err := c.readOnce()
			c.do(func() { c.hasRead(err) })
		}
	}
}

// turn is the turn to read. The core is locked.
func (c *Conn) turn() *readTurn {
	t := &c.incoming.turn
	t.closing = c.writeErr != nil || c.core.Cause() != nil
	return t
}

// carry does what a move of the turn demands. The core is locked.
func (c *Conn) carry(do duty) {
	if do&interrupt != 0 {
		_ = c.conn.SetReadDeadline(time.Now())
	}
	if do&restore != 0 {
		var until time.Time
		if c.writeErr != nil {
			until = time.Now().Add(lastWords)
		}
		_ = c.conn.SetReadDeadline(until)
	}
	if do&rouse != 0 {
		poke(c.incoming.wake)
	}
}

// errPiece ends the loan of what arrived behind a piece.
var errPiece = errors.New("qmux: one piece")

// arrival takes what the byte stream lends.
type arrival struct{ c *Conn }

func (a arrival) Write(p []byte) (int, error) {
	a.c.do(func() { a.c.core.Receive(a.c.now(), p) })
	return len(p), errPiece
}

// readOnce reads the byte stream once. The caller has the turn.
func (c *Conn) readOnce() error {
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

// hasRead takes note of a read of the byte stream. The core is locked.
func (c *Conn) hasRead(err error) {
	t := c.turn()
	if t.recalled && errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	grant, do := t.hasRead(err != nil)
	c.carry(do)
	if s := c.streams[grant]; s != nil {
		poke(s.receive.ready)
	}
	c.broke(err)
}

// await counts a call that waits, or does not any more. The core is locked.
func (c *Conn) await(waits *bool, now bool) {
	switch {
	case now && !*waits:
		c.carry(c.turn().wait(1))
	case !now && *waits:
		c.carry(c.turn().wait(-1))
	}
	*waits = now
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
	shared := false
	c.do(func() {
		c.writeErr = err
		t := c.turn()
		shared = t.shared
		switch {
		case t.leader != noStream:
			c.carry(t.recall())
		case !t.recalled:
			_ = c.conn.SetReadDeadline(time.Now().Add(lastWords))
		}
		c.carry(rouse)
	})
	if shared {
		<-c.readerEnded
	}
	c.do(func() { c.broke(err) })
}
