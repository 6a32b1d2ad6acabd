//go:build !guest

package interop

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/vm"
	"github.com/rdmashim/rdmashim/vm/vmtest"
)

var update = flag.Bool("update", false, "replace the recordings of tests/testdata by new ones")

const testdata = "../testdata"

// TestInterop runs the tests of the guest, all in one boot, and reports each as
// a subtest.
func TestInterop(t *testing.T) {
	c := vmtest.Config(t)
	c.Memory = 640
	c.Timeout = 9 * time.Minute
	if vmtest.Race {
		c.Memory, c.Timeout = 1500, 3*c.Timeout
	}
	c.Out = t.TempDir()
	c.Env = append(c.Env, "CI="+os.Getenv("CI"))
	if adds, err := programs(t.Context()); err != nil {
		require.NotEqual(t, "true", os.Getenv("CI"), "the C programs: %v", err)
		t.Log("without the C programs: ", err)
		c.Env = append(c.Env, "INTEROP_NO_PROGRAMS="+strings.ReplaceAll(err.Error(), "\n", " "))
	} else {
		c.Add = append(c.Add, adds...)
		c.Add, c.Env = addPeer(t, c.Add, c.Env)
	}
	var output bytes.Buffer
	report, err := vm.Test(t.Context(), vm.TestConfig{
		Config:   c,
		Packages: []string{"github.com/rdmashim/rdmashim/tests/interop"},
		Tags:     "guest",
		Race:     vmtest.Race,
		Flags:    guestFlags(),
		Verbose:  true,
		Output:   &output,
	})
	for _, p := range report.Packages {
		for _, test := range p.Tests {
			if test.Outcome == "PASS" && strings.Contains(test.Name, "/") {
				continue
			}
			t.Run(test.Name, func(t *testing.T) {
				switch test.Outcome {
				case "SKIP":
					t.Skip("in the guest; its reason is in the output")
				case "FAIL":
					t.Error("failed in the guest")
				}
			})
		}
	}
	if err != nil || testing.Verbose() {
		t.Logf("output in the guest:\n%s", output.String())
	}
	require.NoError(t, err)
	if *update {
		replaceRecordings(t, c.Out)
	}
	fmt.Printf("interop: tests=%d skipped=%d%s\n", report.Passed, report.Skipped, sumsOf(&output))
}

// guestFlags hands -run down: INTEROP_RUN chooses tests in the guest.
func guestFlags() []string {
	flags := []string{"-test.timeout=8m"}
	if vmtest.Race {
		flags = []string{"-test.timeout=24m"}
	}
	if run := os.Getenv("INTEROP_RUN"); run != "" {
		flags = append(flags, "-test.run="+run)
	}
	return flags
}

// sumsOf gives what the guest's closing line says.
func sumsOf(output *bytes.Buffer) string {
	for s := bufio.NewScanner(output); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "interop:"); ok {
			return rest
		}
	}
	return ""
}

// replaceRecordings copies the guest's recordings over those of the tree.
func replaceRecordings(t *testing.T, out string) {
	files, err := filepath.Glob(filepath.Join(out, "soft-rxe-*"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "the guest left no recordings")
	for _, f := range files {
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(testdata, filepath.Base(f)), data, 0o644))
	}
}
