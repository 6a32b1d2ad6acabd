package suite

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// print prints the rows in the form that was asked for, and, for people, what
// the machine was like.
func (s *suite) print(w io.Writer, rows []Row, host string) error {
	switch {
	case s.asJSON:
		return printJSON(w, rows)
	case s.markdown:
		return printMarkdown(w, rows, host)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(head, "\t"))
	for i := range rows {
		fmt.Fprintln(t, strings.Join(rows[i].cells(), "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "host:", host)
	return err
}

// printJSON prints an array, a row a line.
func printJSON(w io.Writer, rows []Row) error {
	lines := make([]string, len(rows))
	for i, r := range rows {
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		lines[i] = string(text)
	}
	_, err := fmt.Fprintf(w, "[\n%s\n]\n", strings.Join(lines, ",\n"))
	return err
}

// cells is a row for people.
func (r *Row) cells() []string {
	number := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprintf("%.3g", *v)
	}
	target, met, ratio := "-", "-", "-"
	if r.Target != nil {
		target = map[bool]string{false: "≥ ", true: "≤ "}[r.atMost] + number(r.Target)
	}
	if r.Met != nil {
		met = map[bool]string{true: "yes", false: "NO"}[*r.Met]
	}
	switch {
	case r.Ratio == nil:
	case r.Spread == nil:
		ratio = fmt.Sprintf("%.2f", *r.Ratio)
	default:
		ratio = fmt.Sprintf("%.2f ±%.0f%%", *r.Ratio, *r.Spread*50)
	}
	if r.Reason != "" {
		met = r.Reason
	}
	return []string{r.Work, number(r.Ours), r.Reference, number(r.ReferenceValue), ratio, target, met}
}

var head = []string{"work", "ours", "reference", "its value", "ratio", "target", "met"}

func printMarkdown(w io.Writer, rows []Row, host string) error {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(head)
	line(strings.Split(strings.Repeat("--- ", len(head)-1)+"---", " "))
	for i := range rows {
		line(rows[i].cells())
	}
	fmt.Fprintf(&b, "\nHost: %s.\n", host)
	_, err := io.WriteString(w, b.String())
	return err
}
