package soak

import (
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/virtual"
)

// flow counts the network's deeds to the requests of an end and to their
// answers.
type flow struct {
	una       uint64      // packets below this number are acknowledged by answers that arrived
	asked     int         // the first of the monitor's READs and atomics without its last answer
	progress  engine.Time // when una last grew
	since     engine.Time // when the wait for an answer began
	trouble   engine.Time // when a packet of the connection was last dropped; -1: never
	slow      engine.Time // the longest that a packet of the connection took
	rnr       int         // RNR NAKs that arrived since the last progress
	waits     bool        // nothing was sent since an RNR NAK arrived
	notBefore engine.Time // that RNR NAK asked to wait until then
}

// arrives follows a request that reaches its responder, and an answer that
// reaches its requester. e is where it arrives.
func (e *end) arrives(f *virtual.Flight, p *wire.Packet) {
	now := e.run.world.Now()
	slow := max(e.flow.slow, now-f.Sent)
	e.flow.slow, e.peer.flow.slow = slow, slow
	if p.Opcode.IsRequest() {
		m := &e.peer.mon
		from, to := e.peer.node.Index, e.node.Index
		if len(p.Payload) == p.PrivateMTU.Bytes() {
			e.run.passed[from][to] = max(e.run.passed[from][to], p.PrivateMTU)
		}
		if p.TriesMTU() {
			return
		}
		at := number(m.next, p.PSN)
		end := at + 1
		if p.Opcode.IsReadRequest() {
			end = m.asked[m.sent[at-m.first].read].end
		}
		for ; at < end; at++ {
			m.sent[at-m.first].arrived = true
		}
		m.arrived = max(m.arrived, end)
		return
	}
	if p.Opcode != wire.CNP {
		e.answered(now, p)
	}
}

// answered follows an answer that arrives at the requester, as far as the
// specification says what it acknowledges: an ACK its packet and all before, a
// NAK all before; but nothing beyond a READ or atomic whose answer is missing.
// Answers from beyond are kept where both ends repeat selectively.
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
		} else if r := &e.mon.sent[n-e.mon.first]; r.read >= 0 && p.Selective && e.node.Stash != nil {
			r.kept = true
		}
		for fl.asked < len(e.mon.asked) {
			n := max(fl.una, e.mon.asked[fl.asked].first)
			if !e.mon.sent[n-e.mon.first].kept {
				break
			}
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
	fl.una, fl.progress, fl.since, fl.rnr, fl.notBefore, fl.waits = una, now, now, 0, 0, false
	for fl.asked < len(e.mon.asked) && e.mon.asked[fl.asked].end <= una {
		fl.asked++
	}
}
