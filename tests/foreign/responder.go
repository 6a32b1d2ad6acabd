package foreign

import (
	"encoding/binary"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Message is a SEND, or a WRITE's immediate data, that was received.
type Message struct {
	Data   []byte
	Imm    uint32
	HasImm bool
}

// responder carries out requests in the order of their numbers.
type responder struct {
	Got []Message

	expected wire.PSN
	msn      wire.MSN
	posted   int  // receives
	silent   bool // a NAK for expected was sent: packets behind it are dropped

	during  wire.Operation // of the message of which the last packet is missing
	message []byte         // of a SEND
	at      int            // offset in the region of a WRITE's next byte
	left    int            // bytes of a WRITE that are missing
	answers []answer       // the last READs and atomics, Reads at most
}

// answer is the remembered answer to a READ or an atomic, for when it comes
// again.
type answer struct {
	first wire.PSN
	n     int // packets
	reth  wire.RETH
	orig  uint64
	read  bool
}

// PostReceives adds receives.
func (p *Peer) PostReceives(n int) { p.posted += n }

// request handles a request (9.7.4).
func (p *Peer) request(k *wire.Packet) {
	switch d := k.PSN.Sub(p.expected); {
	case d > 0:
		if !p.silent {
			p.silent = true
			p.acknowledge(p.expected, wire.SyndromeNAK(wire.NAKPSNSequence))
		}
		return
	case d < 0:
		p.duplicate(k)
		return
	}
	if takesReceive(k) && p.posted == 0 {
		p.silent = true
		p.acknowledge(p.expected, wire.SyndromeRNR(1)) // 0.01 ms
		return
	}
	p.silent = false
	switch k.Opcode.Operation() {
	case wire.OpSend:
		p.takeSend(k)
	case wire.OpWrite:
		p.takeWrite(k)
	case wire.OpRead:
		p.takeRead(k)
	case wire.OpFetchAdd, wire.OpCompareSwap:
		p.takeAtomic(k)
	default:
		p.failf("%v", k.Opcode)
	}
}

// takesReceive reports whether a packet begins to use a receive.
func takesReceive(k *wire.Packet) bool {
	return k.Opcode.IsSend() && k.Opcode.StartsMessage() || k.Opcode.IsWrite() && k.Opcode.HasImm()
}

// inMessage checks that a packet follows the one before it (9.7.4.1.2 and 6).
func (p *Peer) inMessage(k *wire.Packet) {
	o, first, last := k.Opcode.Operation(), k.Opcode.StartsMessage(), k.Opcode.EndsMessage()
	switch {
	case first != (p.during == wire.OpNone) || !first && o != p.during:
		p.failf("%v in the middle of %v", k.Opcode, p.during)
	case !last && len(k.Payload) != p.MTU, !first && last && len(k.Payload) == 0:
		p.failf("%v with %d bytes", k.Opcode, len(k.Payload))
	}
	if p.during = o; last {
		p.during = wire.OpNone
	}
}

func (p *Peer) takeSend(k *wire.Packet) {
	p.inMessage(k)
	if k.Opcode.StartsMessage() {
		p.posted--
		p.message = nil
	}
	p.message = append(p.message, k.Payload...)
	p.executed(k, func() {
		p.Got = append(p.Got, Message{p.message, k.ImmDt.Data, k.Opcode.HasImm()})
	})
}

func (p *Peer) takeWrite(k *wire.Packet) {
	p.inMessage(k)
	if k.Opcode.StartsMessage() {
		p.at, p.left = p.place(&k.RETH), int(k.RETH.DMALen)
	}
	if p.left -= len(k.Payload); p.left < 0 || k.Opcode.EndsMessage() && p.left > 0 {
		p.failf("a WRITE of a length other than its RETH's: %d left", p.left)
		return
	}
	copy(p.Memory[p.at:], k.Payload)
	p.at += len(k.Payload)
	p.executed(k, func() {
		if k.Opcode.HasImm() {
			p.posted--
			p.Got = append(p.Got, Message{nil, k.ImmDt.Data, true})
		}
	})
}

// place is where a RETH's range begins in the region.
func (p *Peer) place(r *wire.RETH) int {
	if r.DMALen == 0 {
		return 0
	}
	at := r.VA - p.VA
	if r.RKey != p.RKey || r.VA < p.VA || at+uint64(r.DMALen) > uint64(len(p.Memory)) {
		p.failf("%d bytes at %#x with the key %#x", r.DMALen, r.VA, r.RKey)
		return 0
	}
	return int(at)
}

// executed moves on, and acknowledges a message or what asks for it.
func (p *Peer) executed(k *wire.Packet, end func()) {
	p.expected = p.expected.Next()
	if k.Opcode.EndsMessage() {
		p.msn = p.msn.Next()
		end()
	}
	if k.Opcode.EndsMessage() || k.AckReq {
		p.acknowledge(k.PSN, p.credits())
	}
}

// credits grants as many messages as there are receives (9.7.7.2).
func (p *Peer) credits() wire.Syndrome {
	code := uint8(0)
	for c := uint8(1); c < wire.NoCredits; c++ {
		if n, _ := wire.CreditCount(c); n <= p.posted {
			code = c
		}
	}
	return wire.SyndromeACK(code)
}

func (p *Peer) acknowledge(psn wire.PSN, s wire.Syndrome) {
	p.send(&wire.Packet{BTH: wire.BTH{Opcode: wire.RCAck, PSN: psn}, AETH: wire.AETH{Syndrome: s, MSN: p.msn}})
}

func (p *Peer) takeRead(k *wire.Packet) {
	p.inMessage(k)
	p.place(&k.RETH)
	a := answer{first: k.PSN, n: packets(int(k.RETH.DMALen), p.MTU), reth: k.RETH, read: true}
	p.expected = p.expected.Add(a.n)
	p.msn = p.msn.Next()
	p.remember(a)
	p.answerRead(a.first, &a.reth)
}

// remember keeps an answer. The other end has no more outstanding than there
// is room for, so the oldest has arrived.
func (p *Peer) remember(a answer) {
	if p.answers = append(p.answers, a); len(p.answers) > p.Reads {
		p.answers = p.answers[1:]
	}
}

// answerRead sends a READ's answer, whose first packet is First or Only also
// where the READ was repeated from the middle (9.7.5.1.9).
func (p *Peer) answerRead(psn wire.PSN, r *wire.RETH) {
	at, n := p.place(r), packets(int(r.DMALen), p.MTU)
	for i := range n {
		from := min(i*p.MTU, int(r.DMALen))
		to := min(from+p.MTU, int(r.DMALen))
		p.send(&wire.Packet{
			BTH:     wire.BTH{Opcode: opcode(wire.OpReadResponse, i == 0, i == n-1, wire.Plain), PSN: psn.Add(i)},
			AETH:    wire.AETH{Syndrome: p.credits(), MSN: p.msn},
			Payload: p.Memory[at+from : at+to],
		})
	}
}

// takeAtomic carries out an atomic on the region, whose words have the order of
// the wire here.
func (p *Peer) takeAtomic(k *wire.Packet) {
	p.inMessage(k)
	e := &k.AtomicETH
	at := p.place(&wire.RETH{VA: e.VA, RKey: e.RKey, DMALen: 8})
	if e.VA%8 != 0 {
		p.failf("an atomic at %#x", e.VA)
	}
	word := p.Memory[at : at+8]
	orig := binary.NativeEndian.Uint64(word)
	switch {
	case k.Opcode.Operation() == wire.OpFetchAdd:
		binary.NativeEndian.PutUint64(word, orig+e.SwapAdd)
	case orig == e.Compare:
		binary.NativeEndian.PutUint64(word, e.SwapAdd)
	}
	p.expected = p.expected.Next()
	p.msn = p.msn.Next()
	p.remember(answer{first: k.PSN, n: 1, orig: orig})
	p.answerAtomic(k.PSN, orig)
}

func (p *Peer) answerAtomic(psn wire.PSN, orig uint64) {
	p.send(&wire.Packet{
		BTH:          wire.BTH{Opcode: wire.RCAtomicAck, PSN: psn},
		AETH:         wire.AETH{Syndrome: p.credits(), MSN: p.msn},
		AtomicAckETH: wire.AtomicAckETH{Orig: orig},
	})
}

// duplicate handles a request that was carried out before (9.7.5.1.5): it is
// acknowledged up to the last, a READ is answered again, an atomic too.
func (p *Peer) duplicate(k *wire.Packet) {
	if k.Opcode.IsSend() || k.Opcode.IsWrite() {
		if k.AckReq || k.Opcode.EndsMessage() {
			p.acknowledge(p.lastBeforeAnswers(k.PSN), p.credits())
		}
		return
	}
	for _, a := range p.answers {
		if !k.PSN.In(a.first, a.n) {
			continue
		}
		if a.read != k.Opcode.IsReadRequest() {
			p.failf("%v with the number of another request", k.Opcode)
		} else if a.read {
			p.answerRead(k.PSN, &k.RETH)
		} else {
			p.answerAtomic(k.PSN, a.orig)
		}
		return
	}
}

// lastBeforeAnswers is the last number that an ACK for the request psn may have
// without standing for an answer that may have been lost.
func (p *Peer) lastBeforeAnswers(psn wire.PSN) wire.PSN {
	for _, a := range p.answers {
		if a.first.After(psn) {
			return a.first.Add(-1)
		}
	}
	return p.expected.Add(-1)
}

// packets is how many packets so many bytes take.
func packets(n, mtu int) int { return max(1, (n+mtu-1)/mtu) }
