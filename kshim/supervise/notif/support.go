package notif

import (
	"fmt"
	"strings"
	"syscall"
)

var (
	// ErrBusy: the process is under a filter with a listener already, that of
	// another supervisor, of a container's manager, or of WSL2 with mirrored
	// networking. Linux allows one.
	ErrBusy = fmt.Errorf("seccomp: a listener is there already, and Linux allows one; a program within needs no second: %w", syscall.EBUSY)

	// ErrUnsupported: the kernel has no user notification (before Linux 5.9,
	// gVisor), or a filter forbids it.
	ErrUnsupported = fmt.Errorf("seccomp: no user notification here, it needs Linux 5.9: %w", syscall.ENOTSUP)
)

// Support is what a machine has of user notification, and which processes may
// reach the memory of another one of their user.
type Support struct {
	WaitKillable bool   // WAIT_KILLABLE_RECV, Linux 5.19
	SyncWakeUp   bool   // SYNC_WAKE_UP, Linux 6.6
	Yama         string // kernel.yama.ptrace_scope, "0" without Yama
}

// String says what is missing, as in "no WAIT_KILLABLE_RECV (Linux 5.19)".
func (s Support) String() string {
	var missing []string
	for _, f := range []struct {
		has  bool
		name string
	}{
		{s.WaitKillable, "WAIT_KILLABLE_RECV (Linux 5.19)"},
		{s.SyncWakeUp, "SYNC_WAKE_UP (Linux 6.6)"},
	} {
		if !f.has {
			missing = append(missing, "no "+f.name)
		}
	}
	if s.Yama == "1" {
		missing = append(missing, "memory of descendants only (Yama 1)")
	}
	if len(missing) == 0 {
		return "all of it"
	}
	return strings.Join(missing, ", ")
}
