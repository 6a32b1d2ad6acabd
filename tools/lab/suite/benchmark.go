package suite

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// processors is the suffix that go test puts behind a benchmark's name.
var processors = regexp.MustCompile(`-\d+$`)

// readBenchmarks makes rows of what go test -bench wrote to a file: of
// benchmarks that compare this project with a reference. Such a line has, after
// the name and the rounds, figures with their units: ours-UNIT, ref-UNIT,
// ratio, and either target (at least, 0 is none) or limit (at most). A line
// before it, "reference: NAME", names the reference; without one it is raw UDP
// in the same process.
func readBenchmarks(file string) (rows []Row, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if rows, err = parseBenchmarks(string(text)); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return rows, nil
}

// parseBenchmarks makes the rows of readBenchmarks.
func parseBenchmarks(text string) (rows []Row, err error) {
	const inOne = " in one process"
	reference, where := "raw UDP"+inOne, inOne
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(line, "reference: "); ok {
			reference, where = strings.TrimSpace(name), ""
		}
		f := strings.Fields(line)
		if len(f) < 2 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		r := Row{Reference: reference}
		r.Rounds, _ = strconv.Atoi(f[1])
		name := processors.ReplaceAllString(strings.TrimPrefix(f[0], "Benchmark"), "")
		for i := 2; i+1 < len(f); i += 2 {
			v, err := strconv.ParseFloat(f[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%q is not a figure of %s", f[i], f[0])
			}
			switch kind, unit, _ := strings.Cut(f[i+1], "-"); {
			case kind == "ours":
				r.Work, r.Ours = fmt.Sprintf("%s%s (%s)", name, where, unit), &v
			case kind == "ref":
				r.ReferenceValue = &v
			case kind == "ratio":
				r.Ratio = &v
			case kind == "target" && v != 0:
				r.Target = &v
			case kind == "limit":
				r.Target, r.atMost = &v, true
			}
		}
		if r.Ratio == nil {
			continue
		}
		r.judge(*r.Ratio)
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		return nil, errors.New("no benchmark reported a ratio")
	}
	return rows, nil
}
