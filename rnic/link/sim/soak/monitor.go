package soak

import (
	"fmt"
	"hash/crc32"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/link/sim/virtual"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// monitor holds what an end sends to the wire's rules: as requester, and as
// responder to its peer. Numbers of packets do not wrap here; the low 24 bits
// are the PSN.
type monitor struct {
	first   uint64   // number of the first request packet
	next    uint64   // of the next that was not sent yet
	sent    []record // by number - first
	asked   []reading
	arrived uint64 // requests below this number have arrived at the peer at some time (not without gaps)
	msn     uint64 // the highest message count that the end gave as responder
}

// record is a request packet that was sent. A READ covers several numbers.
type record struct {
	op   wire.Opcode
	hash uint32
	read int // index in asked; -1
}

// reading is a READ or atomic request: its answers are the packets first … end-1.
type reading struct {
	first, end uint64
	va         uint64
	length     uint32
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
	switch {
	case p.Opcode.Service() != wire.ServiceRC:
		return fmt.Errorf("%s sent a packet of another service: %s", e, f)
	case !p.MigReq || p.PKey != wire.DefaultPKey || p.FECN || p.BECN:
		return fmt.Errorf("%s sent MigReq=%v P_Key=%#x FECN=%v BECN=%v: %s", e, p.MigReq, p.PKey, p.FECN, p.BECN, f)
	case p.Pad != wire.PadLen(len(p.Payload)):
		return fmt.Errorf("%s sent %d bytes with pad %d: %s", e, len(p.Payload), p.Pad, f)
	case !p.Opcode.HasPayload() && len(p.Payload) > 0:
		return fmt.Errorf("%s sent payload where none belongs: %s", e, f)
	}
	n, mtu := len(p.Payload), e.run.plan.mtu
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
	if p.Opcode.IsRequest() {
		return e.checkRequest(f, p)
	}
	return e.checkResponse(f, p)
}

// checkRequest: new packets come in order without gaps (IBA C9-58), repeated ones
// are what they were, and READs and atomics keep their limit (C9-75).
func (e *end) checkRequest(f *virtual.Flight, p *wire.Packet) error {
	m := &e.mon
	n := number(m.next, p.PSN)
	switch {
	case e.qp.Sending != abi.QPSRTS:
		return fmt.Errorf("%s in %s sent a request: %s", e, e.qp.Sending, f)
	case n > m.next || n < m.first:
		return fmt.Errorf("%s sent PSN %d, next is %d: %s", e, p.PSN, m.next&uint64(wire.MaxPSN), f)
	case e.run.world.Now() < e.flow.notBefore:
		return fmt.Errorf("%s sent a request %d ns before the time of the RNR NAK was over: %s", e, e.flow.notBefore-e.run.world.Now(), f)
	}
	e.flow.waits = false
	e.run.tally.Opcodes[p.Opcode]++
	if n < m.next {
		return e.checkRepeated(f, p, n)
	}
	rec := record{op: p.Opcode, hash: requestHash(p), read: -1}
	count := uint64(1)
	if p.Opcode.IsReadRequest() || p.Opcode.IsAtomic() {
		if p.Opcode.IsReadRequest() {
			count = max(1, (uint64(p.RETH.DMALen)+uint64(e.run.plan.mtu)-1)/uint64(e.run.plan.mtu))
		}
		rec.read = len(m.asked)
		m.asked = append(m.asked, reading{first: n, end: n + count, va: p.RETH.VA, length: p.RETH.DMALen})
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
	e.run.tally.Repeated++
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
	skip := (n - r.first) * uint64(e.run.plan.mtu)
	if p.RETH.VA != r.va+skip || uint64(p.RETH.DMALen)+skip != uint64(r.length) {
		return fmt.Errorf("%s repeats a READ of [%#x,+%d) as PSN %d with [%#x,+%d)", e, r.va, r.length, p.PSN, p.RETH.VA, p.RETH.DMALen)
	}
	return nil
}

// requestHash digests what a repeated request must have in common with the
// first.
func requestHash(p *wire.Packet) uint32 {
	q := *p
	q.AckReq = false
	var head [64]byte
	return crc32.Update(crc32.ChecksumIEEE(q.AppendHeaders(head[:0])), crc32.IEEETable, p.Payload)
}

// checkResponse: nothing is acknowledged that did not arrive, and the message
// count does not go back within what was not repeated.
func (e *end) checkResponse(f *virtual.Flight, p *wire.Packet) error {
	req := &e.peer.mon
	n := number(req.next, p.PSN)
	if n >= req.arrived && !(p.Opcode == wire.RCAck && p.AETH.Syndrome.IsNAK() && n <= req.arrived) {
		return fmt.Errorf("%s answers PSN %d, the highest that arrived is %d: %s", e, p.PSN, int64(req.arrived-1)&int64(wire.MaxPSN), f)
	}
	t := &e.run.tally
	t.Opcodes[p.Opcode]++
	if p.Opcode == wire.RCAck {
		switch s := p.AETH.Syndrome; {
		case s.IsRNR():
			t.RNR++
		case s.IsNAK():
			if s.IsReserved() {
				return fmt.Errorf("%s sent a reserved syndrome: %s", e, f)
			}
			t.NAKs[s.NAK()]++
		}
	} else if p.Opcode.Carries(wire.HasAETH) && !p.AETH.Syndrome.IsACK() {
		return fmt.Errorf("%s sent an answer with data and a NAK: %s", e, f)
	}
	if p.Opcode == wire.RCAck {
		return e.checkAckOrder(f, p, n)
	}
	return e.checkReadResponse(f, p, n)
}

// checkAckOrder: a responder answers in order; what acknowledges a PSN does not
// overtake the answers of READs and atomics before it (IBA 9.7.5.1, C9-93).
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

// checkReadResponse: an answer belongs to a READ or atomic with this PSN, and has
// the opcode of its place in it. A READ that was repeated from the middle may
// begin there with FIRST or MIDDLE (Linux: MIDDLE).
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
	want := e.run.plan.mtu
	if last {
		want = int(r.length) - int(r.end-1-r.first)*e.run.plan.mtu
	}
	if len(p.Payload) != want {
		return fmt.Errorf("%s answers PSN %d of a READ with %d bytes, due are %d", e, p.PSN, len(p.Payload), want)
	}
	return nil
}

// arrives follows a request that reaches its responder, and an answer that
// reaches its requester. e is where it arrives.
func (e *end) arrives(f *virtual.Flight, p *wire.Packet) {
	now := e.run.world.Now()
	slow := max(e.flow.slow, now-f.Sent)
	e.flow.slow, e.peer.flow.slow = slow, slow
	if p.Opcode.IsRequest() {
		m := &e.peer.mon
		end := number(m.next, p.PSN) + 1
		if p.Opcode.IsReadRequest() {
			end = m.asked[m.sent[end-1-m.first].read].end
		}
		m.arrived = max(m.arrived, end)
		return
	}
	e.answered(now, p)
}

// answered follows an answer that arrives at the requester, as far as the
// specification says what it acknowledges: an ACK its packet and all before, a
// NAK all before; but nothing beyond a READ or atomic whose answer is missing.
func (e *end) answered(now engine.Time, p *wire.Packet) {
	fl := &e.flow
	n := number(fl.una, p.PSN)
	nak := p.Opcode.Carries(wire.HasAETH) && !p.AETH.Syndrome.IsACK()
	switch {
	case n < fl.una || n >= e.mon.next:
		return
	case p.Opcode == wire.RCAck && !nak:
		e.acknowledge(now, n+1)
	case p.Opcode == wire.RCAck:
		e.acknowledge(now, n)
	default:
		e.acknowledge(now, n)
		if fl.una == n {
			e.advance(now, n+1)
		}
	}
	if nak && p.AETH.Syndrome.IsRNR() {
		fl.rnr++
		if fl.una == n && !fl.waits { // else it is a copy
			fl.waits = true
			fl.notBefore = now + engine.Time(p.AETH.Syndrome.RNRTimer().Nanoseconds())
		}
	}
}

func (e *end) acknowledge(now engine.Time, upTo uint64) {
	if i := e.flow.asked; i < len(e.mon.asked) {
		upTo = min(upTo, max(e.mon.asked[i].first, e.flow.una))
	}
	e.advance(now, upTo)
}

func (e *end) advance(now engine.Time, una uint64) {
	fl := &e.flow
	if una <= fl.una {
		return
	}
	fl.una, fl.progress, fl.rnr, fl.notBefore, fl.waits = una, now, 0, 0, false
	for fl.asked < len(e.mon.asked) && e.mon.asked[fl.asked].end <= una {
		fl.asked++
	}
}

// wait is how long the end's queue pair believes in a silent peer.
func (e *end) wait() engine.Time {
	return engine.Time(e.plan.retry+1) * max(engine.Time(e.plan.timeout.Nanoseconds()), engine.Time(engine.Millisecond))
}

// checkRetryExceeded: the queue pair gives up only after (retry_cnt+1) timeouts
// without progress (IBA 9.7.6.1.3, C9-141), and only if its peer is gone or the
// network deserves it.
func (l *lane) checkRetryExceeded(o *op) error {
	e, now := l.from, l.run.world.Now()
	fl := &e.flow
	silent := now - max(fl.progress, o.postedAt)
	switch {
	case e.plan.timeout == 0:
		return fmt.Errorf("%s: %s ended with RETRY_EXC_ERR, but the queue pair has no ACK timeout", l.name, o)
	case silent < e.wait():
		return fmt.Errorf("%s: %s gave up after %d ns without progress, %d timeouts are %d ns", l.name, o, silent, e.plan.retry+1, e.wait())
	case e.peer.failedAt >= 0 || fl.slow > e.wait()/16:
		return nil
	}
	// With few retries the one packet that was lost may be all there is to it.
	quiet, enough := now-max(fl.trouble, o.postedAt), 2*e.wait()
	if e.plan.retry >= 3 {
		quiet, enough = now-max(fl.trouble, fl.progress, o.postedAt), e.wait()/2
	}
	if quiet >= enough {
		return fmt.Errorf("%s: %s gave up although the peer was alive and nothing was lost for %d ns", l.name, o, quiet)
	}
	return nil
}

// checkRNRExceeded: the queue pair gives up after rnr_retry+1 RNR NAKs in a row
// (IBA C9-150), never with 7.
func (l *lane) checkRNRExceeded(o *op) error {
	e := l.from
	switch {
	case e.plan.rnrRetry == 7:
		return fmt.Errorf("%s: %s ended with RNR_RETRY_EXC_ERR, but rnr_retry is 7, for ever", l.name, o)
	case !o.takesReceive():
		return fmt.Errorf("%s: %s ended with RNR_RETRY_EXC_ERR, but takes no receive", l.name, o)
	case e.flow.rnr <= int(e.plan.rnrRetry):
		return fmt.Errorf("%s: %s gave up after %d RNR NAKs, rnr_retry is %d", l.name, o, e.flow.rnr, e.plan.rnrRetry)
	}
	return nil
}
