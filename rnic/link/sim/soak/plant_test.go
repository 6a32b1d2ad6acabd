package soak

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// plants are the mistakes that builds of the engine with the tag "plant" can make.
var plants = []string{"psn-check-skipped", "completion-doubled", "ack-lost-for-good", "stale-key-accepted", "length-off-by-one"}

// TestPlantedMistakesAreCaught builds this test with the tag "plant" and runs the
// soak with each mistake: it must fail and name a seed, and pass without.
func TestPlantedMistakesAreCaught(t *testing.T) {
	if planting {
		t.Skip("this is the build with the mistakes")
	}
	tool, err := exec.LookPath("go")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("no go tool to build the soak with mistakes: ", err)
		}
		t.Skip("no go tool to build the soak with mistakes: ", err)
	}
	bin := filepath.Join(t.TempDir(), "soak.test")
	if runtime.GOOS == "windows" {
		bin += ".exe"
	}
	out, err := exec.Command(tool, "test", "-c", "-tags", "plant", "-o", bin, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)

	run := func(name string, n string) ([]byte, error) {
		return exec.Command(bin, "-test.run=^TestSoak$", "-plant="+name, "-sim.n="+n, "-test.timeout=10m").CombinedOutput()
	}
	out, err = run("", "100")
	require.NoError(t, err, "without a mistake the build with the tag must pass: %s", out)

	named := regexp.MustCompile(`seed \d+ \(trace [0-9a-f]{16}\): .+\n\s+replay: go test .* -sim\.seed=\d+`)
	for _, name := range plants {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			out, err := run(name, "2000")
			var exit *exec.ExitError
			require.True(t, errors.As(err, &exit), "the soak did not notice %s (%v)\n%s", name, err, out)
			hit := named.Find(out)
			require.NotNil(t, hit, "the soak failed without naming a seed:\n%s", out)
			t.Logf("caught in %v: %s", time.Since(start).Round(time.Millisecond), hit)
		})
	}
}
