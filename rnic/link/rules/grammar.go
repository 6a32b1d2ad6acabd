package rules

import (
	"fmt"
	"strings"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// action is what a rule does to the packets that it hits.
type action uint8

const (
	none action = iota
	drop
	dup
	delay
	reorder
	corrupt
	mark
	refuse
	blackhole
)

// Word is a word of the grammar.
type Word struct {
	Name string
	form string // of its value; "" has none
	Text string // what it does

	act action
	set func(*rule, string) error
}

// String is the word as it is written.
func (w *Word) String() string { return strings.TrimSuffix(w.Name+"="+w.form, "=") }

// Grammar is all words: the actions, then the conditions.
var Grammar = []Word{
	{"drop", "", "the packet vanishes", drop, nil},
	{"dup", "", "it goes twice", dup, nil},
	{"delay", "2ms", "it goes so much later, and others overtake it", delay, func(r *rule, v string) error { return setTime(&r.delay, v) }},
	{"reorder", "3", "it goes behind the next 3, or 500 µs later", reorder, func(r *rule, v string) error {
		n, err := number(v, 1, maxBehind)
		r.behind = int(n)
		return err
	}},
	{"corrupt", "12", "a bit of byte 12, from the BTH on, is inverted after the ICRC was computed; alone: of any byte", corrupt, func(r *rule, v string) error {
		n, err := number(v, 0, 65535)
		r.offset = int(n)
		return err
	}},
	{"ecn", "", "it has met a queue: FECN, which soft devices take as the mark CE", mark, nil},
	{"nak", "RNR|PSN|ACCESS|REQ", "the answer becomes this refusal", refuse, setRefusal},
	{"blackhole", "", "from this packet on all of the connection vanish, or for so long as for= says", blackhole, nil},

	{"op", "ACK|WRITE_*", "packets of these kinds", none, setOp},
	{"qp", "17 or first", "packets to this queue pair, or to the first that the device ever sent to", none, setQP},
	{"psn", "+50..+150", "packet numbers, counted from the connection's first", none, func(r *rule, v string) error {
		r.hasPSN = true
		return setSpan(&r.psn, "+", v, 0, 1<<23-1)
	}},
	{"imm", "0x17", "packets with this immediate, as a big-endian number", none, func(r *rule, v string) error {
		n, err := number(v, 0, 1<<32-1)
		r.hasImm, r.imm = true, uint32(n)
		return err
	}},
	{"size", "0..64", "bytes of payload", none, func(r *rule, v string) error {
		r.hasSize = true
		return setSpan(&r.size, "", v, 0, 1<<20)
	}},
	{"nth", "3 or 3..5", "of those on a connection that are not repeated, the third, or the third to the fifth", none, func(r *rule, v string) error {
		r.hasNth = true
		return setSpan(&r.nth, "", v, 1, 1<<40)
	}},
	{"every", "10", "each tenth of those", none, func(r *rule, v string) error {
		n, err := number(v, 1, 1<<40)
		r.every = n
		return err
	}},
	{"once", "", "the first of those, and no other of the connection", none, func(r *rule, _ string) error { r.once = true; return nil }},
	{"after", "20ms", "not before so long after the connection's first packet", none, func(r *rule, v string) error { return setTime(&r.after, v) }},
	{"for", "100ms", "no longer than so long after that", none, func(r *rule, v string) error { return setTime(&r.during, v) }},
}

// setQP reads a queue pair's number.
func setQP(r *rule, text string) error {
	if r.first = text == "first"; r.first {
		return nil
	}
	n, err := number(text, 1, 1<<24-1)
	r.qpn = wire.QPN(n)
	return err
}

// rnrTimer is the timer of refusals for want of a receive: 0.64 ms.
const rnrTimer wire.RNRTimer = 12

// refusals are the syndromes of nak=.
var refusals = map[string]wire.Syndrome{
	"RNR":    wire.SyndromeRNR(rnrTimer),
	"PSN":    wire.SyndromeNAK(wire.NAKPSNSequence),
	"ACCESS": wire.SyndromeNAK(wire.NAKRemoteAccess),
	"REQ":    wire.SyndromeNAK(wire.NAKInvalidRequest),
}

func setRefusal(r *rule, text string) error {
	syndrome, ok := refusals[text]
	if !ok {
		return fmt.Errorf("no such refusal")
	}
	r.syndrome = syndrome
	return nil
}

// find returns the word of a name, nil if there is none.
func find(name string) *Word {
	for i := range Grammar {
		if Grammar[i].Name == name {
			return &Grammar[i]
		}
	}
	return nil
}

func known() string { return list(func(*Word) bool { return true }) }

func actions() string { return list(func(w *Word) bool { return w.act != none }) }

func list(of func(*Word) bool) string {
	var words []string
	for i := range Grammar {
		if w := &Grammar[i]; of(w) {
			words = append(words, w.String())
		}
	}
	return strings.Join(words, ", ")
}
