package vm

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// TestQEMUEndsWithUs kills the process that runs a guest; the guest's QEMU
// must end by itself.
func TestQEMUEndsWithUs(t *testing.T) {
	if os.Getenv("RDMASHIM_VM_TEST_VICTIM") != "" {
		victim(t)
	}
	c := fakeConfig(t, "ok")
	checkQEMUEndsWithUs(t, c)
}

// victim starts a guest, tells its QEMU's number and waits to be killed.
func victim(t *testing.T) {
	c := Config{
		QEMU: os.Getenv("RDMASHIM_VM_TEST_VICTIM"), Accel: "tcg", NoLink: true,
		Kernel: os.Getenv("VICTIM_KERNEL"), Modules: os.Getenv("VICTIM_MODULES"), Image: os.Getenv("VICTIM_IMAGE"),
	}
	if mode := os.Getenv("VICTIM_MODE"); mode != "" {
		os.Setenv(asQEMU, mode)
	}
	s := must.Get(Start(context.Background(), c))(t)
	fmt.Printf("victim: %d\n", s.Nodes[0].process.cmd.Process.Pid)
	hang()
}

// checkQEMUEndsWithUs starts a guest in a process of its own, kills that, and
// waits for the guest's QEMU to end.
func checkQEMUEndsWithUs(t *testing.T, c Config) {
	t.Helper()
	self := must.Get(os.Executable())(t)
	cmd := exec.Command(self, "-test.run=^TestQEMUEndsWithUs$", "-test.v")
	// The victim is a test binary, but the process that it starts with asQEMU
	// is not.
	cmd.Env = append(os.Environ(), "RDMASHIM_VM_TEST_VICTIM="+c.QEMU, "VICTIM_KERNEL="+c.Kernel, "VICTIM_MODULES="+c.Modules, "VICTIM_IMAGE="+c.Image)
	if c.QEMU == self {
		cmd.Env = append(cmd.Env, asQEMU+"=", "VICTIM_MODE=ok")
	}
	cmd.Stderr = os.Stderr
	out := must.Get(cmd.StdoutPipe())(t)
	require.NoError(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	qemu := 0
	for lines := bufio.NewScanner(out); qemu == 0 && lines.Scan(); {
		if pid, ok := strings.CutPrefix(lines.Text(), "victim: "); ok {
			qemu = must.Get(strconv.Atoi(pid))(t)
		}
	}
	require.NotZero(t, qemu, "the guest came up")
	require.NoError(t, syscall.Kill(qemu, 0), "QEMU runs")
	require.NoError(t, cmd.Process.Kill())
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if err := syscall.Kill(qemu, 0); err == syscall.ESRCH || isZombie(qemu) {
			return
		}
		require.True(t, time.Now().Before(deadline), "QEMU %d still runs", qemu)
	}
}

// isZombie says whether a process has ended and only its entry is left, for the
// process that waits for orphans here.
func isZombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return os.IsNotExist(err)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(after, "Z")
}
