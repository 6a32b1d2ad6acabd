//go:build linux || darwin

package conform

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// records are the observations made on Linux 6.1 rdma_rxe, by test. In their
// files (testdata/GROUP.txt) each stands under a line "== NAME"; lines that
// begin with # are comments.
type records map[string][]string

const recordDir = "testdata"

// readRecords reads all files of a directory. That there is none is an empty
// set.
func readRecords(dir string) (records, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.txt"))
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
	var order []string
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
			order = append(order, t.group())
		}
		fmt.Fprintf(b, "\n== %s\n", t.name)
		for _, line := range lines {
			fmt.Fprintln(b, line)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, group := range order {
		if err := os.WriteFile(filepath.Join(dir, group+".txt"), []byte(files[group].String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// diff shows where an observation departs from what was expected, or "" if it
// does not.
func diff(want, got []string) string {
	var b strings.Builder
	for i := range max(len(want), len(got)) {
		w, g := lineAt(want, i), lineAt(got, i)
		switch {
		case w == g:
			fmt.Fprintf(&b, "  %s\n", w)
			continue
		case i < len(want) && i < len(got):
			fmt.Fprintf(&b, "- %s\n+ %s\n", w, g)
		case i < len(want):
			fmt.Fprintf(&b, "- %s\n", w)
		default:
			fmt.Fprintf(&b, "+ %s\n", g)
		}
	}
	if !strings.Contains("\n"+b.String(), "\n-") && !strings.Contains("\n"+b.String(), "\n+") {
		return ""
	}
	return b.String()
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}
