package netns

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Refused skips a test whose namespaces the system refuses; with CI=true it
// fails. What root is refused, as in a container, this machine lacks: that
// makes no run of tools/test incomplete. Another user is to run the test as
// root.
func Refused(t testing.TB, why error) {
	t.Helper()
	require.NotEqual(t, "true", os.Getenv("CI"), "%v", why)
	if os.Getuid() == 0 {
		t.Skipf("this machine gives root no namespaces, as containers without CAP_SYS_ADMIN: %v", why)
	}
	t.Skipf("no namespaces to be had (%v); run as root or allow user namespaces", why)
}

// Needs is Refused where processes cannot start in new namespaces, which flags
// of clone(2) name.
func Needs(t testing.TB, flags uintptr) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^$")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		Refused(t, err)
	}
	require.NoError(t, err, "%s", out)
}
