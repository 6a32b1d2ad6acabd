package engine

import (
	"flag"
	"regexp"
	"testing"

	"github.com/rdmashim/rdmashim/tests/plant"
)

// networks is how many networks TestUnreliableSubsequence and
// TestLocalOperations have.
var networks = flag.Int("engine.networks", 60, "networks that lose, double and reorder packets")

// TestPlantedMistakes runs the tests of unreliable connections, local
// operations and memory windows on engines that make a mistake: they must fail.
func TestPlantedMistakes(t *testing.T) {
	plant.Check(t, plant.Suite{
		Test: "Test(Unreliable.*|LocalOperations.*|WindowOfQueuePair)", Seeds: "-engine.networks", Without: 30, With: 30,
		Named: regexp.MustCompile(`--- FAIL: \w+`),
		Mistakes: []plant.Mistake{
			plant.Row("gap-not-seen", "rnic/engine/unreliable.go",
				"gap := s > r.next", "gap := s > r.next && !MADE"),
			plant.Row("overtaken-packet-taken", "rnic/engine/unreliable.go",
				"	if s < r.next {", "	if s < r.next && !MADE {"),
			plant.Row("rest-of-a-dropped-message-taken", "rnic/engine/unreliable.go",
				"		return starts\n", "		return starts || MADE\n"),
			plant.Row("receive-of-a-dropped-message-lost", "rnic/engine/responder_check.go",
				"	if r.holds {", "	if r.holds && !MADE {"),
			plant.Row("completed-before-its-end", "rnic/engine/unreliable.go",
				"	if last {\n		r.cur++", "	if last || MADE {\n		r.cur++"),
			plant.Row("immediate-lost", "rnic/engine/unreliable.go",
				"	case op.HasImm():", "	case op.HasImm() && !MADE:"),
			plant.Row("bound-before-its-turn", "rnic/engine/local.go",
				"	if q.req.cur != q.sq.head {", "	if q.req.cur != q.sq.head && !MADE {"),
			plant.Row("ends-with-those-before", "rnic/engine/local.go",
				"w.end <= s && !w.kind.local()", "w.end <= s && (!w.kind.local() || MADE)"),
			plant.Row("failed-bind-completes", "rnic/engine/local.go",
				"			w.status = abi.WCMWBindErr", "			if !MADE { w.status = abi.WCMWBindErr }"),
			plant.Row("window-serves-all", "rnic/mem/window.go",
				"|| w.user == user\n", "|| w.user == user || MADE\n"),
			plant.Row("window-not-revoked", "rnic/mem/window.go",
				"	w.unbind()\n	return nil\n", "	if !MADE { w.unbind() }\n	return nil\n"),
			plant.Row("key-not-changed", "rnic/mem/window.go",
				"	w.key = w.key&^0xff | b.Key&0xff\n", "	if !MADE { w.key = w.key&^0xff | b.Key&0xff }\n"),
		},
	})
}
