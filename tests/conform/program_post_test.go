//go:build linux || darwin

package conform

import (
	"fmt"
	"strings"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
)

// mistake is a fault of a request.
type mistake uint8

const (
	flawless mistake = iota
	badRemoteKey
	beyondRemote
	misaligned
	badLocalKey // of a send's source: rxe says LOC_QP_OP_ERR
	beyondLocal
)

// progSend is a request of a batch, with what is known of it.
type progSend struct {
	wr     verbs.SendWR
	length int
	flaw   mistake
	mem    [][]byte // where its result goes
}

func (s *progSend) usesReceive() bool {
	switch s.wr.Opcode {
	case abi.WRSend, abi.WRSendWithImm, abi.WRRDMAWriteWithImm:
		return true
	}
	return false
}

func (s *progSend) returns() bool {
	return s.wr.Opcode == abi.WRRDMARead || s.wr.Opcode == abi.WRAtomicCmpAndSwp || s.wr.Opcode == abi.WRAtomicFetchAndAdd
}

// A region has parts: each request of a batch keeps to its own, on both sides,
// and receives keep to others.
const (
	batchMost = 6
	slots     = 2 * batchMost
)

func (m *progMR) slot(i int) (from, to int) {
	n := len(m.buf) / slots &^ 7
	return i * n, (i + 1) * n
}

// regions are a side's regions in a domain; gone ones too if asked for.
func (s *progSide) regions(pd *progPD, need abi.AccessFlags) []*progMR {
	var list []*progMR
	for _, m := range s.mrs {
		if m.pd == pd && !m.gone && m.access&need == need {
			list = append(list, m)
		}
	}
	return list
}

// pieces cuts length bytes of a slot into at most n.
func (p *program) pieces(m *progMR, slot, length, n int) (sge []verbs.SGE, mem [][]byte) {
	from, to := m.slot(slot)
	at := from + p.rand.IntN(to-from-length+1)
	for left := length; left > 0; {
		k := left
		if len(sge) < n-1 && left > 1 {
			k = 1 + p.rand.IntN(left)
		}
		sge = append(sge, verbs.SGE{Addr: m.mr.Addr() + uint64(at), Length: uint32(k), LKey: m.mr.LKey()})
		mem = append(mem, m.buf[at:at+k])
		at += k
		left -= k
	}
	return sge, mem
}

// size is a random length of at most most.
func (p *program) size(most int) int {
	switch p.rand.IntN(6) {
	case 0:
		return 0
	case 1:
		return min(most, 1+p.rand.IntN(8))
	case 2:
		return min(most, 256*(1+p.rand.IntN(8)))
	}
	return p.rand.IntN(most + 1)
}

// postRecvs posts receives, in any state.
func (p *program) postRecvs(q *progQP) {
	regions := q.side.regions(q.pd, abi.AccessLocalWrite)
	n := 1 + p.rand.IntN(4)
	var batch []verbs.RecvWR
	var list []*progRecv
	for i := range n {
		e := &progRecv{}
		q.nextID++
		e.wr.ID = q.nextID
		if len(regions) > 0 {
			m := pick(p, regions)
			from, to := m.slot(batchMost + i)
			// Enough for most messages.
			e.length = to - from
			if p.oneIn(4) {
				e.length = p.size(to - from)
			}
			e.mr = m
			e.wr.SGE, e.mem = p.pieces(m, batchMost+i, e.length, q.init.MaxRecvSGE)
			if len(e.wr.SGE) > 0 && p.oneIn(25) && e.length == to-from {
				e.bad = true
				e.wr.SGE[0].LKey ^= 0x5a0000
			}
		}
		batch = append(batch, e.wr)
		list = append(list, e)
	}
	got, err := q.qp.PostRecv(batch)
	p.say("%s receives: %d of %d, %s", q.name, got, n, errText(err))
	q.receives = append(q.receives, list[:got]...)
	if !q.gone && p.refresh(q) == abi.QPSErr {
		p.settleReceives(q, len(q.receives))
	}
}

// postSends posts a batch and waits for all that it causes.
func (p *program) postSends() {
	q := pick(p, pick(p, p.pairs).ends[:])
	peer := q.pair.peer(q)
	if !q.gone && q.state == abi.QPSRTS && !q.hasty && (peer.gone || p.refresh(peer) != abi.QPSRTS) {
		// No peer will answer: that is known soon.
		p.retries(q, 12, 1)
		q.hasty = true
	}
	if q.hasty && !peer.gone && p.refresh(peer) == abi.QPSRTS {
		return // it might be given up too early
	}
	if len(peer.receives) < 3 && !p.oneIn(4) {
		p.postRecvs(peer)
	}
	n := 1 + p.rand.IntN(batchMost)
	var batch []*progSend
	for i := range n {
		if s := p.request(q, peer, i); s != nil {
			batch = append(batch, s)
		}
	}
	if len(batch) == 0 {
		return
	}
	unfence(batch)
	// The last one that is posted tells when the batch is over.
	fits := min(len(batch), q.init.MaxSendWR)
	batch[fits-1].wr.Flags |= abi.SendSignaled
	wrs := make([]verbs.SendWR, len(batch))
	for i, s := range batch {
		wrs[i] = s.wr
	}
	got, err := q.qp.Post(wrs)
	p.say("%s posts %s: %d of %d, %s", q.name, describe(batch), got, len(batch), errText(err))
	if got == 0 {
		return
	}
	p.settle(q, peer, batch[:got])
}

// unfence takes the fence from READs and atomics and from what stands before
// them: rxe counts those that were sent already, itself and behind it
// (rxe_req.c:rxe_wqe_is_fenced), so that a request that has to be repeated
// waits for them for ever.
func unfence(batch []*progSend) {
	follows := false
	for i := len(batch) - 1; i >= 0; i-- {
		if follows = follows || batch[i].returns(); follows {
			batch[i].wr.Flags &^= abi.SendFence
		}
	}
}

// describe writes a batch.
func describe(batch []*progSend) string {
	var b strings.Builder
	for i, s := range batch {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%v %d", s.wr.Opcode, s.length)
		if s.wr.Flags&abi.SendSignaled != 0 {
			b.WriteString(" signaled")
		}
		if s.flaw != flawless {
			fmt.Fprintf(&b, " flaw %d", s.flaw)
		}
	}
	return b.String()
}

var progOps = []abi.WROpcode{
	abi.WRRDMAWrite, abi.WRRDMAWrite, abi.WRRDMAWriteWithImm, abi.WRSend, abi.WRSend, abi.WRSendWithImm, abi.WRRDMARead, abi.WRRDMARead,
	abi.WRAtomicFetchAndAdd, abi.WRAtomicCmpAndSwp,
}

// request makes the i-th request of a batch, or none if there is no memory for
// it.
func (p *program) request(q, peer *progQP, i int) *progSend {
	s := &progSend{}
	q.nextID++
	s.wr.ID, s.wr.Opcode = q.nextID, pick(p, progOps)
	s.wr.Imm = p.rand.Uint32()
	if p.oneIn(2) {
		s.wr.Flags |= abi.SendSignaled
	}
	if p.oneIn(4) {
		s.wr.Flags |= abi.SendFence
	}
	if p.oneIn(4) {
		s.wr.Flags |= abi.SendSolicited
	}
	remote := p.target(q, peer, s, i)
	if remote == nil && s.wr.Opcode != abi.WRSend && s.wr.Opcode != abi.WRSendWithImm {
		return nil
	}
	if !p.local(q, s, remote, i) {
		return nil
	}
	if remote != nil {
		p.aim(s, remote, i)
	}
	return s
}

// target chooses the peer's region: usually one that permits the operation.
func (p *program) target(q, peer *progQP, s *progSend, i int) *progMR {
	need := map[abi.WROpcode]abi.AccessFlags{
		abi.WRRDMAWrite: abi.AccessRemoteWrite, abi.WRRDMAWriteWithImm: abi.AccessRemoteWrite, abi.WRRDMARead: abi.AccessRemoteRead,
		abi.WRAtomicFetchAndAdd: abi.AccessRemoteAtomic, abi.WRAtomicCmpAndSwp: abi.AccessRemoteAtomic,
	}[s.wr.Opcode]
	if need == 0 {
		return nil
	}
	list := peer.side.regions(peer.pd, need)
	if p.oneIn(20) {
		list = peer.side.mrs // any: without the right, in another domain, or gone
	}
	return pickAny(p, list)
}

// local chooses the source, or where the result goes.
func (p *program) local(q *progQP, s *progSend, remote *progMR, i int) bool {
	most := 1 << 20
	if remote != nil {
		from, to := remote.slot(i)
		most = to - from
	}
	atomic := s.wr.Opcode == abi.WRAtomicFetchAndAdd || s.wr.Opcode == abi.WRAtomicCmpAndSwp
	if !s.returns() && q.qp.Cap().MaxInline > 0 && p.oneIn(5) {
		s.length = p.size(min(most, q.qp.Cap().MaxInline))
		s.wr.Inline, s.wr.Flags = make([]byte, s.length), s.wr.Flags|abi.SendInline
		for j := range s.wr.Inline {
			s.wr.Inline[j] = byte(p.rand.Uint32())
		}
		return true
	}
	need := abi.AccessFlags(0)
	if s.returns() {
		need = abi.AccessLocalWrite
	}
	list := q.side.regions(q.pd, need)
	if len(list) == 0 {
		return false
	}
	m := pick(p, list)
	from, to := m.slot(i)
	s.length = p.size(min(most, to-from))
	pieces := q.init.MaxSendSGE
	if atomic {
		s.length, pieces = 8, 1
	}
	s.wr.SGE, s.mem = p.pieces(m, i, s.length, pieces)
	if i == 0 && s.length > 0 && !s.returns() && p.oneIn(30) {
		s.flaw = badLocalKey
		s.wr.SGE[0].LKey ^= 0x5a0000
	} else if i == 0 && s.length > 0 && !s.returns() && s.length <= abi.MTU256.Bytes() && p.oneIn(40) {
		// A longer message would leave in part, which may arrive or not. rxe
		// notices the missing place for a READ's or an atomic's result when the
		// answer is there (rxe_comp.c:do_read), the soft RNIC before it asks.
		s.flaw = beyondLocal
		s.wr.SGE = []verbs.SGE{{Addr: m.mr.Addr() + m.mr.Length() - uint64(s.length) + 1, Length: uint32(s.length), LKey: m.mr.LKey()}}
		s.mem = [][]byte{m.buf[len(m.buf)-s.length+1:]}
	}
	if !s.returns() {
		s.mem = nil
	}
	return true
}

// aim chooses the place in the peer's region, and what goes there.
func (p *program) aim(s *progSend, m *progMR, i int) {
	from, to := m.slot(i)
	at := uint64(from + p.rand.IntN(to-from-s.length+1))
	s.wr.RemoteAddr, s.wr.RKey = m.mr.Addr()+at, m.mr.RKey()
	if s.wr.Opcode == abi.WRAtomicFetchAndAdd || s.wr.Opcode == abi.WRAtomicCmpAndSwp {
		s.wr.RemoteAddr = (m.mr.Addr() + uint64(from) + 7) &^ 7
		s.wr.CompareAdd, s.wr.Swap = p.rand.Uint64(), p.rand.Uint64()
	}
	if s.flaw != flawless || s.length == 0 {
		return
	}
	switch p.rand.IntN(60) {
	case 0:
		s.flaw = badRemoteKey
		s.wr.RKey ^= 0x5a0000
	case 1:
		s.flaw = beyondRemote
		s.wr.RemoteAddr = m.mr.Addr() + m.mr.Length() - uint64(s.length) + 1
		if s.wr.Opcode == abi.WRAtomicFetchAndAdd || s.wr.Opcode == abi.WRAtomicCmpAndSwp {
			s.wr.RemoteAddr = (m.mr.Addr() + m.mr.Length() + 8) &^ 7
		}
	case 2:
		if !p.rxe && (s.wr.Opcode == abi.WRAtomicFetchAndAdd || s.wr.Opcode == abi.WRAtomicCmpAndSwp) {
			s.flaw = misaligned
			s.wr.RemoteAddr += 4
		}
	}
}
