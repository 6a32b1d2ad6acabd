package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// suite compares this project with references, by turns: a round runs every
// series once, so that ours and a reference see the same machine. Only the
// ratios mean something on another one.
type suite struct {
	rounds   int
	turn     time.Duration
	device   string
	run      string
	asJSON   bool
	markdown bool
	plot     string
	stderr   io.Writer
}

func newPerfSuite() *cobra.Command {
	s := &suite{}
	seconds := 0.25
	cmd := &cobra.Command{
		Use:   "suite",
		Short: "Compare with the references that this machine has",
		Long: `Compare with references, by turns: raw UDP with GSO, GRO and CRC-32, and Go's TCP,
which are built in, and ucx_perftest, fi_pingpong and iperf3 where they are installed.
Each round runs all of them once. A row has the medians, and the median and spread of
the rounds' ratios; one whose reference is not there says why.

Exit status: 0 measured and every target met; 1 a measurement failed; 2 wrong usage;
3 a target is not met.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.rounds < 1 || s.rounds > 1000 {
				return usagef("--rounds %d: want 1 to 1000", s.rounds)
			}
			if !(seconds >= 0.001 && seconds <= 3600) {
				return usagef("-D %g: want a number of seconds from 0.001 to 3600", seconds)
			}
			if s.asJSON && s.markdown {
				return usagef("--json and --markdown exclude each other")
			}
			s.turn = time.Duration(seconds * float64(time.Second))
			s.stderr = cmd.ErrOrStderr()
			return s.main(cmd.Context(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.IntVar(&s.rounds, "rounds", 5, "rounds")
	f.Float64VarP(&seconds, "duration", "D", seconds, "seconds that a measurement lasts, about")
	f.StringVarP(&s.device, "device", "d", "", "device of our side (default: $RDMASHIM_DEVICE, else soft)")
	f.StringVar(&s.run, "run", "", "only rows whose work or reference matches this regular expression")
	f.BoolVarP(&s.asJSON, "json", "j", false, "print JSON, a row a line")
	f.BoolVar(&s.markdown, "markdown", false, "print a table in Markdown")
	f.StringVar(&s.plot, "plot", "", "measure over sizes and loss too, and draw it as SVG to this file")
	return cmd
}

// suiteRow is what a comparison yields. Its JSON keys are stable; values are of
// Unit, and Ratio is ours to the reference's.
type suiteRow struct {
	Work           string   `json:"work"`
	Unit           string   `json:"unit"`
	Ours           *float64 `json:"ours"`
	Reference      string   `json:"reference"`
	ReferenceValue *float64 `json:"reference_value"`
	Ratio          *float64 `json:"ratio"`
	Target         *float64 `json:"target"` // nil: none
	Bound          string   `json:"bound,omitempty"`
	Met            *bool    `json:"met"`
	Rounds         int      `json:"rounds"`
	// Spread is the range of the rounds' ratios, relative to their median.
	Spread *float64 `json:"spread"`
	Reason string   `json:"reason,omitempty"` // why there is no value
}

// series is something that is measured once a round.
type series struct {
	name    string
	absent  string // why it cannot be measured here
	measure func(context.Context) (float64, error)
	values  []float64
}

func (s *suite) main(ctx context.Context, stdout io.Writer) error {
	filter, err := regexp.Compile(s.run)
	if err != nil {
		return usagef("--run: %v", err)
	}
	table := slices.DeleteFunc(s.table(), func(c comparison) bool {
		return !filter.MatchString(c.work) && !filter.MatchString(c.reference.name)
	})
	if len(table) == 0 {
		return usagef("--run %q matches no row", s.run)
	}
	if err := s.measure(ctx, table); err != nil {
		return err
	}
	var rows []suiteRow
	for _, c := range table {
		rows = append(rows, c.row())
	}
	switch {
	case s.asJSON:
		err = suiteJSON(stdout, rows)
	case s.markdown:
		err = suiteMarkdown(stdout, rows)
	default:
		err = suiteText(stdout, rows)
	}
	if err == nil && s.plot != "" {
		err = s.draw(ctx)
	}
	if err != nil {
		return err
	}
	var unmet []string
	for _, r := range rows {
		if r.Met != nil && !*r.Met {
			unmet = append(unmet, r.Work+" against "+r.Reference)
		}
	}
	if len(unmet) > 0 {
		return &exitStatus{code: 3, err: fmt.Errorf("%d of %d targets not met: %s", len(unmet), len(rows), strings.Join(unmet, "; "))}
	}
	return nil
}

// measure runs the rounds, every other one backwards.
func (s *suite) measure(ctx context.Context, table []comparison) error {
	var all []*series
	for _, c := range table {
		for _, x := range []*series{c.ours, c.reference} {
			if x.measure != nil && !slices.Contains(all, x) {
				all = append(all, x)
			}
		}
	}
	bar := newProgress(s.stderr, "measurements", int64(s.rounds*len(all)))
	defer bar.done()
	for range s.rounds {
		for _, x := range all {
			v, err := x.measure(ctx)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			var missing *notHere
			switch {
			case errors.As(err, &missing):
				x.absent, x.measure = missing.Error(), nil
			case err != nil:
				return fmt.Errorf("%s: %w", x.name, err)
			default:
				x.values = append(x.values, v)
			}
			bar.add(1)
		}
		all = slices.DeleteFunc(all, func(x *series) bool { return x.measure == nil })
		slices.Reverse(all)
	}
	return nil
}

// notHere says that something cannot be measured on this machine.
type notHere struct{ reason string }

func (e *notHere) Error() string { return e.reason }

// comparison is a row of the table before it is measured.
type comparison struct {
	work, unit      string
	ours, reference *series
	target          float64 // NaN: none
	atMost          bool
}

func (c *comparison) row() suiteRow {
	r := suiteRow{Work: c.work, Unit: c.unit, Reference: c.reference.name}
	if !math.IsNaN(c.target) {
		r.Target, r.Bound = &c.target, "at least"
		if c.atMost {
			r.Bound = "at most"
		}
	}
	if len(c.ours.values) > 0 {
		v := median(c.ours.values)
		r.Ours = &v
	}
	for _, x := range []*series{c.ours, c.reference} {
		if x.absent != "" {
			r.Reason = x.absent
			return r
		}
	}
	var ratios []float64
	if c.reference.measure == nil { // a bound, not a reference
		ratios = c.ours.values
	} else {
		v := median(c.reference.values)
		r.ReferenceValue = &v
		for i, o := range c.ours.values {
			ratios = append(ratios, o/c.reference.values[i])
		}
	}
	ratio := median(ratios)
	spread := 0.0
	if ratio > 0 {
		spread = (slices.Max(ratios) - slices.Min(ratios)) / ratio
	}
	r.Ratio, r.Spread, r.Rounds = &ratio, &spread, len(ratios)
	if r.Target != nil {
		met := ratio >= c.target
		if c.atMost {
			met = ratio <= c.target
		}
		r.Met = &met
	}
	return r
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return (v[len(v)/2] + v[(len(v)-1)/2]) / 2
}
