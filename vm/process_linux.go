package vm

import (
	"os/exec"
	"runtime"
	"syscall"
)

// dieWithParent has the kernel end the child when the thread that started it
// ends (prctl(2), PR_SET_PDEATHSIG). It is in a process group of its own, so
// that a terminal's interrupt reaches only us, and we end it in order.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// lockThread keeps the calling goroutine on its thread.
func lockThread() (unlock func()) {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}
