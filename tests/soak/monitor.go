package soak

import (
	"fmt"
	"hash/crc32"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/virtual"
)

// monitor holds an end's packets to the wire's rules: as requester, and as
// responder to its peer. Numbers of packets do not wrap here; the low 24 bits
// are the PSN.
type monitor struct {
	first   uint64   // number of the first request packet
	next    uint64   // of the next that was not sent yet
	sent    []record // by number - first
	asked   []reading
	arrived uint64   // requests below this number have arrived at the peer at some time (not without gaps)
	msn     wire.MSN // that the end gave last as responder

	unready   uint64 // the request that it last had no receive for
	met, told int    // packets that met congestion on their way here, and notices of it
}

// record is a request packet that was sent. A READ covers several numbers.
type record struct {
	op      wire.Opcode
	hash    uint32
	read    int  // index in asked; -1
	arrived bool // at the peer, at least once
	kept    bool // its answer arrived before an earlier one
}

// reading is a READ or atomic request: its answers are the packets first …
// end-1.
type reading struct {
	first, end uint64
	va         uint64
	length     uint32
	mtu        int  // bytes of the answers
	told       bool // the responder has sent the last answer at least once
}

func newMonitor(psn wire.PSN) monitor {
	n := 1<<32 + uint64(psn)
	return monitor{first: n, next: n, arrived: n}
}

// number returns the packet number with a PSN that is nearest to n.
func number(n uint64, psn wire.PSN) uint64 {
	return n + uint64(int64(psn.Sub(wire.PSN(n&uint64(wire.MaxPSN)))))
}

// checkPacket holds a packet of end e to the rules that all packets obey.
func (e *end) checkPacket(f *virtual.Flight, p *wire.Packet) error {
	if p.BECN {
		if err := e.checkNotice(f, p); err != nil || p.Opcode == wire.CNP {
			return err
		}
	}
	switch {
	case p.Opcode.Service() != wire.ServiceRC:
		return fmt.Errorf("%s sent a packet of another service: %s", e, f)
	case !p.MigReq || p.PKey != wire.DefaultPKey || p.FECN:
		return fmt.Errorf("%s sent MigReq=%v P_Key=%#x FECN=%v: %s", e, p.MigReq, p.PKey, p.FECN, f)
	case p.Pad != wire.PadLen(len(p.Payload)):
		return fmt.Errorf("%s sent %d bytes with pad %d: %s", e, len(p.Payload), p.Pad, f)
	case p.Selective && e.node.Stash == nil:
		return fmt.Errorf("%s goes back N and says that it repeats selectively: %s", e, f)
	case len(p.Bitmap()) > 0:
		if err := e.checkBitmap(f, p); err != nil {
			return err
		}
	case !p.Opcode.HasPayload() && len(p.Payload) > 0:
		return fmt.Errorf("%s sent payload where none belongs: %s", e, f)
	}
	if consumes := p.Opcode.Operation() == wire.OpSend || p.Opcode.HasImm(); p.Solicited && !(consumes && p.Opcode.EndsMessage()) {
		return fmt.Errorf("%s sent a solicited event where no receive completes: %s", e, f)
	}
	if !p.Opcode.IsRequest() {
		return e.checkResponse(f, p)
	}
	if err := e.checkPrivate(f, p); err != nil {
		return err
	}
	if p.TriesMTU() {
		return e.checkTry(f, p)
	}
	n, mtu := len(p.Payload), e.mtuOf(p)
	switch p.Opcode.Position() {
	case wire.First, wire.Middle:
		if n != mtu {
			return fmt.Errorf("%s sent a first or middle packet of %d bytes, MTU %d: %s", e, n, mtu, f)
		}
	case wire.Last:
		if n < 1 || n > mtu {
			return fmt.Errorf("%s sent a last packet of %d bytes, MTU %d: %s", e, n, mtu, f)
		}
	case wire.Only:
		if n > mtu {
			return fmt.Errorf("%s sent an only packet of %d bytes, MTU %d: %s", e, n, mtu, f)
		}
	}
	return e.checkRequest(f, p)
}

// mtuOf is the MTU of a request's message.
func (e *end) mtuOf(p *wire.Packet) int { return max(e.run.plan.mtu, p.PrivateMTU.Bytes()) }

// checkPrivate: a private MTU is one that both ends take, that a packet has
// passed with, and that is larger than the path MTU.
func (e *end) checkPrivate(f *virtual.Flight, p *wire.Packet) error {
	if p.PrivateMTU == 0 {
		return nil
	}
	for _, x := range []*end{e, e.peer} {
		if most := wire.FitPrivateMTU(e.run.plan.room[x.node.Index]); x.node.Stash == nil || p.PrivateMTU > most {
			return fmt.Errorf("%s sent private MTU %d, %s takes %d: %s", e, p.PrivateMTU.Bytes(), x, most.Bytes(), f)
		}
	}
	switch {
	case p.PrivateMTU.Bytes() <= e.run.plan.mtu:
		return fmt.Errorf("%s sent private MTU %d: %s", e, p.PrivateMTU.Bytes(), f)
	case p.TriesMTU():
	case e.run.passed[e.node.Index][e.peer.node.Index] < p.PrivateMTU:
		return fmt.Errorf("%s sent private MTU %d before such a packet had passed: %s", e, p.PrivateMTU.Bytes(), f)
	default:
		e.run.tally["packet: of a private MTU"]++
	}
	return nil
}

// checkTry: such a packet repeats no request, and is as long as it says.
func (e *end) checkTry(f *virtual.Flight, p *wire.Packet) error {
	e.run.tally["packet: tries a private MTU"]++
	if n := number(e.mon.next, p.PSN); n >= e.mon.next || n >= e.mon.arrived || len(p.Payload) != p.PrivateMTU.Bytes() {
		return fmt.Errorf("%s tries private MTU %d, next is %d: %s", e, p.PrivateMTU.Bytes(), e.mon.next&uint64(wire.MaxPSN), f)
	}
	return nil
}

// checkNotice: a notice of congestion answers a packet that met some, each once
// at most: BECN in an answer where both ends repeat selectively, which is how
// soft devices know each other, else a CNP.
func (e *end) checkNotice(f *virtual.Flight, p *wire.Packet) error {
	e.mon.told++
	switch {
	case e.mon.told > e.mon.met:
		return fmt.Errorf("%s tells of more congestion than the %d packets met: %s", e, e.mon.met, f)
	case p.Opcode == wire.CNP && (p.PSN != 0 || p.AckReq || p.PKey != wire.DefaultPKey || len(p.Payload) > 0):
		return fmt.Errorf("%s sent a CNP with a PSN, a payload or a flag: %s", e, f)
	case p.Opcode != wire.CNP && (p.Opcode.IsRequest() || !p.Selective || e.peer.node.Stash == nil):
		return fmt.Errorf("%s sent BECN where nobody looks at it: %s", e, f)
	}
	return nil
}

// checkBitmap: a NAK tells of kept packets only where both ends repeat
// selectively, and only of packets that arrived.
func (e *end) checkBitmap(f *virtual.Flight, p *wire.Packet) error {
	if e.peer.node.Stash == nil {
		return fmt.Errorf("%s sent a bitmap to a peer that goes back N: %s", e, f)
	}
	e.run.tally["NAK: with a bitmap"]++
	m := &e.peer.mon
	n := number(m.next, p.PSN)
	for i := range p.Bitmap().Len() {
		if !p.Bitmap().Has(i) {
			continue
		}
		if at := n + uint64(i) - m.first; at >= uint64(len(m.sent)) || !m.sent[at].arrived {
			return fmt.Errorf("%s says that PSN %d arrived, which did not: %s", e, (n+uint64(i))&uint64(wire.MaxPSN), f)
		}
	}
	return nil
}

// checkRequest: new packets come in order without gaps (IBA C9-58), repeated
// ones are what they were, and READs and atomics keep their limit (C9-75).
func (e *end) checkRequest(f *virtual.Flight, p *wire.Packet) error {
	m := &e.mon
	n := number(m.next, p.PSN)
	switch {
	case e.qp.Sending == abi.QPSSQD && n >= e.held:
		return fmt.Errorf("%s begins a request while its send queue drains: %s", e, f)
	case e.qp.Sending != abi.QPSRTS && e.qp.Sending != abi.QPSSQD:
		return fmt.Errorf("%s in %s sent a request: %s", e, e.qp.Sending, f)
	case n > m.next || n < m.first:
		return fmt.Errorf("%s sent PSN %d, next is %d: %s", e, p.PSN, m.next&uint64(wire.MaxPSN), f)
	case e.run.world.Now() > e.deadline():
		return fmt.Errorf("%s believes in its peer %d ns after %d timeouts of %d ns: %s", e, e.run.world.Now()-e.deadline(), e.plan.retry+1, e.plan.timeout.Nanoseconds(), f)
	case e.run.world.Now() < e.flow.notBefore:
		return fmt.Errorf("%s sent a request %d ns before the time of the RNR NAK was over: %s", e, e.flow.notBefore-e.run.world.Now(), f)
	}
	if e.flow.waits || e.flow.una == m.next {
		e.flow.since = e.run.world.Now()
	}
	e.flow.waits = false
	e.run.tally.packet(p.Opcode)
	if n < m.next {
		return e.checkRepeated(f, p, n)
	}
	rec := record{op: p.Opcode, hash: requestHash(p), read: -1}
	count := uint64(1)
	if p.Opcode.IsReadRequest() || p.Opcode.IsAtomic() {
		if p.Opcode.IsReadRequest() {
			mtu := uint64(e.mtuOf(p))
			count = max(1, (uint64(p.RETH.DMALen)+mtu-1)/mtu)
		}
		rec.read = len(m.asked)
		m.asked = append(m.asked, reading{first: n, end: n + count, mtu: e.mtuOf(p), va: p.RETH.VA, length: p.RETH.DMALen})
		if out := e.outstanding(); out > int(e.plan.rdAtomic) {
			return fmt.Errorf("%s has %d READs and atomics outstanding, limit %d: %s", e, out, e.plan.rdAtomic, f)
		}
	}
	for range count {
		m.sent = append(m.sent, rec)
	}
	m.next += count
	return nil
}

// outstanding counts READs and atomics without their last answer.
func (e *end) outstanding() int { return len(e.mon.asked) - e.flow.asked }

// checkRepeated: a repeated request is the same as before, but for the ACK
// request; a READ may be repeated from the middle on (IBA C9-110, 9.7.5.1.5).
func (e *end) checkRepeated(f *virtual.Flight, p *wire.Packet, n uint64) error {
	m := &e.mon
	e.run.tally["packet: repeats a request"]++
	e.seen.RetransmittedPkts++
	rec := m.sent[n-m.first]
	if rec.op != p.Opcode {
		return fmt.Errorf("%s repeats PSN %d as %s, it was %s", e, p.PSN, p.Opcode, rec.op)
	}
	if !p.Opcode.IsReadRequest() {
		if requestHash(p) != rec.hash {
			return fmt.Errorf("%s repeats PSN %d with other contents: %s", e, p.PSN, f)
		}
		return nil
	}
	r := m.asked[rec.read]
	skip := (n - r.first) * uint64(r.mtu)
	end := uint64(p.RETH.DMALen) + skip
	part := p.Selective && end < uint64(r.length) && end%uint64(r.mtu) == 0 && p.RETH.DMALen > 0
	if part {
		e.run.tally["packet: repeats a part of a READ"]++
	}
	if p.RETH.VA != r.va+skip || end != uint64(r.length) && !part {
		return fmt.Errorf("%s repeats a READ of [%#x,+%d) as PSN %d with [%#x,+%d)", e, r.va, r.length, p.PSN, p.RETH.VA, p.RETH.DMALen)
	}
	return nil
}

// requestHash digests what a repeated request must have in common with the
// first.
func requestHash(p *wire.Packet) uint32 {
	q := *p
	q.AckReq, q.Selective = false, false
	var head [64]byte
	return crc32.Update(crc32.ChecksumIEEE(q.AppendHeaders(head[:0])), crc32.IEEETable, p.Payload)
}

// checkResponse: nothing is acknowledged that did not arrive, and the message
// count does not go back, also not in repeated answers.
func (e *end) checkResponse(f *virtual.Flight, p *wire.Packet) error {
	req := &e.peer.mon
	n := number(req.next, p.PSN)
	if n >= req.arrived && !(p.Opcode == wire.RCAck && p.AETH.Syndrome.IsNAK() && n <= req.arrived) {
		return fmt.Errorf("%s answers PSN %d, the highest that arrived is %d: %s", e, p.PSN, int64(req.arrived-1)&int64(wire.MaxPSN), f)
	}
	t := e.run.tally
	t.packet(p.Opcode)
	if p.Opcode == wire.RCAck {
		switch s := p.AETH.Syndrome; {
		case s.IsRNR():
			t["NAK: receiver not ready"]++
			e.mon.unready = n
		case s.IsNAK():
			if s.IsReserved() {
				return fmt.Errorf("%s sent a reserved syndrome: %s", e, f)
			}
			if s.NAK() == wire.NAKPSNSequence && n == e.mon.unready {
				return fmt.Errorf("%s misses a request that it has no receive for: %s", e, f)
			}
			t["NAK: "+s.NAK().String()]++
		}
	} else if p.Opcode.Carries(wire.HasAETH) && !p.AETH.Syndrome.IsACK() {
		return fmt.Errorf("%s sent an answer with data and a NAK: %s", e, f)
	}
	if p.Opcode.Carries(wire.HasAETH) {
		if p.AETH.MSN.Sub(e.mon.msn) < 0 {
			return fmt.Errorf("%s gives message count %d after %d: %s", e, p.AETH.MSN, e.mon.msn, f)
		}
		e.mon.msn = p.AETH.MSN
	}
	if p.Opcode == wire.RCAck {
		return e.checkAckOrder(f, p, n)
	}
	return e.checkReadResponse(f, p, n)
}

// checkAckOrder: a responder answers in order; a packet that acknowledges a PSN
// does not overtake the answers of READs and atomics before it (IBA 9.7.5.1,
// C9-93).
func (e *end) checkAckOrder(f *virtual.Flight, p *wire.Packet, n uint64) error {
	if p.AETH.Syndrome.IsACK() {
		n++
	}
	m := &e.peer.mon
	for _, r := range m.asked[e.peer.flow.asked:] {
		if r.end <= n && !r.told {
			return fmt.Errorf("%s sends %s before the answer to the request with PSN %d", e, f, r.first&uint64(wire.MaxPSN))
		}
	}
	return nil
}

// checkReadResponse: an answer belongs to a READ or atomic with this PSN, and
// has the opcode of its place in it. A READ that was repeated from the middle
// may begin there with FIRST or MIDDLE (Linux: MIDDLE).
func (e *end) checkReadResponse(f *virtual.Flight, p *wire.Packet, n uint64) error {
	m := &e.peer.mon
	rec := m.sent[n-m.first]
	if rec.read < 0 || rec.op.IsAtomic() != (p.Opcode == wire.RCAtomicAck) {
		return fmt.Errorf("%s answers PSN %d, which was %s, with %s", e, p.PSN, rec.op, f)
	}
	r := &m.asked[rec.read]
	last := n+1 == r.end
	r.told = r.told || last
	if rec.op.IsAtomic() {
		return nil
	}
	if p.Opcode.EndsMessage() != last {
		return fmt.Errorf("%s answers PSN %d of a READ of PSNs %d to %d with %s", e, p.PSN,
			r.first&uint64(wire.MaxPSN), (r.end-1)&uint64(wire.MaxPSN), f)
	}
	want := r.mtu
	if last {
		want = int(r.length) - int(r.end-1-r.first)*r.mtu
	}
	if len(p.Payload) != want {
		return fmt.Errorf("%s answers PSN %d of a READ with %d bytes, due are %d", e, p.PSN, len(p.Payload), want)
	}
	return nil
}
