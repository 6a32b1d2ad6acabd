package rules

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/ruletext"
)

// TestParse: what may be written, and what an error says of the rest.
func TestParse(t *testing.T) {
	for _, text := range []string{
		"drop", "dup op=ACK", "drop,op=ACK|NAK,nth=3", " delay=2ms  op=WRITE_* every=10 ", "corrupt", "corrupt=0 once",
		"reorder=3 psn=+50..+150", "psn=+5.. drop", "drop psn=..+5", "ecn size=64", "drop size=1025..", "nak=RNR", "nak=PSN op=READ_RESPONSE_*",
		"blackhole after=20ms for=100ms", "drop op=ATOMIC", "drop op=CM_*", "drop op=CNP qp=first", "drop qp=0x11 imm=0x17", "drop nth=1..3",
		"# a remark\n\n drop op=CM_REQ\ndup; ecn",
	} {
		_, err := Parse(text)
		require.NoError(t, err, text)
	}
	for text, want := range map[string]string{
		"op=ACK":               "no action; there are drop, dup, delay=2ms",
		"drop dup":             `"dup": a rule has one action`,
		"drop drop":            `"drop" is given twice`,
		"dorp":                 `"dorp" is no word of a rule; there are drop, dup`,
		"drop=1":               `"drop=1": write drop`,
		"delay":                `"delay": write delay=2ms`,
		"drop nth":             `"nth": write nth=3 or 3..5`,
		"drop nth=0":           "not a number of 1 …",
		"delay=2":              "not a duration",
		"delay=2h":             "1m0s at most",
		"drop op=AKC":          `no packet is a "AKC"; there are SEND_FIRST`,
		"drop op=":             `no packet is a ""`,
		"drop qp=0":            "not a number of 1 … 16777215; write qp=17 or first",
		"drop psn=50":          `no "+" before "50"; write psn=+50..+150`,
		"drop psn=+9..+5":      "it ends before it begins",
		"drop imm=4294967296":  "not a number of 0 … 4294967295",
		"reorder=0":            "not a number of 1 … 1024",
		"nak=RNR op=SEND_ONLY": "nak= is for answers: op=ACK, READ_RESPONSE_* or ATOMIC_ACKNOWLEDGE, not SEND_ONLY",
		"nak=no":               "no such refusal; write nak=RNR|PSN|ACCESS|REQ",
		"drop\ndrop every=0":   `rule 2, "drop every=0"`,
		strings.Repeat("drop\n", ruletext.MaxRules+1): fmt.Sprintf("more than %d rules", ruletext.MaxRules),
		strings.Repeat("#", ruletext.MaxText+1):       "65537 bytes of rules",
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, want, "%.50q", text)
	}
	require.Equal(t, []string{"drop op=ACK", "dup"}, must(t, "drop op=ACK; dup").Texts())
}

func must(t testing.TB, text string) *Set {
	t.Helper()
	r, err := Parse(text)
	require.NoError(t, err)
	return r
}

// TestGrammar: each word is understood as its own form is written.
func TestGrammar(t *testing.T) {
	for i := range Grammar {
		w := &Grammar[i]
		for form := range strings.SplitSeq(w.form, " or ") {
			text := w.Name
			if form != "" {
				form, _, _ = strings.Cut(form, "|")
				text += "=" + form
			}
			if w.act == none {
				text = "drop " + text
			}
			must(t, text)
		}
	}
}

// FuzzParse: no text makes more than it may.
func FuzzParse(f *testing.F) {
	for i := range Grammar {
		f.Add("drop " + Grammar[i].String())
	}
	f.Add("nak=RNR op=ACK;blackhole psn=+1.. for=1ms\n#")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse(text)
		if err == nil {
			require.LessOrEqual(t, len(r.rules), ruletext.MaxRules)
			again, err := Parse(strings.Join(r.Texts(), "\n"))
			require.NoError(t, err)
			require.Equal(t, len(r.rules), len(again.rules))
		}
	})
}

// TestDocs: docs/faults.md has the words as they are.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../../docs/faults.md")
	require.NoError(t, err)
	for i := range Grammar {
		w := &Grammar[i]
		require.Contains(t, string(page), fmt.Sprintf("| `%s` | %s |\n", strings.ReplaceAll(w.String(), "|", "\\|"), w.Text))
	}
}
