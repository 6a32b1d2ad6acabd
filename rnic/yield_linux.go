package rnic

import "syscall"

// yield lets another thread that waits for this processor have it: a peer on the
// same machine, say.
func yield() { _, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }
