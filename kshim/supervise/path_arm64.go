//go:build linux

package supervise

import "golang.org/x/sys/unix"

// oldPathCalls are those that newer architectures do not have.
var oldPathCalls map[int]pathCall

func isReadlink(nr int) bool { return nr == unix.SYS_READLINKAT }
