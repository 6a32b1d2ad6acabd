package soak

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPlantedMistakesAreCaught builds this test with the tag "plant" and runs the
// soak with each mistake that the engine can make then: it must fail, within the
// number of seeds that it runs everywhere, and name a seed; and pass without.
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

	out, err = exec.Command(bin, "-plant=list").Output()
	require.NoError(t, err)
	plants := strings.Fields(string(out))
	require.NotEmpty(t, plants)

	named := regexp.MustCompile(`seed \d+ \(trace [0-9a-f]{16}\): .+\n\s+replay: go test .* -sim\.seed=\d+`)
	for _, name := range plants {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			out, err := run(name, strconv.Itoa(seedsEverywhere))
			var exit *exec.ExitError
			require.True(t, errors.As(err, &exit), "the soak did not notice %s (%v)\n%s", name, err, out)
			hit := named.Find(out)
			require.NotNil(t, hit, "the soak failed without naming a seed:\n%s", out)
			t.Logf("caught in %v: %s", time.Since(start).Round(time.Millisecond), hit)
		})
	}
}
