package drive

import "syscall"

// yield gives the processor to another thread that waits for it, if there is
// one.
func yield() { _, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }
