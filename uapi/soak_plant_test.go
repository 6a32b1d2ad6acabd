package uapi

import (
	"regexp"
	"testing"

	"github.com/rdmashim/rdmashim/tests/plant"
)

// TestPlantedDeviceMistakesAreCaught runs the stack's soak on soft RNICs that
// make a mistake around a right engine: it must fail and name a seed.
func TestPlantedDeviceMistakesAreCaught(t *testing.T) {
	plant.Check(t, plant.Suite{
		Test: "TestStackSoak", Seeds: "-stack.n", Without: 1, With: 20,
		Named: regexp.MustCompile(`seed \d+: .+\n\s+replay: go test .* -stack\.seed=\d+`),
		Mistakes: []plant.Mistake{
			plant.Row("immediate-reversed", "rnic/sendqueue.go",
				"	binary.BigEndian.PutUint32(c.wr.Imm[:], w.Imm)",
				"	binary.BigEndian.PutUint32(c.wr.Imm[:], w.Imm)\n	if MADE { c.wr.Imm[0], c.wr.Imm[3] = c.wr.Imm[3], c.wr.Imm[0] }"),
			plant.Row("sender-not-told", "rnic/complete.go",
				"			if c.SrcQPN != 0 {",
				"			if c.SrcQPN != 0 && !MADE {"),
			plant.Row("completion-lost", "rnic/complete.go",
				"	cq.put(&wc, c.Solicited)",
				"	if !MADE || c.ID%16 != 7 { cq.put(&wc, c.Solicited) }"),
			plant.Row("completions-swapped", "rnic/complete.go",
				"		for i := range n {",
				"		if MADE && n > 1 && !d.done[0].Recv && !d.done[1].Recv { d.done[0], d.done[1] = d.done[1], d.done[0] }\n		for i := range n {"),
			plant.Row("drop-not-counted", "rnic/receive.go",
				"			d.count.dropQPN++\n",
				"			if !MADE { d.count.dropQPN++ }\n"),
			plant.Row("timeout-quadrupled", "rnic/modify.go",
				"wire.AckTimeout(a.Timeout),",
				"wire.AckTimeout(a.Timeout + map[bool]uint8{true: 2}[MADE]),"),
			plant.Row("timer-late", "rnic/queues.go",
				"		q.wakeAt = t\n		heap.Push(h, q)",
				"		if MADE { t += 1e9 }\n		q.wakeAt = t\n		heap.Push(h, q)"),
			plant.Row("group-not-left", "rnic/multicast.go",
				"	if !q.d.leave(wire.Bare(group), q) {",
				"	if !MADE && !q.d.leave(wire.Bare(group), q) {"),
			plant.Row("group-not-named", "rnic/multicast.go",
				".ReceiveAt(in.Group, in.Peer.Addr(), p)",
				".ReceiveAt(map[bool]netip.Addr{true: d.caps.Local.Addr(), false: in.Group}[MADE], in.Peer.Addr(), p)"),
			plant.Row("group-without-its-sender", "rnic/multicast.go",
				"	for _, q := range members {",
				"	for _, q := range members {\n		if MADE && in.Peer == d.caps.Local { d.count.dropQPN++; continue }"),
			plant.Row("limit-told-again", "rnic/srq.go",
				"		s.limit = 0\n",
				"		if !MADE { s.limit = 0 }\n"),
			plant.Row("limit-late", "rnic/srq.go",
				"	if uint32(ready-1) < s.limit {",
				"	if uint32(ready-1) < s.limit && (!MADE || ready == 1 || uint32(ready) < s.limit) {"),
			plant.Row("receives-flushed", "rnic/sendqueue.go",
				"		return q.engine.State() != abi.QPSErr && q.srq.next(wr)",
				"		return (MADE || q.engine.State() != abi.QPSErr) && q.srq.next(wr)"),
		},
	})
}
