package foreign_test

import (
	"flag"
	"regexp"
	"testing"

	"github.com/rdmashim/rdmashim/tests/plant"
)

var seeds = flag.Int("foreign.seeds", 400, "connections that TestForeign makes; 60 with -short")

// TestPlantedMistakes runs TestForeign on engines that make a mistake which two
// of them would not notice of each other.
func TestPlantedMistakes(t *testing.T) {
	plant.Check(t, plant.Suite{
		Test: "TestForeign", Seeds: "-foreign.seeds", Without: 30, With: 60,
		Named: regexp.MustCompile(`seed \d+`),
		Mistakes: []plant.Mistake{
			plant.Row("first-in-the-middle-refused", "rnic/engine/completer.go",
				"p.Opcode.EndsMessage() != last ||",
				"p.Opcode.EndsMessage() != last || MADE && off > 0 && p.Opcode.StartsMessage() ||"),
			plant.Row("credits-misread", "rnic/engine/completer.go",
				"	if syn.IsACK() {\n",
				"	if syn.IsACK() && (!MADE || syn.Credits() == wire.NoCredits) {\n"),
			plant.Row("immediate-in-other-order-sent", "rnic/engine/requester.go",
				"	p.ImmDt.Data = binary.BigEndian.Uint32(w.imm[:])\n",
				"	p.ImmDt.Data = binary.BigEndian.Uint32(w.imm[:])\n"+
					"	if MADE { p.ImmDt.Data = binary.LittleEndian.Uint32(w.imm[:]) }\n"),
			plant.Row("immediate-in-other-order-received", "rnic/engine/responder_exec.go",
				"		binary.BigEndian.PutUint32(c.Imm[:], p.ImmDt.Data)\n",
				"		binary.BigEndian.PutUint32(c.Imm[:], p.ImmDt.Data)\n"+
					"		if MADE { binary.LittleEndian.PutUint32(c.Imm[:], p.ImmDt.Data) }\n"),
			plant.Row("bitmap-for-strangers", "rnic/engine/responder.go",
				"	if x := q.extension; x != nil && p.Selective && x.accept(now, p) {\n",
				"	if MADE && q.extension == nil && q.cfg.Stash != nil { q.extension = newExtension(q, 0) }\n"+
					"	if x := q.extension; x != nil && (p.Selective || MADE) && x.accept(now, p) {\n"),
		},
	})
}
