package vm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// dieWithParent has the kernel end the child when the thread that started it
// ends (prctl(2), PR_SET_PDEATHSIG). It is in a process group of its own, so
// that a terminal's interrupt reaches only us, and we end it in order.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// threadWaits is how long each thread of a process waited for a processor: the
// second number of /proc/PID/task/TID/schedstat
// (Documentation/scheduler/sched-stats.rst).
func threadWaits(pid int) map[string]time.Duration {
	waits := map[string]time.Duration{}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, file := range files {
		var ran, waited int64
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		if _, err := fmt.Sscan(string(text), &ran, &waited); err == nil {
			waits[file] = time.Duration(waited)
		}
	}
	return waits
}
