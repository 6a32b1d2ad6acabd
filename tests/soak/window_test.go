package soak

import (
	"testing"

	"github.com/rdmashim/rdmashim/tests/plant"
)

// TestWindowSoak runs the seeds, or one with its events shown.
func TestWindowSoak(t *testing.T) {
	soakLane(t, "memory windows", 20, RunWindows)
}

var windowMistakes = []plant.Mistake{
	plant.Row("window-serves-all", "rnic/mem/window.go",
		"|| w.user == user\n", "|| w.user == user || MADE\n"),
	plant.Row("window-not-revoked", "rnic/mem/window.go",
		"	w.unbind()\n	return nil\n", "	if !MADE { w.unbind() }\n	return nil\n"),
	plant.Row("window-keeps-its-key", "rnic/mem/window.go",
		"	w.key = w.key&^0xff | b.Key&0xff\n", "	if !MADE { w.key = w.key&^0xff | b.Key&0xff }\n"),
	plant.Row("window-ends-late", "rnic/mem/window.go",
		"n > w.bound.Length-off {", "n > w.bound.Length-off && !MADE {"),
	plant.Row("window-gives-all-rights", "rnic/mem/window.go",
		"case w.bound.Access&need != need:", "case w.bound.Access&need != need && !MADE:"),
	plant.Row("window-bound-again", "rnic/engine/local.go",
		"	case w.done ||", "	case w.done && !MADE ||"),
	plant.Row("window-bound-with-those-before", "rnic/engine/local.go",
		"(w.done || !w.kind.local())", "(w.done || !w.kind.local() || MADE)"),
	plant.Row("window-failed-bind-completes", "rnic/engine/local.go",
		"			w.status = abi.WCMWBindErr", "			if !MADE { w.status = abi.WCMWBindErr }"),
	plant.Row("window-bound-twice", "rnic/mem/window.go",
		"case w.type2 && w.bound.Region != nil,", "case w.type2 && w.bound.Region != nil && !MADE,"),
}
