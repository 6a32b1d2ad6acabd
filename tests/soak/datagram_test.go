package soak

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/plant"
)

// laneSeeds is how many seeds the soaks beside reliable connections run, each.
const laneSeeds = 1200

// TestDatagramSoak runs the seeds, or one with its events shown.
func TestDatagramSoak(t *testing.T) {
	soakLane(t, "datagrams", 25, RunDatagrams)
}

// soakLane runs the seeds of a soak, or one with its events shown. Together
// they must reach so many kinds of events.
func soakLane(t *testing.T, name string, kinds int, run func(uint64, func(string)) (map[string]int, error)) {
	if seed := *flagSeed; seed != 0 {
		reached, err := run(seed, func(line string) { t.Log(line) })
		require.NoError(t, err, "%v", reached)
		return
	}
	n := min(seeds(), laneSeeds)
	if *flagN == 0 {
		n = min(n, amount.Of(600, laneSeeds))
	}
	total := map[string]int{}
	for seed := *flagFrom; seed < *flagFrom+uint64(n); seed++ {
		reached, err := run(seed, nil)
		require.NoError(t, err, "seed %d\n\treplay: go test ./tests/soak -run %s -v -sim.seed=%d", seed, t.Name(), seed)
		for what, n := range reached {
			total[what] += n
		}
	}
	fmt.Printf("soak: %d seeds of %s: %v\n", n, name, total)
	if n >= 500 {
		require.Len(t, total, kinds, "the soak is to reach more: %v", total)
	}
}

// TestPlantedLaneMistakesAreCaught is TestPlantedMistakesAreCaught for the
// soaks beside reliable connections.
func TestPlantedLaneMistakesAreCaught(t *testing.T) {
	all := datagramMistakes
	for _, m := range unreliableMistakes {
		m.Test = "TestUnreliableSoak"
		all = append(all, m)
	}
	for _, m := range windowMistakes {
		m.Test = "TestWindowSoak"
		all = append(all, m)
	}
	plant.Check(t, plant.Suite{
		Test: "TestDatagramSoak", Seeds: "-sim.n", Without: 100, With: laneSeeds,
		Named:    regexp.MustCompile(`seed \d+\n\s+replay: go test .* -sim\.seed=\d+`),
		Mistakes: all,
	})
}

var datagramMistakes = []plant.Mistake{
	plant.Row("datagram-received-in-error", "rnic/engine/datagram.go",
		"	default:\n		q.counters.DropState++",
		"	default:\n		if MADE && q.state == abi.QPSErr { return true }\n		q.counters.DropState++"),
	plant.Row("datagram-key-ignored", "rnic/engine/datagram.go",
		"case p.DETH.QKey != qkey:",
		"case p.DETH.QKey != qkey && !MADE:"),
	plant.Row("datagram-partition-ignored", "rnic/engine/datagram.go",
		"case !p.PKey.Match(wire.DefaultPKey):",
		"case !p.PKey.Match(wire.DefaultPKey) && !MADE:"),
	plant.Row("datagram-own-key-not-sent", "rnic/engine/datagram.go",
		"if named&controlledQKey != 0 {",
		"if named&controlledQKey != 0 && !MADE {"),
	plant.Row("datagram-fits-without-route", "rnic/engine/datagram.go",
		"if q.rsp.recvLen < uint64(wire.GRHLen+len(p.Payload)) {",
		"if q.rsp.recvLen < uint64(wire.GRHLen+len(p.Payload)) && (!MADE || q.rsp.recvLen < uint64(len(p.Payload))) {"),
	plant.Row("datagram-receive-taken-for-nothing", "rnic/engine/datagram.go",
		"	if !q.accept(p) {\n",
		"	if !q.accept(p) {\n		if MADE && q.state == abi.QPSRTS { q.nextReceive() }\n"),
	plant.Row("datagram-too-long-is-sent", "rnic/engine/datagram.go",
		"if n > q.longest {",
		"if n > q.longest && (!MADE || n > 4096) {"),
	plant.Row("datagram-number-repeated", "rnic/engine/datagram.go",
		"	q.psn = q.psn.Next()",
		"	if !MADE || q.psn != wire.MaxPSN { q.psn = q.psn.Next() }"),
	plant.Row("datagram-sent-while-draining", "rnic/engine/datagram.go",
		"for q.state == abi.QPSRTS && q.sq.len() > 0 {",
		"for (q.state == abi.QPSRTS || MADE && q.state == abi.QPSSQD) && q.sq.len() > 0 {"),
	plant.Row("datagram-survives-reset", "rnic/engine/datagram.go",
		"		q.QP.reset()\n",
		"		sent := q.sq\n		q.QP.reset()\n		if MADE { q.sq = sent }\n"),
	plant.Row("datagram-destination-of-another", "rnic/engine/datagram.go",
		"	q.to[i%uint64(len(q.to))] = wr.To",
		"	if !MADE || q.sq.len() == 1 { q.to[i%uint64(len(q.to))] = wr.To }"),
	plant.Row("datagram-immediate-lost", "rnic/engine/responder_exec.go",
		"		c.Flags |= abi.WCWithImm\n",
		"		if !MADE || len(p.Payload) > 0 { c.Flags |= abi.WCWithImm }\n"),
}
