package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// suiteJSON prints an array, a row a line.
func suiteJSON(w io.Writer, rows []suiteRow) error {
	var b strings.Builder
	b.WriteString("[\n")
	for i, r := range rows {
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		b.Write(text)
		if i < len(rows)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString("]\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// cells is a row for people.
func (r *suiteRow) cells() []string {
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
	if r.Ratio != nil {
		ratio = fmt.Sprintf("%.2f ±%.0f%%", *r.Ratio, *r.Spread*50)
	}
	if r.Reason != "" {
		met = r.Reason
	}
	return []string{r.Work, number(r.Ours), r.Reference, number(r.ReferenceValue), ratio, target, met}
}

var suiteHead = []string{"work", "ours", "reference", "its value", "ratio", "target", "met"}

func suiteText(w io.Writer, rows []suiteRow) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(suiteHead, "\t"))
	for i := range rows {
		fmt.Fprintln(t, strings.Join(rows[i].cells(), "\t"))
	}
	return t.Flush()
}

func suiteMarkdown(w io.Writer, rows []suiteRow) error {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(suiteHead)
	line(strings.Split(strings.Repeat("--- ", len(suiteHead)-1)+"---", " "))
	for i := range rows {
		line(rows[i].cells())
	}
	_, err := io.WriteString(w, b.String())
	return err
}
