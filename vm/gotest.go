package vm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rdmashim/rdmashim/vm/guest"
)

// TestConfig says which Go tests to run in a guest.
type TestConfig struct {
	Config             // Command is not used
	Packages []string  // as 'go test' takes them
	Flags    []string  // of the test binaries, as -test.run=X; -test.v is always given
	Tags     string    // build tags
	Race     bool      // with the race detector, which needs a C compiler
	Verbose  bool      // Output receives all output, else what failed
	Output   io.Writer // report in the manner of 'go test'; nil: dropped
}

// TestReport is what came of running tests.
type TestReport struct {
	Result                  *Result
	Passed, Failed, Skipped int // tests, subtests among them
	Packages                []PackageReport
}

// PackageReport is what came of one package's tests.
type PackageReport struct {
	Package string
	OK      bool
	NoTests bool
	Tests   []TestOutcome
	Took    time.Duration
}

// TestOutcome is how a test ended.
type TestOutcome struct {
	Name    string
	Outcome string // PASS, FAIL or SKIP
	Output  string // what it printed and logged
}

// ErrTestsFailed says that tests ran and some failed.
var ErrTestsFailed = errors.New("tests failed")

// Test builds the test binaries of packages, static unless for the race detector,
// boots one guest and runs them in it one after the other, each in its package's
// directory, where the package's testdata is.
func Test(ctx context.Context, c TestConfig) (*TestReport, error) {
	if c.Output == nil {
		c.Output = io.Discard
	}
	report := &TestReport{}
	tmp, err := os.MkdirTemp("", "rdmashim-test-")
	if err != nil {
		return report, err
	}
	defer os.RemoveAll(tmp)
	binaries, err := buildTests(ctx, c, tmp)
	if err != nil {
		return report, err
	}
	for _, b := range binaries {
		for _, a := range b.adds() {
			if !slices.Contains(c.Add, a) {
				c.Add = append(c.Add, a)
			}
		}
	}
	c.Nodes = 1
	s, err := Start(ctx, c.Config)
	if err != nil {
		report.Result = s.partResult()
		return report, err
	}
	var errs []error
	for _, b := range binaries {
		p, err := runTests(ctx, s, c, b)
		report.add(p)
		if err != nil {
			errs = append(errs, err)
			break
		}
	}
	if c.Out != "" && len(errs) == 0 {
		errs = append(errs, s.pullAll(ctx))
	}
	var cerr error
	report.Result, cerr = s.Close()
	for _, p := range report.Packages {
		if !p.OK {
			errs = append(errs, ErrTestsFailed)
			break
		}
	}
	return report, joinFlat(append(errs, cerr)...)
}

func (r *TestReport) add(p PackageReport) {
	r.Packages = append(r.Packages, p)
	for _, t := range p.Tests {
		switch t.Outcome {
		case "PASS":
			r.Passed++
		case "FAIL":
			r.Failed++
		case "SKIP":
			r.Skipped++
		}
	}
}

// testBinary is a package's tests.
type testBinary struct {
	pkg, dir string
	module   string // directory of its module, empty when there is none
	file     string // empty: the package has none
}

// guestFile is where the binary is in the guest.
func (b testBinary) guestFile() string { return path.Join("/test", b.pkg, path.Base(b.pkg)+".test") }

// adds is what the binary needs: itself, and all testdata of its module, since
// a package's tests may read another's.
func (b testBinary) adds() []Add {
	if b.file == "" {
		return nil
	}
	adds := []Add{{b.file, b.guestFile()}}
	for _, data := range testdataDirs(b.module, b.dir) {
		adds = append(adds, Add{data, filepath.ToSlash(data)})
	}
	return adds
}

func testdataDirs(module, dir string) []string {
	if module == "" {
		module = dir
	}
	var dirs []string
	filepath.WalkDir(module, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fs.SkipDir // what cannot be read is missed by the test, not by us
		case !d.IsDir():
			return nil
		case d.Name() == "testdata":
			dirs = append(dirs, p)
			return fs.SkipDir
		case p != module && (strings.HasPrefix(d.Name(), ".") || isFile(filepath.Join(p, "go.mod"))):
			return fs.SkipDir
		}
		return nil
	})
	return dirs
}

// moduleOf finds the module that a directory belongs to.
func moduleOf(dir string) string {
	for d := dir; ; d = filepath.Dir(d) {
		if isFile(filepath.Join(d, "go.mod")) {
			return d
		}
		if d == filepath.Dir(d) {
			return ""
		}
	}
}

// buildTests builds a test binary for each package that has tests.
func buildTests(ctx context.Context, c TestConfig, tmp string) ([]testBinary, error) {
	g, err := userGo(c.Source)
	if err != nil {
		return nil, err
	}
	if c.Race {
		g.env = append(g.env, "CGO_ENABLED=1")
	}
	list := []string{"list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles"}
	if c.Tags != "" {
		list = append(list, "-tags", c.Tags)
	}
	out, err := g.output(ctx, append(append(list, "--"), c.Packages...)...)
	if err != nil {
		return nil, err
	}
	var binaries []testBinary
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir           string
			TestGoFiles, XTestGoFiles []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		b := testBinary{pkg: p.ImportPath, dir: p.Dir, module: moduleOf(p.Dir)}
		if len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 {
			b.file = filepath.Join(tmp, fmt.Sprintf("%d.test", len(binaries)))
			build := []string{"test", "-c", "-trimpath", "-ldflags=-s -w", "-o", b.file}
			if c.Tags != "" {
				build = append(build, "-tags", c.Tags)
			}
			if c.Race {
				build = append(build, "-race")
			}
			if _, err := g.output(ctx, append(build, p.ImportPath)...); err != nil {
				return nil, fmt.Errorf("build the tests of %s: %w", p.ImportPath, err)
			}
		}
		binaries = append(binaries, b)
	}
	if len(binaries) == 0 {
		return nil, fmt.Errorf("no packages match %s", strings.Join(c.Packages, " "))
	}
	return binaries, nil
}

var (
	testLine  = regexp.MustCompile(`^\s*--- (PASS|FAIL|SKIP): (\S+) \(`)
	testStart = regexp.MustCompile(`^=== (RUN|CONT|NAME|PAUSE)\s+(\S+)$`)
)

// testParser reads what a test binary prints with -test.v.
type testParser struct {
	tests  []TestOutcome
	now    string // the test whose output the lines are
	output map[string]*strings.Builder
}

// maxTestOutput is kept of each test's output, in bytes.
const maxTestOutput = 64 << 10

func (p *testParser) line(line string) {
	if p.output == nil {
		p.output = map[string]*strings.Builder{}
	}
	if m := testStart.FindStringSubmatch(line); m != nil {
		p.now = m[2]
		return
	}
	if m := testLine.FindStringSubmatch(line); m != nil {
		t := TestOutcome{Name: m[2], Outcome: m[1]}
		if b := p.output[t.Name]; b != nil {
			t.Output = b.String()
		}
		p.tests = append(p.tests, t)
		return
	}
	b := p.output[p.now]
	if b == nil {
		b = &strings.Builder{}
		p.output[p.now] = b
	}
	if b.Len() < maxTestOutput {
		b.WriteString(line + "\n")
	}
}

// noise is what tells nothing when a test has failed.
var noise = regexp.MustCompile(`^\s*(=== (RUN|PAUSE|CONT)\b|--- (PASS|SKIP):)|^PASS$`)

// runTests runs one binary. An error means that no more can be run.
func runTests(ctx context.Context, s *Session, c TestConfig, b testBinary) (PackageReport, error) {
	p := PackageReport{Package: b.pkg, OK: true, NoTests: b.file == ""}
	if p.NoTests {
		fmt.Fprintf(c.Output, "?   \t%s\t[no test files]\n", b.pkg)
		return p, nil
	}
	var kept bytes.Buffer
	var parser testParser
	lines := &lineWriter{each: func(line string) {
		parser.line(line)
		switch {
		case c.Verbose:
			fmt.Fprintln(c.Output, line)
		case !noise.MatchString(line):
			fmt.Fprintln(&kept, line)
		}
	}}
	started := time.Now()
	err := s.Exec(ctx, 0, Command{
		Args:   append([]string{b.guestFile(), "-test.v"}, c.Flags...),
		Dir:    filepath.ToSlash(b.dir),
		Stdout: lines,
		Stderr: lines,
	})
	lines.flush()
	p.Took, p.Tests = time.Since(started), parser.tests
	if err == nil {
		fmt.Fprintf(c.Output, "ok  \t%s\t%.3fs\n", b.pkg, p.Took.Seconds())
		return p, nil
	}
	p.OK = false
	c.Output.Write(kept.Bytes())
	fmt.Fprintf(c.Output, "FAIL\t%s\t%.3fs\n", b.pkg, p.Took.Seconds())
	var exit *ExitError
	if errors.As(err, &exit) {
		return p, nil
	}
	return p, err
}

// lineWriter hands over whole lines.
type lineWriter struct {
	each func(string)
	part []byte
}

func (w *lineWriter) Write(b []byte) (int, error) {
	w.part = append(w.part, b...)
	for {
		line, rest, ok := bytes.Cut(w.part, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		w.each(string(line))
		w.part = rest
	}
}

func (w *lineWriter) flush() {
	if len(w.part) > 0 {
		w.each(string(w.part))
		w.part = nil
	}
}

// ExecTest runs a test binary that 'go test' built, as its -exec program: in
// the current directory's name, with its testdata, and with the files that the
// binary's flags name brought back to where 'go test' expects them.
func ExecTest(ctx context.Context, c Config, args []string) (*Result, error) {
	if len(args) == 0 {
		return nil, errors.New("no test binary to run")
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	b := testBinary{pkg: "exec", dir: dir, module: moduleOf(dir), file: args[0]}
	flags, files, limit := guestTestFlags(args[1:], dir)
	if limit > 0 {
		c.Timeout = limit + time.Minute // the binary itself tells more about what hangs
	}
	out, err := os.MkdirTemp("", "rdmashim-out-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(out)
	c.Nodes, c.Out = 1, out
	c.Add = append(c.Add, b.adds()...)
	if dir := files[coverDir]; dir != "" {
		c.Add = append(c.Add, Add{dir, path.Join(guest.OutDir, coverDir)})
	}
	c.Command.Args = append([]string{b.guestFile()}, flags...)
	c.Command.Dir = filepath.ToSlash(dir)
	result, err := Run(ctx, c)
	for name, host := range files {
		if _, serr := os.Stat(filepath.Join(out, name)); serr != nil {
			continue // the binary wrote none
		}
		err = joinFlat(err, copyBack(filepath.Join(out, name), host))
	}
	return result, err
}

// copyBack copies a file, or what is in a directory.
func copyBack(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o644)
	}
	for _, e := range entries {
		if err := copyBack(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// fileFlags are flags of test binaries that name a file to write.
var fileFlags = []string{"coverprofile", "cpuprofile", "memprofile", "blockprofile", "mutexprofile", "trace", coverDir}

const coverDir = "gocoverdir" // names a directory, which must be there

// guestTestFlags rewrites the flags of a test binary for the guest: files are
// written to /out and listed, by name there, with their place on the host. The
// log by which 'go test' caches results is left out: it would tell of the
// guest's files. The time limit is returned as well.
func guestTestFlags(args []string, dir string) (flags []string, files map[string]string, limit time.Duration) {
	files = map[string]string{}
	outDir := dir
	for _, a := range args {
		if v, ok := strings.CutPrefix(a, "-test.outputdir="); ok {
			outDir = v
		}
	}
	for _, a := range args {
		name, value, _ := strings.Cut(a, "=")
		name, ours := strings.CutPrefix(name, "-test.")
		if !ours {
			flags = append(flags, a)
			continue
		}
		switch name {
		case "testlogfile", "outputdir":
			continue
		case "timeout":
			limit, _ = time.ParseDuration(value)
		}
		for _, f := range fileFlags {
			if name == f && value != "" {
				if !filepath.IsAbs(value) {
					value = filepath.Join(outDir, value)
				}
				files[name] = value
				a = "-test." + name + "=" + path.Join(guest.OutDir, name)
			}
		}
		flags = append(flags, a)
	}
	return flags, files, limit
}
