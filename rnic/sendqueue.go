package rnic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/mem"
)

// pullBatch is how many work requests a doorbell takes before others may have
// the lock.
const pullBatch = 256

// Doorbell implements driver.QP: it takes the work requests that were published
// in the send ring, sends those that may go now, and returns; a worker sends
// the rest. When another goroutine has the lock, Doorbell leaves the work to
// it, and in a stream to the next acknowledgement.
func (q *QP) Doorbell() error {
	d := q.d
	if q.streams(d.now()) {
		q.leaveNote()
		if q.flying.Load() {
			return nil
		}
	}
	if !d.mu.TryLock() {
		if q.bell.Load() && !d.down.Load() {
			q.leaveNote()
			if d.mu.TryLock() {
				d.mu.Unlock()
			}
			return nil
		}
		d.mu.Lock()
	}
	defer func() {
		d.rang = q.num
		d.mu.Unlock()
		q.stream.last.Store(int64(d.now()))
	}()
	for {
		if err := q.mayPost(); err != nil {
			return err
		}
		more := q.pull(d.now())
		d.schedule(q)
		d.serveChanged(doorbellBatches)
		if !more {
			return q.brokenErr()
		}
		d.mu.Unlock() // let others in
		d.mu.Lock()
	}
}

// mayPost returns EINVAL in the states in which a doorbell is refused.
func (q *QP) mayPost() error {
	if err := q.d.check(); err != nil {
		return err
	}
	if q.gone {
		return fmt.Errorf("rnic: queue pair %v is destroyed: %w", q.num, syscall.EINVAL)
	}
	switch s := q.engine.State(); s {
	case abi.QPSReset, abi.QPSInit, abi.QPSRTR:
		return fmt.Errorf("rnic: queue pair %v is in state %v and cannot send: bring it to RTS first: %w", q.num, s, syscall.EINVAL)
	}
	return q.brokenErr()
}

// takesDoorbells is mayPost without the reasons, and without the device's.
func (q *QP) takesDoorbells() bool {
	s := q.engine.State()
	return !q.gone && !q.broken && s != abi.QPSReset && s != abi.QPSInit && s != abi.QPSRTR
}

func (q *QP) brokenErr() error {
	if q.broken {
		return fmt.Errorf("rnic: queue pair %v: an index of its rings was overwritten; move it to RESET: %w", q.num, syscall.EINVAL)
	}
	return nil
}

// pull gives published work requests to the engine: pullBatch at most; more:
// there are others. An entry stays in the ring until it is retired.
func (q *QP) pull(now engine.Time) (more bool) {
	if q.broken {
		return false
	}
	ready, err := q.send.Ready()
	if err != nil {
		q.breakDown(now)
		return false
	}
	for n := 0; q.taken < ready; n++ {
		if n == pullBatch {
			return true
		}
		// The engine has as many places as the ring, so it refuses none.
		wr := q.d.wqe.send(q.send.Slot(q.taken))
		q.watchPosted(wr.Err)
		q.address(wr)
		if q.engine.Post(now, wr) != nil {
			return false
		}
		q.taken++
		q.stream.took(q.d.wqe.sqe.Length)
	}
	return false
}

// retire gives the oldest entry of the send ring back.
func (q *QP) retire() {
	if q.taken > 0 {
		q.taken--
		q.send.Release(1)
	}
}

// breakDown ends a queue pair whose ring cannot be read: no work request can
// report the error, so it is an asynchronous one (IBA 11.6.3.2).
func (q *QP) breakDown(now engine.Time) {
	q.broken = true
	q.bell.Store(false)
	q.toError(now)
	q.ev.Event(abi.EventQPFatal)
}

// NextReceive implements engine.ReceiveSource on the receive ring, or on the
// shared one, which nothing is flushed from.
func (q *QP) NextReceive(wr *engine.ReceiveWR) bool {
	if q.srq != nil {
		return q.engine.State() != abi.QPSErr && q.srq.next(wr)
	}
	if q.noRecv || q.broken {
		return false
	}
	ready, err := q.recv.Ready()
	if err != nil {
		q.broken = true
		q.ev.Event(abi.EventQPFatal)
		wr.Err = err
		return q.engine.State() != abi.QPSErr // in ERR nothing needs to fail for it
	}
	if ready == 0 {
		return false
	}
	q.d.wqe.receive(wr, q.recv.Slot(0))
	q.recv.Release(1)
	return true
}

// decoder turns ring entries into the engine's work requests; it is scratch
// memory that is used again and again.
type decoder struct {
	sqe ring.SendWQE
	rqe ring.RecvWQE
	wr  engine.SendWR
	sge [ring.MaxSGE]mem.SGE
}

// send decodes an entry of a send ring. Its result is valid until the next
// call.
func (c *decoder) send(slot []byte) *engine.SendWR {
	err := c.sqe.Decode(slot)
	w := &c.sqe.WR
	if err != nil {
		// Signaled or not, an error completes.
		c.wr = engine.SendWR{ID: w.ID, Opcode: w.Opcode, Err: err}
		return &c.wr
	}
	c.wr = engine.SendWR{
		ID: w.ID, Opcode: w.Opcode, Flags: w.Flags, Invalidate: w.InvalidateRKey,
		RemoteAddr: w.RemoteAddr, RKey: w.RKey, CompareAdd: w.CompareAdd, Swap: w.Swap,
		SGE: c.sge[:0], Inline: w.Inline,
	}
	if w.Opcode == abi.WRBindMW {
		b := &w.Bind
		c.wr.Bind = mem.Bind{Window: b.MWRKey, Key: b.RKey, LKey: b.MRLKey, Addr: b.Addr, Length: b.Length, Access: b.Access}
	}
	binary.BigEndian.PutUint32(c.wr.Imm[:], w.Imm)
	for _, s := range w.SGE {
		c.wr.SGE = append(c.wr.SGE, mem.SGE(s))
	}
	return &c.wr
}

// receive decodes an entry of a receive ring into wr.
func (c *decoder) receive(wr *engine.ReceiveWR, slot []byte) {
	wr.Err = c.rqe.Decode(slot)
	wr.ID = c.rqe.WR.ID
	if wr.Err == nil && len(c.rqe.WR.SGE) > cap(wr.SGE) {
		wr.Err = ring.ErrNumSGE // the slot has room for more than was asked for
	}
	if wr.Err != nil {
		return
	}
	for _, s := range c.rqe.WR.SGE {
		wr.SGE = append(wr.SGE, mem.SGE(s))
	}
}

// errExcess is the fault of a request that is carried out all the same.
var errExcess = errors.New("the scatter/gather list is longer than the length, and was cut")

// watchPosted looks at the request that was decoded. The first fault of a queue
// pair is logged: a program hardly writes into the ring itself, so that it is
// its library's. Preconditions: d.mu is held.
func (q *QP) watchPosted(fault error) {
	if fault == nil && q.d.wqe.sqe.Excess {
		fault = errExcess
	}
	if q.misfit || fault != errExcess && fault != ring.ErrLength && fault != ring.ErrNoList {
		return
	}
	q.misfit = true
	advice := "ibv_wr_set_sge_list of libibverbs takes the first element's length for all: make them equal, or use ibv_post_send"
	if fault == ring.ErrNoList {
		advice = "ibv_wr_set_inline_data of libibverbs does not mark inline data: set IBV_SEND_INLINE in wr_flags"
	}
	q.d.warn("the verbs library posted a send that contradicts itself", "qp", int(q.num), "fault", fault, "advice", advice)
}
