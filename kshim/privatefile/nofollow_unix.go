//go:build unix

package privatefile

import "syscall"

const noFollow = syscall.O_NOFOLLOW
