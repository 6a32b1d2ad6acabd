//go:build amd64 || arm64

package programs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rdmaCore is where the distribution puts rdma-core's own tests, some of them
// compressed.
const rdmaCore = "/usr/share/doc/rdma-core/tests"

// python runs them: the distribution's, which has its pyverbs.
const python = "/usr/bin/python3"

// passing returns the tests that a recording of testdata lists.
func passing(t *testing.T, recording string) (names []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", recording))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			names = append(names, strings.TrimSpace(line))
		}
	}
	return names
}

// rdmaCoreTest begins what unittest says of a test: its method and its name,
// which ends with the method since Python 3.11.
var rdmaCoreTest = regexp.MustCompile(`(?m)^(test_\w+) \(([\w.]+)\)`)

// passed finds the tests in unittest's output that passed. A test's result is
// the last word of a line.
var passed = regexp.MustCompile(`(?m)(^|\s)ok$`)

func passedIn(output string) (names []string) {
	found := rdmaCoreTest.FindAllStringSubmatchIndex(output, -1)
	for i, f := range found {
		end := len(output)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		said, _, _ := strings.Cut(output[f[1]:end], "\n=====") // the failures' traces
		method, name := output[f[2]:f[3]], output[f[4]:f[5]]
		if !strings.HasSuffix(name, "."+method) {
			name += "." + method
		}
		if passed.MatchString(said) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// TestRDMACore runs rdma-core's own tests. Those that pass on rdma_rxe pass, no
// other does, and the one that fails fails there, too.
func TestRDMACore(t *testing.T) {
	needs(t)
	for _, file := range []string{python, filepath.Join(rdmaCore, "run_tests.py")} {
		if _, err := os.Stat(file); err != nil {
			require.NotEqual(t, "true", os.Getenv("CI"), "%v", err)
			t.Skip(err, ": apt-get install python3-pyverbs")
		}
	}
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "tests"), os.DirFS(rdmaCore)))
	packed, err := filepath.Glob(filepath.Join(dir, "tests", "*.gz"))
	require.NoError(t, err)
	if len(packed) > 0 {
		out, err := exec.Command("gunzip", packed...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}

	device, _ := newDevice()
	p := start(t, device, python, "-B", filepath.Join(dir, "tests", "run_tests.py"), "--dev", "rxe0", "--gid", "0", "-v")
	_ = p.Wait() // 1: the atomic write, and on machines with other devices more
	output := p.out.String()
	require.Contains(t, output, "\nRan ", "they ended early")
	require.Equal(t, passing(t, "rdma-core-rxe.txt"), passedIn(output), "%s", output)
	errors := 1
	if supervisor != "" {
		// A duplicate of the device's descriptor is to be imported, which rxe
		// does not do, but has a number at which fstat is not held.
		errors = 2
	}
	require.Contains(t, output, fmt.Sprintf("\nFAILED (errors=%d, ", errors))
}
