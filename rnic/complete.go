package rnic

import (
	"encoding/binary"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/rnic/engine"
)

// complete moves the engine's completions to the completion rings. A queue pair
// that fell into the error state first takes the requests that are still in its
// send ring, so that all of them are flushed. Preconditions: d.mu is held.
func (q *QP) complete() {
	d := q.d
	if q.engine.State() == abi.QPSErr {
		q.quiesce() // before their owner hears that they are flushed
		if q.pull(d.now()) {
			d.senders.push(q) // there is more: when it is the worker's turn
			d.wakeWorker()
		}
	}
	for {
		n := q.engine.Completions(d.done)
		for i := range n {
			q.completeOne(&d.done[i])
		}
		if n < len(d.done) {
			return
		}
	}
}

func (q *QP) completeOne(c *engine.Completion) {
	if !c.Recv {
		q.retire()
		if c.Silent {
			return
		}
	}
	wc := ring.WC{ID: c.ID, Status: c.Status, QPN: uint32(q.num)}
	if c.Status == abi.WCSuccess { // else only these count, as with Linux
		wc.Opcode, wc.ByteLen, wc.Flags = c.Opcode, c.ByteLen, c.Flags
		wc.Imm, wc.InvalidateRKey = binary.BigEndian.Uint32(c.Imm[:]), c.Invalidate
	}
	cq := q.sendCQ
	if c.Recv {
		cq = q.recvCQ
		if c.Status == abi.WCSuccess {
			wc.SrcQP = q.attr.DestQPNum
			if c.SrcQPN != 0 { // of a datagram
				wc.SrcQP = uint32(c.SrcQPN)
			}
			wc.Flags |= abi.WCGRH // as with rxe: RoCEv2 packets have an IP header
		}
	}
	cq.put(&wc, c.Solicited)
}
