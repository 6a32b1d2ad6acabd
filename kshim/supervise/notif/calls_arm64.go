//go:build linux

package notif

import "golang.org/x/sys/unix"

const (
	arch    = unix.AUDIT_ARCH_AARCH64
	oldOpen = -1
)

// oldCalls are those that newer architectures do not have.
var oldCalls []call
