//go:build !guest && (linux || darwin)

package conform

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rdmashim/rdmashim/vm"
	"github.com/rdmashim/rdmashim/vm/vmtest"
)

// TestOnLinux runs the suite on rxe and compares programs on it, in one guest. CONFORM_SEED and CONFORM_PROGRAMS count
// there as well.
func TestOnLinux(t *testing.T) {
	config := vmtest.Config(t)
	if vmtest.Race {
		config.Memory, config.Timeout = 1500, 3*config.Timeout
	}
	for _, name := range []string{"CI", "CONFORM_SEED", "CONFORM_PROGRAMS"} {
		config.Env = append(config.Env, name+"="+os.Getenv(name))
	}
	var output bytes.Buffer
	report, err := vm.Test(t.Context(), vm.TestConfig{
		Config:   config,
		Packages: []string{"github.com/rdmashim/rdmashim/tests/conform"},
		Flags:    []string{"-test.run=^(TestRXE|TestProgramsOnRXE)$"},
		Tags:     "guest",
		Race:     vmtest.Race,
		Verbose:  true,
		Output:   &output,
	})
	sums := 0
	for line := range strings.Lines(output.String()) {
		if at := strings.Index(line, "conform: "); at >= 0 {
			fmt.Print(line[at:])
			sums++
		}
	}
	switch {
	case err != nil:
		t.Errorf("%v\n%s", err, output.String())
	case sums < 2 || report.Passed == 0 || report.Skipped > 0:
		t.Errorf("the guest ran %d tests, skipped %d and summed up %d times:\n%s", report.Passed, report.Skipped, sums, output.String())
	}
}
