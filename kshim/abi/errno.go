//go:build !(freebsd || openbsd || dragonfly)

package abi

import "syscall"

// ENODATA is Linux's answer for a GID table entry that is empty.
const ENODATA = syscall.ENODATA
