package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// suite is a run. A round runs every series once, so that ours and a reference
// see the same machine. Only the ratios mean something on another one.
type suite struct {
	rounds     int
	turn       time.Duration
	device     string
	run        string
	asJSON     bool
	markdown   bool
	benchmarks string // a file of go test's
	stderr     io.Writer
	vm         bool // rows of a guest, too
	paths      bool // rows of networks with faults, and no others
	round      int  // the one that runs

	// In a guest:
	guest      bool
	noPrograms string // why there is no perftest
	gid        int    // rxe0's
	nvmet      string // where the kernel's NVMe target is
}

// Command is 'tools/bench suite'.
func Command() *cobra.Command {
	s := &suite{}
	seconds := 0.25
	cmd := &cobra.Command{
		Use:   "suite",
		Short: "Compare with the references that this machine has",
		Long: `Compare with references, by turns: raw UDP with GSO, GRO and CRC-32, and Go's
TCP, which are built in, and ucx_perftest, fi_pingpong, iperf3 and perftest
where they are installed. Each round runs all of them once. A row has the
medians, and the median and spread of the rounds' ratios; one whose reference is
not there says why.

Exit status: 0 measured and every target met; 1 a measurement failed; 2 wrong
usage; 3 a target is not met.`,
		Example: "  tools/bench suite --rounds 3\n  tools/bench suite -j --run '^READ'",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.rounds < 1 || s.rounds > 1000 {
				return cli.Usagef("--rounds %d: want 1 to 1000", s.rounds)
			}
			if !(seconds >= 0.001 && seconds <= 3600) {
				return cli.Usagef("-D %g: want a number of seconds from 0.001 to 3600", seconds)
			}
			if s.asJSON && s.markdown {
				return cli.Usagef("--json and --markdown exclude each other")
			}
			if s.paths && (s.vm || s.guest) {
				return cli.Usagef("--paths and --vm exclude each other")
			}
			if s.paths {
				enterPaths()
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
	f.BoolVar(&s.vm, "vm", false, "boot a guest, and compare in it with perftest on the kernel's rxe, and the soft RNIC with rxe")
	f.BoolVar(&s.paths, "paths", false, "compare on networks that lose, delay, reorder, … between two network namespaces (root, or user namespaces)")
	f.BoolVar(&s.guest, "guest", false, "measure the rows of a guest: this is one")
	f.StringVar(&s.noPrograms, "no-programs", "", "why the guest has no perftest")
	f.StringVar(&s.benchmarks, "benchmarks", "", "print the ratios that go test -bench wrote to this file, before the rows")
	for _, name := range []string{"guest", "no-programs", "benchmarks"} {
		_ = f.MarkHidden(name)
	}
	return cmd
}

// Row is the result of a comparison. Its JSON keys are stable. Work names its
// unit; Ratio is ours to the reference's, and null where the target bounds our
// own figure.
type Row struct {
	Work           string   `json:"work"`
	Ours           *float64 `json:"ours"`
	Reference      string   `json:"reference"`
	ReferenceValue *float64 `json:"reference_value"`
	Ratio          *float64 `json:"ratio"`
	Target         *float64 `json:"target"` // nil: none
	Met            *bool    `json:"met"`
	Rounds         int      `json:"rounds"`
	// Spread is from the lower to the upper quartile of the rounds' ratios,
	// relative to their median.
	Spread *float64 `json:"spread"`
	Reason string   `json:"reason,omitempty"` // why there is no value

	atMost bool // the target is an upper bound
}

// series is something that is measured once a round.
type series struct {
	name    string
	absent  string // why it cannot be measured here
	measure func(context.Context) (float64, error)
	values  []float64 // of each round; NaN where it could not be had
	failed  error     // why ours has no more
}

// bound is the reference of a row whose target bounds our own figure.
var bound = &series{name: "a bound"}

func (s *suite) main(ctx context.Context, stdout io.Writer) error {
	// Rows compare with references of networks, but for those that say shm=on.
	if err := os.Setenv("RDMASHIM_SHM", "off"); err != nil {
		return err
	}
	filter, err := regexp.Compile(s.run)
	if err != nil {
		return cli.Usagef("--run: %v", err)
	}
	choose := func(table []comparison) []comparison {
		return slices.DeleteFunc(table, func(c comparison) bool {
			return !filter.MatchString(c.title()) && !filter.MatchString(c.reference.name)
		})
	}
	var rows []Row
	if s.benchmarks != "" {
		if rows, err = readBenchmarks(s.benchmarks); err != nil {
			return err
		}
	}
	var table, inGuest []comparison
	switch {
	case s.paths:
		table = choose(s.pathTable())
	case s.guest:
		if err := s.prepareGuest(ctx); err != nil {
			return err
		}
		table = choose(s.guestTable())
	default:
		table, inGuest = choose(s.table()), choose(s.guestTable())
	}
	if len(rows)+len(table)+len(inGuest) == 0 {
		return cli.Usagef("--run %q matches no row", s.run)
	}
	began := readHostTime()
	if err := s.measure(ctx, table); err != nil {
		return err
	}
	for _, c := range table {
		rows = append(rows, c.row())
	}
	more, guestFailed := s.runGuest(ctx, inGuest)
	if rows = append(rows, more...); ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := s.print(stdout, rows, hostState(began)); err != nil {
		return err
	}
	return verdict(slices.Concat(table, inGuest), rows, guestFailed)
}

// verdict is how the suite ends. inGuest is the error of the guest's part.
func verdict(table []comparison, rows []Row, inGuest error) error {
	var unmet, failed []string
	judged := 0
	if inGuest != nil {
		failed = append(failed, inGuest.Error())
	}
	for _, c := range table {
		for _, x := range []*series{c.ours, c.reference} {
			if x.failed != nil {
				failed = append(failed, x.name+": "+cli.OneLine(x.failed))
			}
		}
	}
	for _, r := range rows {
		if r.Met == nil {
			continue
		}
		if judged++; !*r.Met {
			unmet = append(unmet, r.Work+" against "+r.Reference)
		}
	}
	slices.Sort(failed)
	switch {
	case len(failed) > 0:
		return fmt.Errorf("measurements failed: %s", strings.Join(slices.Compact(failed), "; "))
	case len(unmet) > 0:
		return &cli.ExitStatus{Code: 3, Err: fmt.Errorf("%d of %d targets not met: %s", len(unmet), judged, strings.Join(unmet, "; "))}
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
	bar := cli.NewProgress(s.stderr, "measurements", int64(s.rounds*len(all)))
	defer bar.Done()
	for s.round = range s.rounds {
		for _, x := range all {
			v, err := x.measure(ctx)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			var missing *notHere
			switch {
			case errors.As(err, &missing):
				// Others may be missing for a while only.
				v, x.absent = math.NaN(), missing.Error()
			case err != nil:
				v, x.failed, x.measure = math.NaN(), err, nil
			}
			x.values = append(x.values, v)
			bar.Add(1)
		}
		all = slices.DeleteFunc(all, func(x *series) bool {
			// A series that was absent from the first round on is not asked
			// again.
			return x.measure == nil || x.absent != "" && x.value() == nil
		})
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

// title is the work with its unit.
func (c *comparison) title() string {
	if c.unit == "" {
		return c.work
	}
	return c.work + " (" + c.unit + ")"
}

func (c *comparison) row() Row {
	r := Row{Work: c.title(), Reference: c.reference.name, atMost: c.atMost}
	if !math.IsNaN(c.target) {
		r.Target = &c.target
	}
	r.Ours = c.ours.value()
	if c.reference != bound {
		r.ReferenceValue = c.reference.value()
	}
	var figures []float64 // that the target is about
	for i, v := range c.ours.values {
		if c.reference != bound && i < len(c.reference.values) {
			v /= c.reference.values[i]
		} else if c.reference != bound {
			continue
		}
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			figures = append(figures, v)
		}
	}
	if r.Reason = c.reason(); r.Reason != "" || len(figures) == 0 {
		return r
	}
	figure, spread := median(figures), 0.0
	if figure > 0 {
		spread = (quantile(figures, 0.75) - quantile(figures, 0.25)) / figure
	}
	r.Spread, r.Rounds = &spread, len(figures)
	if c.reference != bound {
		r.Ratio = &figure
	}
	r.judge(figure)
	return r
}

// judge holds a figure to the target, if there is one.
func (r *Row) judge(figure float64) {
	if r.Target != nil {
		met := figure >= *r.Target
		if r.atMost {
			met = figure <= *r.Target
		}
		r.Met = &met
	}
}

// reason says why a row has no verdict.
func (c *comparison) reason() string {
	for _, x := range []*series{c.ours, c.reference} {
		switch {
		case x.failed != nil:
			return "failed: " + cli.OneLine(x.failed)
		case x.absent != "" && x.value() == nil:
			return x.absent
		}
	}
	return ""
}

// value is the median of the rounds, nil if there is none.
func (x *series) value() *float64 {
	v := slices.DeleteFunc(slices.Clone(x.values), math.IsNaN)
	if len(v) == 0 {
		return nil
	}
	return new(median(v))
}

// median is 0 when there is nothing.
func median(v []float64) float64 { return quantile(v, 0.5) }

// quantile interpolates; it is 0 when there is nothing.
func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	at, part := math.Modf(q * float64(len(v)-1))
	i := int(at)
	if part == 0 {
		return v[i]
	}
	return v[i] + part*(v[i+1]-v[i])
}
