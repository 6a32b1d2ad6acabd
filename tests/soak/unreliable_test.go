package soak

import (
	"testing"

	"github.com/rdmashim/rdmashim/tests/plant"
)

// TestUnreliableSoak runs the seeds, or one with its events shown.
func TestUnreliableSoak(t *testing.T) {
	soakLane(t, "unreliable connections", 34, RunUnreliable)
}

var unreliableMistakes = []plant.Mistake{
	plant.Row("unreliable-gap-overlooked", "rnic/engine/unreliable.go",
		"gap := s > r.next", "gap := s > r.next && !MADE"),
	plant.Row("unreliable-overtaken-packet-taken", "rnic/engine/unreliable.go",
		"	if s < r.next {", "	if s < r.next && !MADE {"),
	plant.Row("unreliable-rest-of-a-dropped-message-taken", "rnic/engine/unreliable.go",
		"		return starts\n", "		return starts || MADE\n"),
	plant.Row("unreliable-write-is-dropped-before-it-starts", "rnic/engine/unreliable.go",
		"	r.during = op.Operation()\n", "	r.during = op.Operation()\n	if MADE && op.IsWrite() && r.done > 1000 { r.during = wire.OpSend }\n"),
	plant.Row("unreliable-receive-of-a-dropped-message-lost", "rnic/engine/responder_check.go",
		"	if r.holds {", "	if r.holds && (!MADE || q.service != wire.ServiceUC) {"),
	plant.Row("unreliable-completed-before-its-end", "rnic/engine/unreliable.go",
		"	if last {\n		r.cur++", "	if last || MADE {\n		r.cur++"),
	plant.Row("unreliable-refusal-ends-the-queue-pair", "rnic/engine/unreliable.go",
		"	default:\n		q.counters.DropRequest++", "	default:\n		if MADE { q.enterError() }\n		q.counters.DropRequest++"),
	plant.Row("unreliable-immediate-lost", "rnic/engine/unreliable.go",
		"	case op.HasImm():", "	case op.HasImm() && !MADE:"),
	plant.Row("unreliable-half-a-message-survives-reset", "rnic/engine/modify.go",
		"q.rsp = responder{recv", "q.rsp = responder{holds: MADE && q.rsp.holds, recv"),
}
