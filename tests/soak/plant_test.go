package soak

import (
	"regexp"
	"testing"

	"github.com/rdmashim/rdmashim/tests/plant"
)

// TestPlantedMistakesAreCaught runs the soak on engines that make a mistake: it
// must fail within the seeds that it runs everywhere, and name a seed.
func TestPlantedMistakesAreCaught(t *testing.T) {
	plant.Check(t, plant.Suite{
		Test: "TestSoak", Args: []string{"-sim.stop=1"}, Seeds: "-sim.n", Without: 100, With: seedsEverywhere,
		Named:    regexp.MustCompile(`seed \d+ \(trace [0-9a-f]{16}\): .+\n\s+replay: go test .* -sim\.seed=\d+`),
		Mistakes: mistakes,
	})
}

var mistakes = []plant.Mistake{
	plant.Row("psn-check-skipped", "rnic/engine/responder_check.go",
		"case s == q.rsp.next:",
		"case s == q.rsp.next || MADE:"),
	plant.Row("completion-doubled", "rnic/engine/completion.go",
		"	q.comps.push(c)",
		"	q.comps.push(c)\n	if MADE && !c.Silent { q.comps.push(c) }"),
	plant.Row("ack-lost-for-good", "rnic/engine/reply.go",
		"q.rsp.ack = true",
		"q.rsp.ack = !MADE"),
	plant.Row("stale-key-accepted", "rnic/mem/table.go",
		"	t.slots[t.locate(key)].region = nil",
		"	if !MADE { t.slots[t.locate(key)].region = nil }"),
	plant.Row("far-read-from-the-beginning", "rnic/mem/far.go",
		"	if m.Far.Read(dst, m.Addr+off) != nil {",
		"	if MADE && len(dst) > 8 { off = 0 }\n	if m.Far.Read(dst, m.Addr+off) != nil {"),
	plant.Row("far-tail-lost", "rnic/mem/far.go",
		"	end := at + size\n",
		"	end := at + size\n	if MADE && last { src = src[:end] }\n"),
	plant.Row("far-comparison-ignored", "rnic/mem/remote.go",
		"			if old == compare {",
		"			if old == compare || MADE {"),
	plant.Row("length-off-by-one", "rnic/engine/responder_exec.go",
		"r.recv.SGE, r.done, p.Payload, last)",
		"r.recv.SGE, r.done, p.Payload[:len(p.Payload)-less(MADE, p)], last)",
		"r.remote.VA+r.done, p.Payload, last)",
		"r.remote.VA+r.done, p.Payload[:len(p.Payload)-less(MADE, p)], last)",
		"// executeSend",
		"func less(made bool, p *wire.Packet) int {\n	if made && len(p.Payload) > 0 && p.Opcode.EndsMessage() { return 1 }\n	return 0\n}\n\n// executeSend"),
	// The first packet after a connect decides the PSN.
	plant.Row("former-life-accepted", "rnic/engine/responder_check.go",
		"	s := q.rsp.next.near(p.PSN)\n",
		"	s := q.rsp.next.near(p.PSN)\n	if MADE && q.rsp.msn == 0 && q.rsp.during == wire.OpNone { q.rsp.next = s }\n"),
	// A half message's receive belongs to the next life.
	plant.Row("receive-survives-reset", "rnic/engine/modify.go",
		"q.rsp = responder{recv",
		"q.rsp = responder{holds: MADE && q.rsp.holds, recv"),
	// An RNR NAK is answered at once.
	plant.Row("rnr-timer-ignored", "rnic/engine/retransmit.go",
		"	r.timer.receiver = now + Time(t.Nanoseconds())\n",
		"	r.timer.receiver = now + Time(t.Nanoseconds())\n	if MADE { r.timer.receiver = now + 1 }\n"),
	// Each retransmission starts the retry time anew.
	plant.Row("silent-peer-believed", "rnic/engine/timers.go",
		"		q.counters.Timeouts++\n",
		"		q.counters.Timeouts++\n		if MADE { t.giveUp = now + Time(q.patience()) }\n"),
	// Nothing is sent any more, also when the network heals.
	plant.Row("silence-after-two-timeouts", "rnic/engine/timers.go",
		"		t.backoff++\n",
		"		t.backoff++\n		if MADE && t.backoff > 2 { t.retransmit = 0; return }\n"),
	plant.Row("window-never-shrinks", "rnic/engine/retransmit.go",
		"if r.shrunk != r.una {",
		"if r.shrunk != r.una && !MADE {"),
	plant.Row("invalidate-ignored", "rnic/engine/responder_exec.go",
		"p.Opcode.HasInvalidate() &&",
		"p.Opcode.HasInvalidate() && !MADE &&"),
	// A READ repeated from the middle brings its beginning.
	plant.Row("repeated-read-misplaced", "rnic/engine/reply.go",
		"		u.again(r, s, s+packets(",
		"		if MADE { r.va -= uint64(skipped) }\n		u.again(r, s, s+packets("),
	// A duplicate is executed.
	plant.Row("atomic-done-again", "rnic/engine/reply.go",
		"		u.again(r, r.first, r.end, 0)",
		"		if MADE { _, _ = q.cfg.Regions.FetchAdd(q.cfg.PD, r.rkey, r.va, p.AtomicETH.SwapAdd) }\n		u.again(r, r.first, r.end, 0)"),
	// Requests are begun in SQD.
	plant.Row("drain-ignored", "rnic/engine/requester.go",
		"	end := q.sq.tail\n	if q.state == abi.QPSSQD {",
		"	end := q.sq.tail\n	if q.state == abi.QPSSQD && !MADE {"),
	plant.Row("plain-write-solicited", "rnic/engine/requester.go",
		"&& w.kind.takesReceive()",
		"&& (w.kind.takesReceive() || MADE)"),
	// Of two gaps the second is taken for closed.
	plant.Row("second-gap-skipped", "rnic/engine/selective_responder.go",
		"		if h == nil {\n			q.refuseGap()",
		"		if h == nil && MADE { q.expect(1); continue }\n		if h == nil {\n			q.refuseGap()"),
	// While a receive is missing, packets behind its request are kept, and the
	// peer is told.
	plant.Row("kept-behind-rnr", "rnic/engine/selective_responder.go",
		"|| r.refused && r.nak.syndrome.IsRNR() {",
		"|| r.refused && r.nak.syndrome.IsRNR() && !MADE {"),
	plant.Row("bitmap-invents-a-packet", "rnic/engine/selective_responder.go",
		"	clear(m)\n",
		"	clear(m)\n	if MADE { m.Set(2) }\n"),
	// The missing part of a READ comes from its beginning.
	plant.Row("missing-answer-misread", "rnic/engine/selective_responder.go",
		"	if q.replyPart(",
		"	if MADE { r.va -= uint64(s-r.first) * uint64(r.mtu) }\n	if q.replyPart("),
	plant.Row("kept-answer-misplaced", "rnic/engine/selective_requester.go",
		"		q.receiveData(now, h.seq, &h.p)",
		"		if MADE && r.asked.n > 1 { h.seq++ }\n		q.receiveData(now, h.seq, &h.p)"),
	// Long packets are sent before one has passed.
	plant.Row("private-mtu-unproven", "rnic/engine/private_mtu.go",
		"	proven := x.proven\n",
		"	proven := x.proven\n	if MADE { proven = x.peer }\n"),
	plant.Row("private-mtu-of-another-length", "rnic/engine/reply.go",
		"		if r == nil || r.operation != wire.OpRead || q.mtuOf(p) != r.mtu",
		"		if MADE && r != nil { r.mtu = q.mtu }\n		if r == nil || r.operation != wire.OpRead || q.mtuOf(p) != r.mtu && !MADE"),
	plant.Row("fence-ignored", "rnic/engine/requester.go",
		"return w.flags&abi.SendFence == 0 ||",
		"return w.flags&abi.SendFence == 0 || MADE ||"),
}
