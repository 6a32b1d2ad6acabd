//go:build freebsd || openbsd || dragonfly

package abi

import "syscall"

// ENODATA is Linux's answer for a GID table entry that is empty. These systems
// have no number of that name.
const ENODATA = syscall.ENOATTR
