package foreign

import (
	"encoding/binary"

	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Request is a request to the other end.
type Request struct {
	Operation wire.Operation // OpSend, OpWrite, OpRead, OpFetchAdd or OpCompareSwap
	Data      []byte         // of a SEND or WRITE; where a READ's or an atomic's answer goes
	VA        uint64
	RKey      uint32
	Imm       uint32
	HasImm    bool
	Compare   uint64
	SwapAdd   uint64

	first wire.PSN
	n     int // numbers that it takes
}

func (r *Request) answered() bool {
	return r.Operation != wire.OpSend && r.Operation != wire.OpWrite
}

// underWay is how many packets the end has under way at most.
const underWay = 24

// requester sends requests, and everything from the oldest missing one on again
// after the ACK timeout or a NAK.
//
//	oldest ≤ next ≤ behind
type requester struct {
	Done int // requests, the first of queue

	queue  []*Request // all, in their order
	oldest wire.PSN   // that is not acknowledged
	next   wire.PSN   // that is sent next
	behind wire.PSN   // behind all that were sent
	limit  int        // messages that take a receive and may be under way; -1: any number
	wait   bool       // for the receiver, as its RNR NAK says
	went   bool       // back, and nothing was acknowledged since
	timer  int        // numbers the timeouts: only the last counts
}

// Post adds a request.
func (p *Peer) Post(r *Request) {
	if n := len(p.queue); n == 0 {
		r.first = p.PSN
		p.behind = p.PSN
	} else {
		last := p.queue[n-1]
		r.first = last.first.Add(last.n)
	}
	r.n = packets(len(r.Data), p.MTU)
	if r.answered() && r.Operation != wire.OpRead {
		r.n = 1
	}
	p.queue = append(p.queue, r)
	p.transmit()
}

// find returns the request that a number belongs to, or nil.
func (p *Peer) find(psn wire.PSN) *Request {
	for _, r := range p.queue[p.Done:] {
		if psn.In(r.first, r.n) {
			return r
		}
	}
	return nil
}

// transmit sends as far as may be under way.
func (p *Peer) transmit() {
	for !p.wait {
		r := p.find(p.next)
		if r == nil || !p.mayBegin(r) || p.next.Sub(p.oldest) >= underWay {
			return
		}
		if r.answered() {
			p.ask(r)
			p.next = r.first.Add(r.n)
		} else {
			p.sendPacket(r, int(p.next.Sub(r.first)))
			p.next = p.next.Next()
		}
		if p.next.After(p.behind) {
			p.behind = p.next
		}
		if p.timer == 0 {
			p.start()
		}
	}
}

// mayBegin reports whether credits and READs in flight leave room for r
// (9.7.7.2, 9.7.3.1): without credits one message may go, which learns of new
// ones.
func (p *Peer) mayBegin(r *Request) bool {
	asks, takes := 0, 0
	for _, q := range p.queue[p.Done:] {
		if q == r {
			break
		}
		if q.answered() {
			asks++
		}
		if q.Operation == wire.OpSend || q.HasImm {
			takes++
		}
	}
	if r.answered() {
		return asks < p.Reads
	}
	return p.limit < 0 || r.Operation == wire.OpWrite && !r.HasImm || takes <= p.limit
}

// sendPacket sends packet i of a SEND or WRITE.
func (p *Peer) sendPacket(r *Request, i int) {
	suffix := wire.Plain
	if r.HasImm {
		suffix = wire.Immediate
	}
	from := i * p.MTU
	to := min(from+p.MTU, len(r.Data))
	p.send(&wire.Packet{
		BTH: wire.BTH{
			Opcode: opcode(r.Operation, i == 0, i == r.n-1, suffix), PSN: r.first.Add(i),
			AckReq: i == r.n-1 || p.Rand.Hit(0.1),
		},
		RETH:    wire.RETH{VA: r.VA, RKey: r.RKey, DMALen: uint32(len(r.Data))},
		ImmDt:   wire.ImmDt{Data: r.Imm},
		Payload: r.Data[from:to],
	})
}

// ask sends a READ for the missing rest of its answer, or an atomic.
func (p *Peer) ask(r *Request) {
	k := &wire.Packet{BTH: wire.BTH{Opcode: opcode(r.Operation, true, true, wire.Plain), PSN: p.next, AckReq: true}}
	if r.Operation == wire.OpRead {
		skip := min(int(p.next.Sub(r.first))*p.MTU, len(r.Data))
		k.RETH = wire.RETH{VA: r.VA + uint64(skip), RKey: r.RKey, DMALen: uint32(len(r.Data) - skip)}
	} else {
		k.AtomicETH = wire.AtomicETH{VA: r.VA, RKey: r.RKey, SwapAdd: r.SwapAdd, Compare: r.Compare}
	}
	p.send(k)
}

// response handles a packet of the other responder.
func (p *Peer) response(k *wire.Packet) {
	if k.Opcode == wire.RCAck && len(k.Payload) > 0 {
		p.failf("a bitmap, for an end that sets no reserved bit")
		return
	}
	d := k.PSN.Sub(p.oldest)
	if d < 0 || !k.PSN.Before(p.behind) {
		return // of a packet that was acknowledged, or never sent: a ghost
	}
	if k.Opcode.Carries(wire.HasAETH) && k.AETH.Syndrome.IsACK() {
		n, limited := wire.CreditCount(k.AETH.Syndrome.Credits())
		if p.limit = n; !limited {
			p.limit = -1
		}
	}
	switch s := k.AETH.Syndrome; {
	case k.Opcode.IsReadResponse(), k.Opcode == wire.RCAtomicAck:
		p.takeAnswer(k)
	case s.IsACK():
		p.acknowledged(k.PSN.Next())
	case s.IsRNR():
		if p.acknowledged(k.PSN) {
			p.notReady(engine.Duration(s.RNRTimer().Nanoseconds()))
		}
	case s.NAK() == wire.NAKPSNSequence:
		if p.acknowledged(k.PSN) {
			p.goBack()
		}
	default:
		p.failf("refused: %v", s)
	}
	p.transmit()
}

// acknowledged moves oldest to psn, and reports whether it got there: an answer
// that is missing before it is asked for again.
func (p *Peer) acknowledged(psn wire.PSN) bool {
	for p.Done < len(p.queue) {
		r := p.queue[p.Done]
		end := r.first.Add(r.n)
		if r.answered() && psn.After(p.oldest) {
			p.goBack()
			return false
		}
		if psn.Before(end) {
			if psn.After(p.oldest) {
				p.progress(psn)
			}
			return true
		}
		p.finish(r)
	}
	return true
}

// takeAnswer takes the part of an answer that is missing next.
func (p *Peer) takeAnswer(k *wire.Packet) {
	if !p.acknowledged(k.PSN) || p.Done == len(p.queue) {
		return
	}
	r := p.queue[p.Done]
	switch {
	case !r.answered() || (r.Operation == wire.OpRead) != k.Opcode.IsReadResponse():
		p.failf("%v for %v", k.Opcode, r.Operation)
		return
	case k.Opcode == wire.RCAtomicAck:
		binary.NativeEndian.PutUint64(r.Data, k.AtomicAckETH.Orig)
		p.finish(r)
		return
	}
	i := int(k.PSN.Sub(r.first))
	from := min(i*p.MTU, len(r.Data))
	if want := min(p.MTU, len(r.Data)-from); len(k.Payload) != want || k.Opcode.EndsMessage() != (i == r.n-1) {
		p.failf("%v with %d bytes for packet %d of %d", k.Opcode, len(k.Payload), i, r.n)
		return
	}
	copy(r.Data[from:], k.Payload)
	if i == r.n-1 {
		p.finish(r)
	} else {
		p.progress(k.PSN.Next())
	}
}

func (p *Peer) finish(r *Request) {
	p.Done++
	p.progress(r.first.Add(r.n))
}

// progress sets oldest, and the ACK timeout anew.
func (p *Peer) progress(psn wire.PSN) {
	p.oldest, p.went = psn, false
	if p.next.Before(psn) {
		p.next = psn
	}
	p.start()
}

// start begins the ACK timeout (9.7.6.1.3).
func (p *Peer) start() {
	p.timer++
	number := p.timer
	p.World.At(p.World.Now()+engine.Time(p.Timeout), func() {
		if number == p.timer && p.oldest.Before(p.behind) {
			p.went = false
			p.goBack()
			p.start()
			p.transmit()
		}
	})
}

// goBack sends everything from oldest on again, once until something is
// acknowledged or the ACK timeout passes.
func (p *Peer) goBack() {
	if !p.went && !p.wait {
		p.went, p.next = true, p.oldest
	}
}

// notReady waits as long as the other end asked for.
func (p *Peer) notReady(d engine.Duration) {
	if p.wait {
		return
	}
	p.wait, p.went = true, false
	p.World.At(p.World.Now()+engine.Time(d), func() {
		p.wait, p.next = false, p.oldest
		p.start()
		p.transmit()
	})
}
