package netns

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
)

// variable names the test that runs in the namespace.
const variable = "RDMASHIM_TEST_IN_NAMESPACE"

// Own runs the calling test again in a network namespace of its own, with lo
// up, and reports whether this is that run. Where there are no namespaces to be
// had the test is skipped, with CI=true it fails. That run gets the flags of
// this one, except go test's own.
func Own(t *testing.T) bool {
	t.Helper()
	if os.Getenv(variable) == t.Name() {
		lo, err := netlink.LinkByName("lo")
		require.NoError(t, err)
		require.NoError(t, netlink.LinkSetUp(lo))
		t.Setenv("RDMASHIM_DEVICE", "")
		return true
	}
	args := []string{"-test.run=^" + t.Name() + "$", "-test.v"}
	flag.Visit(func(f *flag.Flag) {
		if !strings.HasPrefix(f.Name, "test.") {
			args = append(args, "-"+f.Name+"="+f.Value.String())
		}
	})
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), variable+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	text, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		Refused(t, err)
	}
	require.NoError(t, err, "%s", text)
	if strings.Contains(string(text), "--- SKIP: "+t.Name()) {
		t.Skip(reason(text))
	}
	require.Contains(t, string(text), "--- PASS: "+t.Name())
	return false
}

// said is a line of a test's own in what go test prints.
var said = regexp.MustCompile(`(?m)^\s+\S+_test\.go:\d+: (.*)$`)

// reason returns why a test was skipped, out of what go test printed of it.
func reason(text []byte) string {
	if m := said.FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return string(text)
}
