//go:build amd64 || arm64

package conform

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/supervise/notif"
	"github.com/rdmashim/rdmashim/tests/built"
)

// envSupervised makes the test binary the program under the supervisor.
const envSupervised = "CONFORM_SUPERVISED"

// TestSupervised runs the suite by real system calls, in a program that
// 'rdmashim run --way supervisor' has started: the device is one of Linux's, as
// far as the program can tell. There are no modules to be unloaded.
func TestSupervised(t *testing.T) {
	if os.Getenv(envSupervised) == "" {
		if testing.Short() {
			t.Skip("-short leaves out what builds the tool; run it without -short")
		}
		if _, err := notif.Check(); err != nil {
			t.Skip("this machine supervises no programs: ", err)
		}
		self, err := os.Executable()
		require.NoError(t, err)
		cmd := exec.CommandContext(t.Context(), built.Tool(t), "run", "--way", "supervisor",
			"-d", fmt.Sprintf("soft:127.%d.%d.77?mtu=%d", 64+rand.IntN(128), rand.IntN(256), portMTU), "--", self, "-test.run=^TestSupervised$")
		cmd.Env = append(cmd.Environ(), envSupervised+"=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "conform: kernel=emulator+supervisor tests=", "the suite's sum")
		return
	}
	sys, err := kernelRXE()
	require.NoError(t, err)
	sys.name, sys.joinIP = "emulator+supervisor", nil
	runSuite(t, sys, slices.DeleteFunc(suite(), func(tc test) bool { return tc.group() == "module" }))
}
