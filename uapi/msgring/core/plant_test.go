package core

import (
	"path"
	"regexp"
	"testing"

	"github.com/rdmashim/rdmashim/tests/plant"
)

// TestPlantedDefectsAreFound takes each mend of the protocol's design out of
// the cores: the exploration must find the trace that it mends.
func TestPlantedDefectsAreFound(t *testing.T) {
	for i, d := range defects { // so that none waits for the exploration of another part
		switch path.Base(d.File) {
		case "pump.go":
			defects[i].Test = "TestExplorePump"
		default:
			defects[i].Test = "TestExploreRing"
		}
	}
	plant.Check(t, plant.Suite{
		Test: "TestExplore(Pump|Ring)", Args: []string{"-test.short", "-test.failfast"}, Seeds: "-msgring.n",
		Named:    regexp.MustCompile(`after \d+ states: .+\n\s+trace: .+`),
		Mistakes: defects,
	})
}

var defects = []plant.Mistake{
	// The leader hands out a waiter's completion before the waiter registers,
	// which then sleeps for ever.
	plant.Row("registered-late", "uapi/msgring/core/pump.go",
		"		p.waiters = append(p.waiters, w)\n",
		"		if !MADE { p.waiters = append(p.waiters, w) }\n",
		"	default:\n",
		"	default:\n		if MADE && !registered(p, w) { p.waiters = append(p.waiters, w) }\n",
		"// claim takes",
		"func registered(p *Pump, w *Waiter) bool {\n	for _, r := range p.waiters {\n		if r == w { return true }\n	}\n	return false\n}\n\n// claim takes"),
	// A waiter leads, and waits, though the leader before it has fulfilled its
	// wish since it looked; or its deadline has passed, whose timer saw no
	// leader to interrupt.
	plant.Row("no-look-with-the-token", "uapi/msgring/core/pump.go",
		"	if p.leader == nil {\n",
		"	if p.leader == nil && !MADE {\n",
		"	case p.leader == w:\n",
		"	case MADE && p.leader == nil:\n		p.leader, w.step = w, Lead\n	case p.leader == w:\n"),
	// A deadline passes between a leader's look and its wait.
	plant.Row("leader-not-interrupted", "uapi/msgring/core/pump.go",
		"{ return p.leader == w }",
		"{ return p.leader == w && !MADE }"),
	// The waiter that was woken to lead leaves, and no waiter leads.
	plant.Row("baton-dropped", "uapi/msgring/core/pump.go",
		"	if p.leader == w {\n		p.leader = nil\n	}\n",
		"	led := p.leader == w\n	if led { p.leader = nil }\n	if MADE && !led { return nil }\n"),
	// A chunk carries credit that is older than that of the CREDIT before it.
	plant.Row("credit-read-without-order", "uapi/msgring/core/end_post.go",
		"	e.posting = true\n	return p, true, nil\n",
		"	e.posting = !MADE\n	return p, true, nil\n"),
	// Both ends are blocked, and neither can post a CREDIT.
	plant.Row("post-kept-while-blocked", "uapi/msgring/core/end_post.go",
		"		return 0, 0, nil\n	}\n	e.staged = n\n",
		"		e.posting = e.posting || MADE\n		return 0, 0, nil\n	}\n	if MADE { e.posting = false }\n	e.staged = n\n"),
	// Controls have slots of their own, which unsignaled ones fill.
	plant.Row("controls-counted-apart", "uapi/msgring/core/sendqueue.go",
		"bool { return q.posted-q.done < q.slots-q.held }",
		"bool {\n	n, before := uint64(0), q.freed\n	for i := range q.ends.len() {\n		if *q.ends.at(i) == before { n++ }\n		before = *q.ends.at(i)\n	}\n	return q.posted-q.done < q.slots-q.held && (!MADE || n < q.controls)\n}",
		"signalEvery() uint64 {",
		"signalEvery() uint64 {\n	if MADE { return q.slots/4 }\n"),
	// Unsignaled controls fill the slots that data may take.
	plant.Row("data-share-small", "uapi/msgring/core/sendqueue.go",
		"q.posted-q.done < q.slots-q.controls }",
		"q.posted-q.done < min(q.slots-q.controls, 2+map[bool]uint64{!MADE: 1000}[true]) }",
		"q.controls/2))",
		"q.controls/2+map[bool]uint64{MADE: 1000}[true]))"),
	// A CREDIT that finds no slot is forgotten.
	plant.Row("credit-without-slot-forgotten", "uapi/msgring/core/end_post.go",
		"		return Post{}, false\n	}\n	m := &p.Control\n",
		"		if MADE && !e.queue.ControlSlot() && e.in.Due() { e.in.Credit() }\n		return Post{}, false\n	}\n	m := &p.Control\n"),
	// A control message takes the slot of a chunk that is being filled.
	plant.Row("staged-chunk-without-slot", "uapi/msgring/core/sendqueue.go",
		"	q.held = 1\n",
		"	q.held = map[bool]uint64{!MADE: 1}[true]\n"),
	// An end whose peer has read all and left does not know it.
	plant.Row("last-credit-forgotten", "uapi/msgring/core/end.go",
		"return e.closing && e.finTaken",
		"return !MADE && e.closing && e.finTaken"),
	// A RESET overtakes the data before it.
	plant.Row("reset-discards", "uapi/msgring/core/end.go",
		"	case e.in.Unread():\n		return true, false, nil\n",
		"	case MADE && e.resetSeen:\n		return false, false, errReset\n	case e.in.Unread():\n		return true, false, nil\n"),
}

// TestPlantedMistakesAreCaught plants mistakes that transports of this kind
// were seen to make: the random test must fail and name a seed.
func TestPlantedMistakesAreCaught(t *testing.T) {
	plant.Check(t, plant.Suite{
		Test: "TestRandom", Seeds: "-msgring.n", Without: 20, With: seedsEverywhere,
		Named:    regexp.MustCompile(`seed \d+: .+\n\s+replay: go test .* -msgring\.seed=\d+`),
		Mistakes: mistakes,
	})
}

var mistakes = []plant.Mistake{
	plant.Row("skip-not-seen", "uapi/msgring/core/consumer.go",
		"	start, end := c.layout.Place(c.next, n)\n",
		"	start, end := c.layout.Place(c.next, n)\n	if MADE { start, end = c.next, c.next+c.layout.Charge(n) }\n"),
	plant.Row("staging-given-back-early", "uapi/msgring/core/sendqueue.go",
		"	q.freed = *q.ends.at(n - 1)\n",
		"	q.freed = *q.ends.at(n - 1)\n	if MADE { q.freed = q.tail }\n"),
	plant.Row("staging-not-signaled", "uapi/msgring/core/sendqueue.go",
		"|| q.tail-q.marked >= q.staging.Size/4",
		"|| q.tail-q.marked >= q.staging.Size/4 && !MADE"),
	plant.Row("fin-counts-room", "uapi/msgring/core/producer.go",
		"	p.bytes += n\n",
		"	p.bytes += n\n	if MADE { p.bytes += end - start - n }\n"),
	plant.Row("credit-does-not-wrap", "uapi/msgring/core/producer.go",
		"(imm-known)&immediateMask",
		"(imm-known)&map[bool]uint32{true: 1<<32 - 1, false: immediateMask}[MADE]"),
	plant.Row("stale-stage-committed", "uapi/msgring/core/sendqueue.go",
		"	start, _ := q.staging.Place(q.tail, staged)\n	q.tail",
		"	start, _ := q.staging.Place(q.tail, staged)\n	if MADE { start = q.tail }\n	q.tail"),
}
