package verbs

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
)

// probeDistance keeps a probe's sequence number away from those of requests
// that are outstanding, of which there are at most maxQueued.
const probeDistance = 1 << 31

// Probe posts a zero-length WRITE that asks for no completion, counts as no
// request of the program's and never shows in a completion queue: whether the
// peer answers it shows in the queue pair's state, which is ERR once the
// retries are used up (Query). It reports false, and posts nothing, while
// requests are in the ring that are not done, since those tell the same. EINVAL
// for a queue pair that is not in RTS.
//
// Its completion, which comes only if it fails, takes a place in the completion
// queue until the next Poll.
func (qp *QP) Probe() (bool, error) {
	sent, err := qp.putProbe()
	if !sent || err != nil {
		return false, err
	}
	if err := qp.send.bell.ring(); err != nil {
		return true, qp.fail("doorbell", err)
	}
	return true, nil
}

func (qp *QP) putProbe() (bool, error) {
	qp.sq.mu.Lock()
	defer qp.sq.mu.Unlock()
	if qp.sq.dead != nil {
		return false, qp.fail("probe", qp.sq.dead)
	}
	if qp.State() != abi.QPSRTS {
		return false, qp.sendState
	}
	room, err := qp.send.p.Free()
	if err != nil {
		return false, qp.fail("probe", err)
	}
	if room < qp.send.q.Cap() {
		return false, nil
	}
	seq := qp.sq.head + probeDistance
	if _, err := ring.EncodeSend(qp.send.p.Slot(0), ringID(false, qp.gen, seq), &SendWR{Opcode: abi.WRRDMAWrite}); err != nil {
		return false, qp.fail("probe", err)
	}
	qp.sq.probe, qp.sq.probing = seq, true
	qp.sq.waiting = true
	qp.send.p.Publish(1)
	return true, nil
}

// Sends is how far the send queue has come.
type Sends struct {
	Posted  uint32 // requests that were ever posted, modulo 2^32
	Done    bool   // all that is in the ring, probes too, is done
	Probing bool   // the last probe is not done
}

// Sends looks at the ring.
func (qp *QP) Sends() Sends {
	qp.sq.mu.Lock()
	defer qp.sq.mu.Unlock()
	s := Sends{Posted: qp.sq.head, Done: true}
	if qp.sq.dead != nil {
		return s
	}
	room, err := qp.send.p.Free()
	if err != nil {
		return s
	}
	filled := uint32(qp.send.q.Cap() - room)
	s.Done = filled == 0
	// A probe was the first in the ring, and is, as long as all that was posted
	// since is there too.
	if filled != qp.sq.head+probeDistance-qp.sq.probe+1 {
		qp.sq.waiting = false
	}
	s.Probing = qp.sq.waiting
	return s
}

// isProbe reports whether a completion is a probe's.
func (qp *QP) isProbe(seq uint32) bool {
	qp.sq.mu.Lock()
	defer qp.sq.mu.Unlock()
	return qp.sq.probing && seq == qp.sq.probe
}
