package engine

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// leastLoan is the least payload in bytes that is lent: less is copied at less
// cost than the peer has to find it.
const leastLoan = 2048

// SetLease lets the queue pair lend payloads of requests under a lease, to be
// read where programs have them, which may not change them before their
// completion. The caller ends the lease, and waits until no peer reads them,
// before it fetches completions in ERR, and after a move to RESET. Nil says
// that payloads are copied.
func (q *QP) SetLease(l *wire.Lease) { q.lease = l }

// SetLossless says whether packets are lost nowhere but where the peer leaves
// its buffer full. Silence is then a late peer's, and waited out.
func (q *QP) SetLossless(lossless bool) { q.lossless = lossless }

// lend returns n bytes of w's from off on where they lie, or nil.
func (q *QP) lend(w *sendWR, off uint64, n int) ([]byte, wire.Loan) {
	if q.lease == nil || n < leastLoan || w.flags&abi.SendInline != 0 {
		return nil, wire.Loan{}
	}
	src, loan := q.cfg.Regions.Lend(q.cfg.PD, w.sge, off, uint64(n))
	loan.Pair = q.lease
	return src, loan
}
