package cm_test

import (
	"regexp"
	"testing"

	"github.com/rdmashim/rdmashim/tests/plant"
)

// TestPlantedMistakesAreCaught runs the random test on managers that make a
// mistake: it must fail and name a seed.
func TestPlantedMistakesAreCaught(t *testing.T) {
	plant.Check(t, plant.Suite{
		Test: "TestRandom", Seeds: "-cm.n", Without: 500, With: 20_000,
		Named:    regexp.MustCompile(`seed \d+: .+\n(\s+.+\n)*\s+replay: go test .* -cm\.seed=\d+`),
		Mistakes: mistakes,
	})
}

var mistakes = []plant.Mistake{
	plant.Row("reject-not-replayed", "rnic/cm/linger.go",
		"c.replay, c.quiet = true, true",
		"c.replay, c.quiet = !MADE, true"),
	plant.Row("rtu-not-repeated", "rnic/cm/receive_rep.go",
		"		m.replays(c, now)",
		"		if !MADE { m.replays(c, now) }"),
	plant.Row("stale-taken", "rnic/cm/receive_req.go",
		"m.same(&r, key); old != nil",
		"m.same(&r, key); old != nil && !MADE"),
	plant.Row("timewait-for-good", "rnic/cm/linger.go",
		"	m.linger.remove(c)\n	m.idle(c)",
		"	m.linger.remove(c)\n	if MADE { m.stop(c); return }\n	m.idle(c)"),
	plant.Row("reply-not-repeated", "rnic/cm/timers.go",
		"	c.resend = now + Time(c.interval)\n	m.timers.set(c)",
		"	c.resend = now + Time(c.interval)\n	if MADE && c.state == RepSent { c.resend = 0 }\n	m.timers.set(c)"),
}
