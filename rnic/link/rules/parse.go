package rules

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rdmashim/rdmashim/kshim/ruletext"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Bounds of what a stranger's rules may ask for.
const (
	maxTime   = time.Minute
	maxBehind = 1024
)

// anyByte is the offset of a rule that says none.
const anyByte = -1

// rule is a rule as it was read.
type rule struct {
	text string
	act  action

	delay    time.Duration
	offset   int
	behind   int
	syndrome wire.Syndrome

	kinds         []bool // nil: any
	first         bool
	qpn           wire.QPN // 0: any
	hasPSN        bool
	psn           span
	hasImm        bool
	imm           uint32
	hasSize       bool
	size          span
	hasNth        bool
	nth           span
	every         uint64
	once          bool
	after, during time.Duration
}

// span is a range of numbers, both ends included.
type span struct{ from, to int64 }

func (s span) has(n int64) bool { return s.from <= n && n <= s.to }

// Parse reads rules (kshim/ruletext). An error names the word and what may
// stand there.
func Parse(text string) (*Set, error) {
	r := &Set{}
	err := ruletext.Lines(text, func(line string) error {
		x, err := parseRule(line)
		r.rules = append(r.rules, x)
		return err
	})
	r.hits = make([]uint64, len(r.rules))
	return r, err
}

func parseRule(line string) (rule, error) {
	r := rule{text: line, offset: anyByte}
	err := ruletext.Words(line, func(word, key, value string, has bool) error {
		w := find(key)
		switch {
		case w == nil:
			return fmt.Errorf("%q is no word of a rule; there are %s", key, known())
		case w.act != none && r.act != none:
			return fmt.Errorf("%q: a rule has one action", key)
		case has != (w.form != "") && !(w.act == corrupt && !has):
			return fmt.Errorf("%q: write %s", word, w)
		}
		if w.act != none {
			r.act = w.act
		}
		if w.set != nil && has == (w.form != "") {
			if err := w.set(&r, value); err != nil {
				return fmt.Errorf("%q: %w; write %s", word, err, w)
			}
		}
		return nil
	})
	if err != nil {
		return r, err
	}
	if r.act == none {
		return r, fmt.Errorf("it has no action; there are %s", actions())
	}
	return r, r.complete()
}

// complete checks what several words make together.
func (r *rule) complete() error {
	r.once = r.once || r.act == blackhole
	if r.act != refuse {
		return nil
	}
	if r.kinds == nil {
		return setOp(r, "ACK")
	}
	for k, wanted := range r.kinds {
		if name := kindNames[k]; wanted && name != "ACK" && name != "NAK" && !strings.HasPrefix(name, "READ_RESPONSE") && !strings.HasPrefix(name, "ATOMIC_ACK") {
			return fmt.Errorf("nak= is for answers: op=ACK, READ_RESPONSE_* or ATOMIC_ACKNOWLEDGE, not %s", name)
		}
	}
	return nil
}

// setOp reads names of kinds between bars; one that ends in * is of all that
// begin so.
func setOp(r *rule, text string) error {
	r.kinds = make([]bool, len(kindNames))
	for name := range strings.SplitSeq(text, "|") {
		found := false
		prefix, any := strings.CutSuffix(name, "*")
		for k := 1; k < len(kindNames); k++ {
			if have := kindNames[k]; have == name || any && strings.HasPrefix(have, prefix) || name == "ATOMIC" && (have == "COMPARE_SWAP" || have == "FETCH_ADD") {
				r.kinds[k], found = true, true
			}
		}
		if !found {
			return fmt.Errorf("no packet is a %q; there are %s", name, strings.Join(kindNames[1:], ", "))
		}
	}
	return nil
}

// number reads a whole number from least to most, in decimal, or in
// hexadecimal digits after 0x.
func number(text string, least, most uint64) (uint64, error) {
	v, err := strconv.ParseUint(text, 0, 64)
	if err != nil || v < least || v > most {
		return 0, fmt.Errorf("not a number of %d … %d", least, most)
	}
	return v, nil
}

// setSpan reads A, A..B, A.. or ..B, each end from least to most, and behind
// the sign if there is one.
func setSpan(dst *span, sign, text string, least, most uint64) error {
	from, to, ranges := strings.Cut(text, "..")
	*dst = span{int64(least), int64(most)}
	end := func(to *int64, text string) error {
		digits, ok := strings.CutPrefix(text, sign)
		if !ok {
			return fmt.Errorf("no %q before %q", sign, text)
		}
		v, err := number(digits, least, most)
		*to = int64(v)
		return err
	}
	if from != "" || !ranges {
		if err := end(&dst.from, from); err != nil {
			return err
		}
	}
	switch {
	case !ranges:
		dst.to = dst.from
	case to != "":
		if err := end(&dst.to, to); err != nil {
			return err
		}
	}
	if dst.to < dst.from {
		return fmt.Errorf("it ends before it begins")
	}
	return nil
}

// setTime reads a duration.
func setTime(dst *time.Duration, text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 || d > maxTime {
		return fmt.Errorf("not a duration of more than 0, %v at most", maxTime)
	}
	*dst = d
	return nil
}
