package msgring_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// TestOnWorkers runs the other tests in a process in which each device has a
// Worker for its connections.
func TestOnWorkers(t *testing.T) {
	if onWorkers {
		t.Skip("it is this process")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	args := []string{"-test.timeout=5m"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), "MSGRING_TEST_WORKERS=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
