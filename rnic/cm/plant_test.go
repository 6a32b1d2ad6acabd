package cm_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlantedMistakesAreCaught builds this test with the tag "plant" and runs it
// with each mistake that the manager can be told to make: the random test must fail
// and name a seed, and pass without.
func TestPlantedMistakesAreCaught(t *testing.T) {
	if planting {
		t.Skip("this is the build with the mistakes")
	}
	tool, err := exec.LookPath("go")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("no go tool to build the test with mistakes: ", err)
		}
		t.Skip("no go tool to build the test with mistakes: ", err)
	}
	bin := filepath.Join(t.TempDir(), "cm.test")
	if runtime.GOOS == "windows" {
		bin += ".exe"
	}
	out, err := exec.Command(tool, "test", "-c", "-tags", "plant", "-o", bin, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	run := func(name, n string) ([]byte, error) {
		return exec.Command(bin, "-test.run=^TestRandom$", "-plant="+name, "-cm.n="+n, "-test.timeout=10m").CombinedOutput()
	}
	out, err = run("", "500")
	require.NoError(t, err, "without a mistake the build with the tag must pass: %s", out)
	named := regexp.MustCompile(`seed \d+: .+\n(\s+.+\n)*\s+replay: go test .* -cm\.seed=\d+`)
	for _, name := range []string{"reject-not-replayed", "rtu-not-repeated", "stale-taken", "timewait-for-good", "reply-not-repeated"} {
		t.Run(name, func(t *testing.T) {
			out, err := run(name, "20000")
			var exit *exec.ExitError
			require.True(t, errors.As(err, &exit), "nothing noticed %s (%v)\n%s", name, err, out)
			require.NotNil(t, named.Find(out), "the test failed without naming a seed:\n%s", out)
		})
	}
}
