package plant

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
)

// Mistake is one that a source file can be made to make.
type Mistake struct {
	Name   string
	File   string   // slash-separated, from the module's root
	Pieces []string // pairs: a piece that the file has once, and its replacement
	Test   string   // name of the test that must notice it; "" is the suite's
}

// Row returns a mistake. MADE in a replacement stands for: this mistake is to
// be made.
func Row(name, file string, pieces ...string) Mistake {
	return Mistake{Name: name, File: file, Pieces: pieces}
}

// Suite is a randomised test that must notice mistakes.
type Suite struct {
	Test     string   // name of the test, in the package of the caller
	Args     []string // its flags, for every run
	Seeds    string   // its flag that bounds the seeds
	Without  int      // seeds for the run without a mistake
	With     int      // seeds for a run with one
	Named    *regexp.Regexp
	Mistakes []Mistake
}

// variable names the mistake to make in a planted binary.
const variable = "RDMASHIM_PLANTED_MISTAKE"

// Check fails unless the suite passes without a mistake and, for each of them,
// fails with output that Named matches. Every row must fit its source, but one
// in eight mistakes is made where not all is run (package amount).
func Check(t *testing.T, s Suite) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short leaves out the builds with mistakes; run it without -short")
	}
	tool, err := exec.LookPath("go")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("no go tool to build the test with mistakes: ", err)
		}
		t.Skip("no go tool to build the test with mistakes; put it on PATH: ", err)
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "planted.test")
	if runtime.GOOS == "windows" {
		bin += ".exe"
	}
	root, err := moduleRoot(tool)
	require.NoError(t, err)
	overlay, err := writeOverlay(dir, root, s.Mistakes)
	require.NoError(t, err)
	out, err := exec.Command(tool, "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", bin, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)

	run := func(mistake, test string, seeds int) ([]byte, error) {
		args := append([]string{"-test.run=^" + cmp.Or(test, s.Test) + "$", s.Seeds + "=" + strconv.Itoa(seeds), "-test.timeout=10m"}, s.Args...)
		cmd := exec.Command(bin, args...)
		cmd.Env = append(os.Environ(), variable+"="+mistake)
		return cmd.CombinedOutput()
	}
	out, err = run("", "", s.Without)
	require.NoError(t, err, "without a mistake the planted build must pass: %s", out)
	for _, m := range amount.Some(s.Mistakes, 8) {
		t.Run(m.Name, func(t *testing.T) {
			out, err := run(m.Name, m.Test, s.With)
			var exit *exec.ExitError
			require.True(t, errors.As(err, &exit), "nothing noticed %s (%v)\n%s", m.Name, err, out)
			hit := s.Named.Find(out)
			require.NotNil(t, hit, "the test failed without naming a seed:\n%s", out)
			t.Logf("caught: %s", hit)
		})
	}
}

func moduleRoot(tool string) (string, error) {
	mod, err := exec.Command(tool, "env", "GOMOD").Output()
	return filepath.Dir(strings.TrimSpace(string(mod))), err
}

// writeOverlay writes the changed sources and the file that maps them, whose
// name it returns.
func writeOverlay(dir, root string, mistakes []Mistake) (string, error) {
	sources := map[string]string{} // by the path of the file they replace
	for _, m := range mistakes {
		path := filepath.Join(root, filepath.FromSlash(m.File))
		source, changed := sources[path]
		if !changed {
			text, err := os.ReadFile(path)
			if err != nil {
				return "", err
			}
			source = string(text)
		}
		for pair := range slices.Chunk(m.Pieces, 2) {
			if n := strings.Count(source, pair[0]); n != 1 {
				return "", fmt.Errorf("mistake %s: %s has %q %d times, not once: adapt the row to the source", m.Name, m.File, pair[0], n)
			}
			made := fmt.Sprintf("(plantedMistake == %q)", m.Name)
			source = strings.Replace(source, pair[0], strings.ReplaceAll(pair[1], "MADE", made), 1)
		}
		sources[path] = source
		sources[filepath.Join(filepath.Dir(path), "planted_mistake.go")] = fmt.Sprintf(
			"package %s\n\nimport \"os\"\n\nvar plantedMistake = os.Getenv(%q)\n", filepath.Base(filepath.Dir(path)), variable)
	}
	replace := map[string]string{}
	for path, source := range sources {
		file := filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
			return "", err
		}
		replace[path] = file
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}
