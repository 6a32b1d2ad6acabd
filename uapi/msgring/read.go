package msgring

import (
	"errors"
	"io"
	"net"
)

// Read reads up to len(p) bytes, which it copies out of the ring; of Messages,
// bytes of one message. It waits until there is at least one. An empty p waits
// for nothing.
//
// Errors follow all that arrived before the end:
//   - io.EOF: behind the peer's CloseWrite and all its data
//   - net.ErrClosed: after Close
//   - os.ErrDeadlineExceeded: the connection is usable after it
//   - ECONNRESET: the peer closed without reading all, or broke off
//   - EPROTO (*core.ProtocolError): the peer broke the protocol
//   - else why the connection ended: those of uapi.Device.Cause, or a
//     completion's status
func (c *Conn) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		return 0, c.state(&deadline{})
	}
	c.read.Lock()
	defer c.read.Unlock()
	for len(p) > 0 {
		lent, err := c.peek(n == 0)
		if err != nil || len(lent) == 0 {
			return n, err
		}
		k := copy(p, lent)
		n, p = n+k, p[k:]
		c.discard(k)
		if c.config.Mode == Messages {
			break
		}
	}
	return n, nil
}

// Peek returns the unread rest of the oldest chunk, in place: of Messages, a
// message. It waits until there is one. The bytes are lent until Discard, which
// is called after Close, too: the memory is not given back before. Only one
// goroutine may use Peek and Discard. Errors are those of Read.
func (c *Conn) Peek() ([]byte, error) {
	c.read.Lock()
	defer c.read.Unlock()
	lent, err := c.peek(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && c.closing {
		return nil, net.ErrClosed
	}
	c.lent = err == nil
	return lent, err
}

// ErrInterrupted is the error of a Peek that Interrupt ended.
var ErrInterrupted = errors.New("msgring: Peek was interrupted")

// Interrupt ends a Peek or Read that waits, or else the next one, with
// ErrInterrupted, also if there is something to read. Several before that are
// one. The connection goes on. It may be called from anywhere.
func (c *Conn) Interrupt() {
	c.mu.Lock()
	c.interrupted = true
	waits := c.turns.reader.waits
	c.mu.Unlock()
	if waits {
		c.turns.rouse(&c.turns.reader)
	}
}

// Discard reads n bytes of what Peek returned, and ends the loan. The peer can
// use the room in the ring again when nothing of the chunk is left. 0 is
// permitted: the next Peek returns the same bytes.
func (c *Conn) Discard(n int) {
	c.read.Lock()
	defer c.read.Unlock()
	c.discard(n)
}

// sight is the last look of a reader or writer.
type sight struct {
	lent []byte
	err  error
}

// peek returns the rest of the oldest chunk; of none, if it shall not wait, an
// empty slice. Preconditions: read is held.
func (c *Conn) peek(wait bool) (lent []byte, err error) {
	c.mu.Lock()
	ready := c.lookRead()
	c.mu.Unlock()
	switch {
	case !wait:
		return c.reading.lent, nil // data that was read before comes first
	case !ready:
		c.turns.until(&c.turns.reader)
	}
	if c.reading.err == ErrInterrupted {
		c.mu.Lock()
		c.interrupted = false
		c.mu.Unlock()
	}
	return c.reading.lent, c.reading.err
}

// lookRead reports whether a reader may go on: by data, its end, an interrupt,
// an error.
func (c *Conn) lookRead() bool {
	c.reading = sight{err: c.state(&c.readBy)}
	if c.reading.err == nil && c.interrupted {
		c.reading.err = ErrInterrupted
	}
	if c.reading.err != nil {
		return true
	}
	data, eof, err := c.core.Readable()
	switch {
	case data:
		offset, length := c.core.Peek()
		c.reading.lent = c.memory.ring.mem[offset : offset+length : offset+length]
	case eof:
		c.reading.err = io.EOF
	default:
		c.reading.err = err
	}
	return data || c.reading.err != nil
}

func (c *Conn) discard(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lent = false
	c.returned.Broadcast()
	if n > 0 && !c.closing {
		c.core.Discard(uint64(n))
		c.postControls()
	}
}
