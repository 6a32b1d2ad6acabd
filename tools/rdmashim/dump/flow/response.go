package flow

import (
	"fmt"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
)

// response takes an answer, which comes on w for requests on its way back.
func (t *Tracker) response(w *way, p *dissect.Packet) {
	h := &p.Wire
	if w.back == nil {
		t.pairUp(w, h.PSN)
	}
	v := w.back // the way of the answered requests
	if v == nil {
		t.strayAnswer(h)
		return
	}
	v.sum.Responses++
	v.lastAnswer = p.Time
	if h.Opcode.IsReadResponse() {
		w.learnMTU(p)
		t.readAnswer(v, p)
	}
	if h.Opcode.Carries(wire.HasAETH) && !h.AETH.Syndrome.IsACK() {
		t.refusal(v, p)
		return
	}
	v.answered(p)
}

// strayAnswer is one whose requests the capture does not have.
func (t *Tracker) strayAnswer(h *wire.Packet) {
	if s := h.AETH.Syndrome; h.Opcode.Carries(wire.HasAETH) && !s.IsACK() {
		kind := NAK
		if s.IsRNR() {
			kind = RNR
		}
		t.remark(kind, fmt.Sprintf("%v; the request that it answers is not in the capture", s))
	}
}

// readAnswer counts data of a READ.
func (t *Tracker) readAnswer(v *way, p *dissect.Packet) {
	psn := p.Wire.PSN
	for i := len(v.reads) - 1; i >= 0; i-- {
		r := &v.reads[i]
		if !psn.In(r.psn, r.max) {
			continue
		}
		switch where, missing := r.seq.take(psn, 1, 0); where {
		case again:
			v.sum.Repeated++
			t.remark(Repeated, "data of a READ that was there before: its request came twice")
			return
		case skip:
			t.remark(Gap, fmt.Sprintf("%s of the READ's answer before it: lost before this point, or not captured; the requester will ask again", plural(missing, "packet")))
		}
		break
	}
	v.sum.Read += uint64(p.PayloadLen)
}

// answered takes the round trip and forgets the answered requests: all up to
// the PSN.
func (w *way) answered(p *dissect.Packet) {
	psn := p.Wire.PSN
	done := 0
	for i := range w.sent {
		s := &w.sent[i]
		if s.psn.After(psn) {
			break
		}
		if s.psn == psn && s.times == 1 && s.tellAt {
			w.sum.sample(p.Time.Sub(s.at))
		}
		if last := s.psn.Add(s.n - 1); last.After(psn) && s.opcode.IsReadRequest() && !p.Wire.Opcode.EndsMessage() {
			s.times++ // its first answer has been taken
			break
		}
		done = i + 1
	}
	w.sent = append(w.sent[:0], w.sent[done:]...)
	if w.nak.kind != "" && !psn.Before(w.nak.psn) {
		w.nak = nak{}
	}
}

// refusal explains a NAK for a request of v.
func (t *Tracker) refusal(v *way, p *dissect.Packet) {
	s, psn := p.Wire.AETH.Syndrome, p.Wire.PSN
	n := &v.sum.NAKs
	what := v.describe(psn)
	switch {
	case s.IsRNR():
		n.RNR++
		v.nak = nak{RNR, psn, p.Time, s}
		t.remark(RNR, fmt.Sprintf("the receiver has no receive posted for %s: the requester shall wait %v, then send it again from PSN %d on", what, s.RNRTimer(), psn))
	case s.IsReserved():
		n.Other++
		t.remark(NAK, fmt.Sprintf("%v: the requester ignores it", s))
	case s.NAK() == wire.NAKPSNSequence:
		n.Sequence++
		v.nak = nak{NAK, psn, p.Time, s}
		v.lost = sent{psn: psn, n: max(1, int(v.seq.next.Sub(psn))), at: p.Time}
		v.seq.reportHoles()
		t.remark(NAK, v.sequenceText(psn))
	default:
		t.refused(n, s.NAK(), what)
	}
	v.acknowledgedBefore(psn)
}

// refused explains a NAK that ends the connection.
func (t *Tracker) refused(n *NAKs, code wire.NAKCode, what string) {
	status, why := "REM_INV_REQ_ERR", "it is longer than the receive, not allowed on the queue pair, misaligned or malformed"
	switch code {
	case wire.NAKInvalidRequest:
		n.Invalid++
	case wire.NAKRemoteAccess:
		n.Access++
		status, why = "REM_ACCESS_ERR", "the key, the range or the right to it is wrong"
	case wire.NAKRemoteOperational:
		n.Operational++
		status, why = "REM_OP_ERR", "the responder failed itself; its completions say why"
	default:
		n.Other++
	}
	t.remark(NAK, fmt.Sprintf("the responder refuses %s: %s; it completes with %s, and the queue pair goes to the error state", what, why, status))
}

func (w *way) sequenceText(psn wire.PSN) string {
	text := fmt.Sprintf("the responder expected PSN %d and got a later one", psn)
	if last := w.seq.next.Add(-1); w.seq.begun && last.After(psn) && last.Sub(psn) < farAway {
		text += fmt.Sprintf(" (up to %d was sent)", last)
	}
	return text + ": a packet was lost, damaged or overtaken; the requester begins again there"
}

// describe describes the request with a PSN.
func (w *way) describe(psn wire.PSN) string {
	for i := range w.sent {
		s := &w.sent[i]
		if !psn.In(s.psn, s.n) {
			continue
		}
		if s.opcode.IsSend() {
			return "the SEND"
		}
		return fmt.Sprintf("the %v of %s at va 0x%x with rkey 0x%08x", s.opcode.Operation(), plural(s.length, "byte"), s.va, s.rkey)
	}
	return "a request"
}

// acknowledgedBefore forgets the requests that a NAK acknowledges: all before
// its PSN.
func (w *way) acknowledgedBefore(psn wire.PSN) {
	done := 0
	for done < len(w.sent) && w.sent[done].psn.Before(psn) {
		done++
	}
	w.sent = append(w.sent[:0], w.sent[done:]...)
}
