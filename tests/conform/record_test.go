//go:build linux || darwin

package conform

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// records are the observations made on Linux 6.1 rdma_rxe, by test. In their
// files (testdata/GROUP.txt) each stands under a line "== NAME"; lines that
// begin with # are comments.
type records map[string][]string

func readRecords() (records, error) {
	names, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		return nil, err
	}
	all := records{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if err := all.parse(name, string(text)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (all records) parse(file, text string) error {
	test := ""
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		name, heading := strings.CutPrefix(line, "== ")
		switch {
		case heading && all[name] != nil:
			return fmt.Errorf("%s:%d: %s is there twice", file, i+1, name)
		case heading:
			test = name
			all[test] = []string{}
		case strings.HasPrefix(line, "#"), line == "":
		case test == "":
			return fmt.Errorf("%s:%d: a line before the first test", file, i+1)
		default:
			all[test] = append(all[test], line)
		}
	}
	return nil
}

// write writes the observations of tests, in the order of the suite, a file per
// group. Read its output against the specification before keeping it: it shows
// a kernel's behaviour, right or wrong.
func (all records) write(dir, header string, tests []test) error {
	files := map[string]*strings.Builder{}
	for _, t := range tests {
		lines, ok := all[t.name]
		if !ok {
			continue
		}
		b := files[t.group()]
		if b == nil {
			b = &strings.Builder{}
			fmt.Fprintf(b, "# %s\n", header)
			files[t.group()] = b
		}
		fmt.Fprintf(b, "\n== %s\n", t.name)
		for _, line := range lines {
			fmt.Fprintln(b, line)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for group, b := range files {
		if err := os.WriteFile(filepath.Join(dir, group+".txt"), []byte(b.String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// diff shows where an observation departs from what was expected, or "" if it
// does not.
func diff(want, got []string) string {
	if slices.Equal(want, got) {
		return ""
	}
	var b strings.Builder
	for i := range max(len(want), len(got)) {
		if i < len(want) && i < len(got) && want[i] == got[i] {
			fmt.Fprintf(&b, "  %s\n", want[i])
			continue
		}
		if i < len(want) {
			fmt.Fprintf(&b, "- %s\n", want[i])
		}
		if i < len(got) {
			fmt.Fprintf(&b, "+ %s\n", got[i])
		}
	}
	return b.String()
}
