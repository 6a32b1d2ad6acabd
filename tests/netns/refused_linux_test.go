package netns

import (
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestRefused: root without CAP_SYS_ADMIN, as in a container, skips tests for a
// reason that makes no run incomplete; another user is told to become root.
func TestRefused(t *testing.T) {
	const inside = "RDMASHIM_TEST_REFUSED"
	if os.Getenv(inside) != "" {
		Needs(t, unix.CLONE_NEWNS)
		t.Fatal("a namespace without a capability")
	}
	outputs := make(chan []byte)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_ADMIN, 0, 0, 0)
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestRefused$", "-test.v")
		cmd.Env = append(os.Environ(), inside+"=1", "CI=")
		out, _ := cmd.CombinedOutput()
		outputs <- out
	}()
	out := <-outputs
	require.Contains(t, string(out), "--- SKIP: TestRefused")
	if os.Getuid() == 0 {
		require.Regexp(t, "^this machine gives root no namespaces", reason(out))
	} else {
		require.Contains(t, reason(out), "run as root")
	}
}
