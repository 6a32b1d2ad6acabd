package flow

import (
	"fmt"
	"time"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
)

const minMTU, maxMTU = 256, 4096

// request takes a request packet.
func (t *Tracker) request(w *way, p *dissect.Packet) {
	h := &p.Wire
	w.sum.Requests++
	if h.TriesMTU() {
		return // it is in no sequence either
	}
	if w.service == wire.ServiceUD {
		w.message(p) // its PSNs count in no sequence
		return
	}
	w.learnMTU(p)
	n, slack := w.span(h)
	where, missing := w.seq.take(h.PSN, n, slack)
	if h.Opcode.StartsMessage() && where != again {
		w.first = sent{psn: h.PSN, opcode: h.Opcode, va: h.RETH.VA, rkey: h.RETH.RKey, length: int(h.RETH.DMALen)}
		if h.Opcode.IsAtomic() {
			w.first.va, w.first.rkey, w.first.length = h.AtomicETH.VA, h.AtomicETH.RKey, 8
		}
	}
	switch where {
	case anew:
		if len(w.sent) > 0 || w.lastAnswer != (time.Time{}) {
			t.remark(Anew, "a PSN far from the ones before: the queue pair's number is in use anew, or much is missing")
		}
		w.sent, w.reads, w.nak = nil, nil, nak{}
	case skip:
		t.remark(Gap, w.gapText(h, missing))
	case late:
		w.sum.OutOfOrder++
		t.remark(OutOfOrder, "overtaken by a later packet on the way here")
	case filled:
		t.repeated(w, p)
	case again:
		w.seq.reportHoles() // a sender that goes back sends everything from there on
		t.repeated(w, p)
		w.again(p)
		return
	}
	w.message(p)
	w.remember(p, n)
}

// learnMTU learns the path MTU from a packet that is as long.
func (w *way) learnMTU(p *dissect.Packet) {
	pos, n := p.Wire.Opcode.Position(), p.PayloadLen
	if (pos == wire.First || pos == wire.Middle) && minMTU <= n && n <= maxMTU && n&(n-1) == 0 {
		w.mtu = n
	}
}

// span returns how many PSNs a request takes, at least, and how many more it
// may.
func (w *way) span(h *wire.Packet) (n, slack int) {
	if !h.Opcode.IsReadRequest() {
		return 1, 0
	}
	packets := func(mtu int) int { return int(max(1, (int64(h.RETH.DMALen)+int64(mtu)-1)/int64(mtu))) }
	mtu := w.mtu
	if h.PrivateMTU != 0 {
		mtu = h.PrivateMTU.Bytes()
	}
	if mtu == 0 && w.back != nil {
		mtu = w.back.mtu
	}
	if mtu != 0 {
		return packets(mtu), 0
	}
	n = packets(maxMTU)
	return n, packets(minMTU) - n
}

// message counts the bytes that a packet brings for the first time.
func (w *way) message(p *dissect.Packet) {
	op, m := p.Wire.Opcode, &w.sum.Messages
	w.sum.Bytes += uint64(p.PayloadLen)
	if !op.EndsMessage() {
		return
	}
	switch op.Operation() {
	case wire.OpSend:
		m.Send++
	case wire.OpWrite:
		m.Write++
	case wire.OpRead:
		m.Read++
	case wire.OpCompareSwap, wire.OpFetchAdd:
		m.Atomic++
	default:
		m.Other++
	}
}

// remember keeps a request of a reliable connection until it is answered.
func (w *way) remember(p *dissect.Packet, n int) {
	if w.service != wire.ServiceRC {
		return
	}
	h := &p.Wire
	if len(w.sent) >= maxSent {
		w.sent = append(w.sent[:0], w.sent[maxSent/2:]...)
	}
	s := w.first
	s.psn, s.n, s.at, s.times, s.opcode = h.PSN, n, p.Time, 1, h.Opcode
	s.tellAt = h.AckReq || h.Opcode.IsReadRequest() || h.Opcode.IsAtomic()
	w.sent = append(w.sent, s)
	if h.Opcode.IsReadRequest() {
		if len(w.reads) >= maxReads {
			w.reads = append(w.reads[:0], w.reads[1:]...)
		}
		_, slack := w.span(h)
		w.reads = append(w.reads, read{h.PSN, n + slack, sequence{begun: true, next: h.PSN}})
	}
}

// again notes that requests are sent again: round trips of all that wait are of
// no use (Karn), and answers to a READ may come again.
func (w *way) again(p *dissect.Packet) {
	for i := range w.sent {
		s := &w.sent[i]
		s.times++
		if p.Wire.PSN.In(s.psn, s.n) {
			s.at = p.Time
		}
	}
}

// repeated counts and explains a request that was sent again.
func (t *Tracker) repeated(w *way, p *dissect.Packet) {
	w.sum.Retransmitted++
	w.sum.RepeatedBytes += uint64(p.PayloadLen)
	psn := p.Wire.PSN
	var before *sent
	for i := range w.sent {
		if psn.In(w.sent[i].psn, w.sent[i].n) {
			before = &w.sent[i]
		}
	}
	switch since := p.Time.Sub(w.nak.at); {
	case p.Wire.Opcode.IsReadRequest() && p.Wire.Selective && !p.Wire.AckReq:
		t.remark(Retransmission, "a second copy, in case the first is lost: a soft device sends two of a READ on a long path with losses")
	case w.nak.kind == NAK:
		t.remark(Retransmission, fmt.Sprintf("sent again, %s after the NAK that asked for everything from PSN %d on", brief(since), w.nak.psn))
	case w.nak.kind == RNR:
		t.remark(Retransmission, fmt.Sprintf("sent again after the receiver was not ready: the NAK asked to wait %v, %s have passed", w.nak.syndrome.RNRTimer(), brief(since)))
	case before == nil && p.Wire.PSN.In(w.lost.psn, w.lost.n):
		t.remark(Retransmission, fmt.Sprintf("sent again, %s after the NAK that told of the loss", brief(p.Time.Sub(w.lost.at))))
	case before == nil && p.Wire.Opcode.IsReadRequest():
		t.remark(Retransmission, "the READ is asked for again from here on: a part of its answer was lost or late")
	case before == nil:
		t.remark(Retransmission, "sent again although an answer to it is in the capture: that answer was lost or late")
	default:
		t.remark(Retransmission, fmt.Sprintf("sent again: no answer to it came for %s (a timeout, or an early repeat by the measured round trip)", brief(p.Time.Sub(before.at))))
	}
}

func (w *way) gapText(h *wire.Packet, missing int) string {
	text := plural(missing, "packet") + " before it, from PSN " + fmt.Sprint(h.PSN.Add(-missing)) + " on, "
	if missing == 1 {
		text += "is"
	} else {
		text += "are"
	}
	text += " not in the capture: lost before this point, or not captured"
	if w.service == wire.ServiceUC {
		text += "; an unreliable connection does not repeat, the message is lost"
	}
	return text
}
