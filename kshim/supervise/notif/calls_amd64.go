//go:build linux

package notif

import "golang.org/x/sys/unix"

const (
	arch    = unix.AUDIT_ARCH_X86_64
	oldOpen = unix.SYS_OPEN
)

// oldCalls are those that newer architectures do not have.
var oldCalls = []call{
	{unix.SYS_OPEN, always},
	{unix.SYS_STAT, always},
	{unix.SYS_LSTAT, always},
	{unix.SYS_ACCESS, always},
	{unix.SYS_READLINK, always},
}
