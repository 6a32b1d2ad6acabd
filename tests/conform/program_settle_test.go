//go:build linux || darwin

package conform

import (
	"slices"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
)

// settle waits for all that a batch causes: its completions, the receives that
// it used up, and after a failure the flush on either side.
func (p *program) settle(q, peer *progQP, batch []*progSend) {
	last := batch[len(batch)-1].wr.ID
	p.wait(q.name+" batch", func() bool { return len(q.sent) > 0 && q.sent[len(q.sent)-1].ID == last })
	if p.err != nil {
		return
	}
	failed := len(batch) // the first that failed
	for _, wc := range q.sent {
		if i := indexOf(batch, wc.ID); wc.Status != abi.WCSuccess && i >= 0 && i < failed {
			failed = i
		}
	}
	used := 0
	for _, s := range batch[:failed] {
		if s.usesReceive() {
			used++
		}
	}
	status := abi.WCSuccess
	if failed < len(batch) {
		p.fails++
		status = p.explainSend(q, peer, batch[failed], used)
	}
	for _, wc := range q.sent {
		p.say("  %s %d: %s", q.name, wc.ID, wcText(&wc))
	}
	q.sent = nil
	p.settleFailure(q, peer, batch, failed, used, status)
	if p.err != nil {
		return
	}
	p.say("  states %v %v, memory %08x %08x", p.refresh(q), p.refresh(peer), q.side.checksum(), peer.side.checksum())
}

func indexOf(batch []*progSend, id uint64) int {
	return slices.IndexFunc(batch, func(s *progSend) bool { return s.wr.ID == id })
}

// settleFailure waits for what follows from how the batch ended.
func (p *program) settleFailure(q, peer *progQP, batch []*progSend, failed, used int, status abi.WCStatus) {
	if failed == len(batch) {
		p.settleReceives(peer, used)
		return
	}
	for _, s := range batch[failed:] {
		for _, m := range s.mem {
			clear(m) // may be half written
		}
	}
	switch status {
	case abi.WCRemInvReqErr, abi.WCRemAccessErr, abi.WCRemOpErr:
		p.wait(peer.name+" fails", func() bool { return p.refresh(peer) == abi.QPSErr })
		p.settleReceives(peer, len(peer.receives))
	default:
		p.settleReceives(peer, min(used, len(peer.receives)))
	}
	p.settleReceives(q, len(q.receives))
}

// settleReceives waits for n completions of a queue pair's receives, which come
// in order.
func (p *program) settleReceives(q *progQP, n int) {
	if p.err != nil || q.gone {
		return
	}
	p.wait(q.name+" receives", func() bool { return len(q.received) >= n })
	if p.err != nil {
		return
	}
	for _, wc := range q.received {
		e := q.receives[0]
		q.receives = q.receives[1:]
		if wc.Status != abi.WCSuccess {
			for _, m := range e.mem {
				clear(m) // may be half written
			}
			wc.Status = p.explainRecv(e, wc.Status)
		}
		p.say("  %s received %d: %s", q.name, wc.ID, wcText(&wc))
	}
	q.received = nil
}

// explainSend returns the status of the request that failed. Where Linux rxe
// departs from the specification, for the reasons that declared_test.go gives,
// it is written as the soft RNIC gives it. Of a receive that is both too short
// and of a bad key either may be said; that is written as the latter on every
// kernel.
func (p *program) explainSend(q, peer *progQP, s *progSend, used int) abi.WCStatus {
	wc := &q.sent[slices.IndexFunc(q.sent, func(wc verbs.WC) bool { return wc.ID == s.wr.ID })]
	tooShort, badKey := false, false
	if s.usesReceive() && s.wr.Opcode != abi.WRRDMAWriteWithImm && used < len(peer.receives) {
		e := peer.receives[used]
		tooShort, badKey = s.length > e.length, e.badKey()
		e.tooShort = tooShort
	}
	rxe := p.sys.rxe()
	switch {
	case rxe && wc.Status == abi.WCLocQPOpErr && s.flaw == badLocalKey: // error/local-key
		wc.Status = abi.WCLocProtErr
	case rxe && wc.Status == abi.WCWRFlushErr && q.state == abi.QPSRTS && (s.flaw == badLocalKey || s.flaw == beyondLocal): // newer Linux: error/local-key
		wc.Status = abi.WCLocProtErr
	case rxe && wc.Status == abi.WCRemOpErr && tooShort && !badKey: // error/send-longer-than-the-receive
		wc.Status = abi.WCRemInvReqErr
	case wc.Status == abi.WCRemInvReqErr && tooShort && badKey:
		wc.Status = abi.WCRemOpErr
	}
	return wc.Status
}

func (e *progRecv) badKey() bool { return e.bad || e.mr != nil && e.mr.gone }

// explainRecv is the same for a receive.
func (p *program) explainRecv(e *progRecv, s abi.WCStatus) abi.WCStatus {
	rxe := p.sys.rxe()
	switch {
	case e.tooShort && e.badKey() && (s == abi.WCLocLenErr || s == abi.WCLocQPOpErr):
		return abi.WCLocProtErr
	case rxe && s == abi.WCLocQPOpErr && e.tooShort: // error/send-longer-than-the-receive
		return abi.WCLocLenErr
	case rxe && s == abi.WCLocQPOpErr && e.badKey(): // error/receive-buffer
		return abi.WCLocProtErr
	case rxe && s == abi.WCRemAccessErr: // error/write-imm-bad-key
		return abi.WCWRFlushErr
	}
	return s
}
