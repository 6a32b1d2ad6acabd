package msgring

import (
	"fmt"
	"syscall"

	"github.com/rdmashim/rdmashim/uapi/msgring/core"
)

// Write sends p: of Bytes in chunks as credit, send slots and staging memory
// allow, of Messages as one message. It returns when the last byte is posted,
// which is before it has arrived; p may be used again.
//
// Errors:
//   - EPIPE: after CloseWrite; the peer has ended its data, and gone
//   - net.ErrClosed: after Close
//   - os.ErrDeadlineExceeded: n bytes are on their way, and the connection is
//     usable
//   - EMSGSIZE, EINVAL: a message is longer than Info.Longest, or empty
//   - else those of Read
func (c *Conn) Write(p []byte) (n int, err error) {
	c.write.Lock()
	defer c.write.Unlock()
	if len(p) == 0 && c.config.Mode == Bytes {
		c.turns.glance()
		c.mu.Lock()
		defer c.mu.Unlock()
		if err := c.state(&c.writeBy); err != nil {
			return 0, err
		}
		return 0, c.core.Writable()
	}
	for first := true; first || n < len(p); first = false {
		lent, err := c.stage(len(p)-n, c.config.Mode == Messages)
		if err != nil {
			return n, err
		}
		k := copy(lent, p[n:])
		if c.commit(k) == nil {
			n += k
		} // else the connection has ended since, and stage says how
	}
	return n, nil
}

// Reserve lends n bytes of the memory that chunks are sent from, 1 …
// Info.Longest, to be filled and sent by Commit: no copy is made but the
// device's. It waits until a chunk of n bytes can be sent. Other writers wait
// until Commit, which is called after Close, too: the memory is not given back
// before. Errors are those of Write.
func (c *Conn) Reserve(n int) ([]byte, error) {
	c.write.Lock()
	lent, err := c.stage(n, true)
	if err != nil {
		c.write.Unlock()
		return nil, err
	}
	c.mu.Lock()
	c.reserved = len(lent)
	c.mu.Unlock()
	return lent, nil
}

// TryReserve is Reserve that does not wait: ok is false when credit, a slot or
// staging is missing now, or another goroutine writes.
func (c *Conn) TryReserve(n int) (lent []byte, ok bool, err error) {
	if !c.write.TryLock() {
		return nil, false, nil
	}
	c.mu.Lock()
	c.writing = chunk{n: n, whole: true}
	if !c.lookWrite() {
		c.mu.Unlock()
		c.turns.glance()
		c.mu.Lock()
		c.lookWrite()
	}
	lent, err = c.writing.lent, c.writing.err
	ok = err == nil && len(lent) > 0
	if ok {
		c.reserved = len(lent)
	}
	c.mu.Unlock()
	if !ok {
		c.write.Unlock()
		return nil, false, err
	}
	return lent, true, nil
}

// Commit sends the first n bytes of what Reserve lent as one chunk, 0 for none,
// and ends the loan. It waits for nothing but another goroutine's post. Errors
// are those of Write, and EINVAL for more than was lent or when nothing is; the
// loan has ended then, too.
func (c *Conn) Commit(n int) error {
	c.mu.Lock()
	lent := c.reserved
	c.reserved = 0
	if lent > 0 && (n <= 0 || n > lent) {
		c.core.Unstage()
	}
	c.mu.Unlock()
	if lent == 0 {
		return fmt.Errorf("msgring: Commit without Reserve: %w", syscall.EINVAL)
	}
	defer c.write.Unlock()
	switch {
	case n < 0 || n > lent:
		return fmt.Errorf("msgring: Commit of %d bytes; %d are reserved: %w", n, lent, syscall.EINVAL)
	case n == 0:
		return nil
	}
	return c.commit(n)
}

// chunk is what a writer waits to send.
type chunk struct {
	sight
	n      int
	whole  bool // all n bytes, or as many as go
	staged bool // it has been staged, and is to be committed
}

// stage waits until a chunk of n bytes, or of fewer unless it is whole, can be
// sent, and returns its memory. Preconditions: write is held.
func (c *Conn) stage(n int, whole bool) (lent []byte, err error) {
	c.wait(chunk{n: n, whole: whole})
	return c.writing.lent, c.writing.err
}

// commit posts n bytes of the staged chunk. Preconditions: write is held.
func (c *Conn) commit(n int) (err error) {
	var p core.Post
	for ok := false; !ok; {
		c.wait(chunk{staged: true})
		c.mu.Lock()
		if err = c.state(&c.writeBy); err == nil {
			p, ok, err = c.core.Commit(uint64(n))
		}
		if err != nil {
			c.mu.Unlock()
			return err
		}
		if ok {
			c.stats.ChunksSent++
			c.stats.BytesSent += p.Length
			c.post(p)
			c.postControls()
		}
		c.mu.Unlock()
	}
	return nil
}

// wait waits until the chunk can go, or never will.
func (c *Conn) wait(next chunk) {
	c.mu.Lock()
	c.writing = next
	ready := c.lookWrite()
	if !ready {
		c.stats.WriteWaits++
	}
	c.mu.Unlock()
	if !ready {
		c.turns.until(&c.turns.writer)
	}
}

// lookWrite is what a writer waits for: credit, a slot and staging for a chunk;
// then that no other post is under way; or an error.
func (c *Conn) lookWrite() bool {
	w := &c.writing
	if w.err = c.state(&c.writeBy); w.err != nil {
		c.core.Unstage()
		return true
	}
	switch {
	case w.staged && c.cause != nil: // the caller may be the one that takes in what arrived
		c.core.LoseSending(c.cause)
		fallthrough
	case w.staged:
		return c.core.Committable()
	case (c.cause != nil || c.core.Lost() && c.why() != nil) && !c.core.LostBoth(): // what arrived before the end tells more
		w.lent = nil
		return false
	}
	offset, length, err := c.core.Stage(uint64(max(w.n, 0)), w.whole)
	w.lent, w.err = c.memory.local.mem[offset:offset+length:offset+length], err
	return err != nil || length > 0
}
