package msgring

import (
	"context"
	"errors"
	"sync"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring/core"
)

// batchSize is how many completions the leader takes at a time.
const batchSize = 32

// batch is the leader's scratch memory, of batches while few completions come:
// a connection that is idle has none.
type batch struct {
	wcs      [batchSize]uapi.WC
	receives [batchSize]uapi.WR
	pieces   [batchSize]uapi.SGE
	controls [batchSize][]byte
	bytes    [batchSize][slot]byte
}

var batches = sync.Pool{New: func() any { return new(batch) }}

// receiveID marks the ids of receives; the rest of it is their slot. The ids of
// sends are core.Post.ID.
const receiveID = uapi.WRID(1) << 62

// work handles completions, for which it waits if it shall, and returns how
// many there were.
func (c *Conn) work(w *waiter, wait bool) int {
	wcs := c.first[:]
	if c.batch != nil {
		wcs = c.batch.wcs[:]
	}
	n, err := c.completions(wcs, wait)
	if err != nil {
		c.mu.Lock()
		c.core.LoseBoth(err)
		c.mu.Unlock()
		return 0
	}
	ended := c.handle(w, wcs[:n])
	if n < len(c.first) {
		c.giveBatch()
	}
	switch {
	case ended && wait:
		c.finishReads()
	case ended: // the caller may hold locks that they take
		go c.finishReads()
	}
	return n
}

// giveBatch gives the batch back, if there is one.
func (c *Conn) giveBatch() {
	if c.batch != nil {
		batches.Put(c.batch)
		c.batch = nil
	}
}

// handle hands out at most batchSize completions: copies control messages and
// posts their receives again, which never waits for the program to read; then
// tells core of them, makes the posts that this allows, and wakes the waiters
// other than w that can go on. w is nil for a glance.
func (c *Conn) handle(w *waiter, wcs []uapi.WC) (ended bool) {
	if len(wcs) > 0 && c.batch == nil {
		c.batch = batches.Get().(*batch)
	}
	b := c.batch
	repost := c.repost(b, wcs)
	c.mu.Lock()
	if w != nil {
		w.waits = false // it looks when it has worked
	}
	for i := range wcs {
		c.take(&wcs[i], b.controls[i])
	}
	if repost != nil {
		c.core.LoseSending(c.ended(repost))
	}
	c.postControls()
	var wake [3]bool
	all := c.turns.all()
	for i, other := range all {
		wake[i] = other != w && other.ready()
	}
	ended = len(c.reads.ended) > 0
	c.mu.Unlock()
	for i, other := range all {
		if wake[i] {
			other.fill()
		}
	}
	return ended
}

// completions takes completions, and waits for them, or an interrupt, if it
// shall. When the connection has ended it does not wait: arrived data comes
// first, then the cause.
func (c *Conn) completions(wcs []uapi.WC, wait bool) (n int, err error) {
	c.mu.Lock()
	cause := c.cause
	c.mu.Unlock()
	if cause == nil && wait {
		return c.memory.device.WaitQueue(context.Background(), c.memory.cq, wcs)
	}
	if n, err = c.memory.device.PollQueue(c.memory.cq, wcs); n == 0 {
		err = cause
	}
	return n, err
}

// repost posts the receives that completed again, after it has copied the
// control messages out of their memory.
func (c *Conn) repost(b *batch, wcs []uapi.WC) error {
	n := 0
	for i := range wcs {
		wc := &wcs[i]
		b.controls[i] = nil
		if wc.WRID&receiveID == 0 || wc.Status != uapi.WCSuccess {
			continue
		}
		k := int(wc.WRID &^ receiveID)
		if wc.Opcode == uapi.WCOpRecv {
			from := received(c.config.Ring, k)
			b.controls[i] = b.bytes[i][:copy(b.bytes[i][:], c.memory.local.mem[from:from+int(min(wc.ByteLen, slot))])]
		}
		c.receive(&b.receives[n], b.pieces[n:n+1:n+1], k)
		n++
	}
	if n == 0 {
		return nil
	}
	_, err := c.memory.device.Post(c.qp, b.receives[:n])
	return err
}

// receive makes the request of the k-th receive.
func (c *Conn) receive(wr *uapi.WR, piece []uapi.SGE, k int) {
	piece[0] = uapi.SGE{MR: c.memory.local.mr, Offset: uint64(received(c.config.Ring, k)), Length: slot}
	*wr = uapi.WR{ID: receiveID | uapi.WRID(k), Op: uapi.OpRecv, SGE: piece}
}

// postReceives posts all receives, before the peer can send. Lists of batchSize
// keep small what the queue pair allocates for its longest one.
func (c *Conn) postReceives() error {
	b := batches.Get().(*batch)
	defer batches.Put(b)
	for next, end := 0, c.config.receives(); next < end; {
		n := min(batchSize, end-next)
		for i := range n {
			c.receive(&b.receives[i], b.pieces[i:i+1:i+1], next+i)
		}
		if _, err := c.memory.device.Post(c.qp, b.receives[:n]); err != nil {
			return err
		}
		next += n
	}
	return nil
}

// take takes in a completion. Preconditions: mu is held.
func (c *Conn) take(wc *uapi.WC, control []byte) {
	switch {
	case wc.WRID&readID != 0:
		c.takeRead(wc)
	case wc.Status != uapi.WCSuccess && wc.WRID&receiveID == 0:
		c.core.LoseSending(c.lost(wc))
	case wc.Status != uapi.WCSuccess:
		c.core.LoseBoth(c.lost(wc)) // behind all that arrived
	case wc.WRID&receiveID == 0:
		c.core.Complete(uint64(wc.WRID))
	case control != nil:
		_ = c.core.ReceiveControl(control) // an error ends the connection
	case wc.Opcode == uapi.WCOpRecvWriteImm:
		if c.closing {
			c.core.Reset(core.ClosedUnread) // it will never be read
		}
		if c.core.ReceiveData(wc.ByteLen, wc.Imm) == nil {
			c.stats.ChunksReceived++
			c.stats.BytesReceived += wc.ByteLen
		}
	}
}

// lost is why a request failed. A flushed one failed because the connection had
// ended.
func (c *Conn) lost(wc *uapi.WC) error {
	if wc.Status == uapi.WCWRFlushErr {
		if cause := c.why(); cause != nil {
			return cause
		}
	}
	return wc.Err()
}

// why is nil until the connection has ended. Preconditions: mu is held.
func (c *Conn) why() error {
	cause, err := c.memory.device.Cause(c.qp)
	if err != nil { // the device is closed: done hears of it
		return c.cause
	}
	return cause
}

// postControls posts the control messages that are noted. Preconditions: mu is
// held; it is given up for each post.
func (c *Conn) postControls() {
	for {
		p, ok := c.core.TakeControl()
		if !ok {
			return
		}
		c.stats.ControlsSent++
		c.post(p)
	}
}

// post posts the requests that were taken. Preconditions: mu is held; it is
// given up meanwhile.
func (c *Conn) post(p core.Post) {
	c.mu.Unlock()
	wr, piece := &c.request[0], &c.piece[0]
	wr.ID, wr.Flags = uapi.WRID(p.ID), 0
	if p.Signal {
		wr.Flags = uapi.Signaled
	}
	piece.MR, piece.Offset, piece.Length = c.memory.local.mr, p.Staged, p.Length
	if p.Control.Type == 0 {
		wr.Op, wr.Imm = uapi.OpWriteImm, p.Immediate
		wr.RemoteAddr, wr.RKey = c.peer.Addr+p.Offset, c.peer.RKey
	} else {
		at := outgoing(c.config.Ring)
		p.Control.Append(c.memory.local.mem[at:at])
		piece.Offset = uint64(at)
		wr.Op, wr.Flags, wr.Imm, wr.RemoteAddr, wr.RKey = uapi.OpSend, wr.Flags|uapi.Inline, 0, 0, 0
	}
	_, err := c.memory.device.Post(c.qp, c.request[:])
	c.mu.Lock()
	if err != nil {
		c.core.LoseSending(c.ended(err))
	}
	if c.core.Posted() {
		c.turns.rouse(&c.turns.writer)
	}
	c.returned.Broadcast()
}

// ended is why a post failed: the connection's end, if it has ended.
func (c *Conn) ended(err error) error {
	if cause := c.why(); cause != nil {
		return errors.Join(cause, err)
	}
	return err
}
