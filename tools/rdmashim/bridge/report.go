package bridge

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// Report is what 'bridge --json' prints; the keys are stable.
type Report struct {
	Ways [2]Way `json:"ways"`
}

// Way is a direction of a Report.
type Way struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Frames  uint64 `json:"frames"`
	Bytes   uint64 `json:"bytes"`
	RoCE    uint64 `json:"roce_packets"`
	Dropped uint64 `json:"dropped"`
	Refused uint64 `json:"refused"`
	Overrun uint64 `json:"overrun"`
	Rules   []Rule `json:"rules"`
}

// Rule is a rule and what it has hit.
type Rule struct {
	Text string `json:"rule"`
	Hits uint64 `json:"hits"`
}

func (r *Report) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return cli.PrintLine(w, r)
	}
	a, b := &r.Ways[0], &r.Ways[1]
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\t%s to %s\t%s to %s\t\n", a.From, a.To, b.From, b.To)
	row := func(name string, a, b uint64, text string) { fmt.Fprintf(t, "%s\t%d\t%d\t%s\n", name, a, b, text) }
	row("frames", a.Frames, b.Frames, "that left")
	row("bytes", a.Bytes, b.Bytes, "of these")
	row("roce_packets", a.RoCE, b.RoCE, "that came")
	row("dropped", a.Dropped, b.Dropped, "by rules")
	row("refused", a.Refused, b.Refused, "by the interface that they should have left by")
	row("overrun", a.Overrun, b.Overrun, "lost before they were read")
	for i, rule := range a.Rules {
		row(fmt.Sprintf("fault_rule_%d", i+1), rule.Hits, b.Rules[i].Hits, rule.Text)
	}
	return t.Flush()
}

// idle adds to w a line for each rule that has hit nothing.
func (r *Report) idle(w io.Writer) {
	for i, rule := range r.Ways[0].Rules {
		if rule.Hits+r.Ways[1].Rules[i].Hits == 0 {
			fmt.Fprintf(w, "rdmashim: a rule of faults never hit a packet: %s\n", rule.Text)
		}
	}
}
