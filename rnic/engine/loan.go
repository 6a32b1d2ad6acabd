package engine

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/crc"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// leastLoan is the least payload in bytes that is lent: less is copied at less
// cost than the peer has to find it.
const leastLoan = 2048

// payloadSources are the places that payloads are taken from: programs' memory
// where a lease lends it, else copies.
type payloadSources struct {
	lease *wire.Lease // nil: none
	lent  wire.Loan   // what fetch returned, until finish
}

// SetLease lets the queue pair lend payloads of requests under a lease, where
// regions have one for a tag. They are read where programs have them, which may
// not change them before their completion. The caller ends the lease, and waits
// until no peer reads them, before it fetches completions in ERR, and after a
// move to RESET. Nil says that payloads are copied.
func (q *QP) SetLease(l *wire.Lease) { q.sources.lease = l }

// SetLossless says whether packets are lost nowhere but where the peer leaves
// its buffer full. Silence is then a late peer's, and waited out.
func (q *QP) SetLossless(lossless bool) { q.lossless = lossless }

// fetch returns n bytes of w's from off on, for the next packet of the batch,
// whose opcode is op: where they lie, or copied into the batch. Their sum is
// zero if it is not known.
func (q *QP) fetch(b *Batch, op wire.Opcode, w *sendWR, off uint64, n int) (payload []byte, sum crc.Sum, err error) {
	if payload = q.lend(w, off, n); payload != nil {
		return payload, sum, nil
	}
	if payload = b.payload(op, n); w.flags&abi.SendInline != 0 {
		copy(payload, w.inline[off:])
		return payload, sum, nil
	}
	sum, err = q.cfg.Regions.Gather(q.cfg.PD, w.sge, off, payload)
	return payload, sum, err
}

// finish completes the last packet of the batch, whose payload came from fetch.
// The batch has the room of a lent one again.
func (q *QP) finish(b *Batch, sum crc.Sum) {
	last := b.last()
	last.Sum = sum
	if l := &q.sources.lent; l.Lent() {
		b.used -= len(last.Frame) - len(last.Head)
		last.Loan, last.Frame, *l = *l, nil, wire.Loan{}
	}
}

// lend returns n bytes of w's from off on where they lie, or nil. Memory that
// the peer cannot map is copied by the link: it must be there.
func (q *QP) lend(w *sendWR, off uint64, n int) []byte {
	if q.sources.lease == nil || n < leastLoan || w.flags&abi.SendInline != 0 {
		return nil
	}
	src, tag, at := q.cfg.Regions.Locate(q.cfg.PD, w.sge, off, uint64(n))
	region, ok := tag.(*wire.Lease)
	if !ok || region.Arena == 0 && !mem.Readable(src) {
		return nil
	}
	q.sources.lent = wire.Loan{Region: region, Pair: q.sources.lease, At: at}
	return src
}
