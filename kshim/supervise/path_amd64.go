//go:build linux

package supervise

import "golang.org/x/sys/unix"

// oldPathCalls are those that newer architectures do not have.
var oldPathCalls = map[int]pathCall{
	unix.SYS_OPEN:     {0, func(c *call, at string, d *device) { c.open(at, d, c.Args[1]) }},
	unix.SYS_STAT:     {0, func(c *call, at string, d *device) { c.statPath(at, d, c.Args[1], 0) }},
	unix.SYS_LSTAT:    {0, func(c *call, at string, d *device) { c.statPath(at, d, c.Args[1], unix.AT_SYMLINK_NOFOLLOW) }},
	unix.SYS_ACCESS:   {0, func(c *call, at string, _ *device) { c.access(at, c.Args[1], 0) }},
	unix.SYS_READLINK: {0, func(c *call, at string, _ *device) { c.readlink(at, c.Args[1], c.Args[2]) }},
}

func isReadlink(nr int) bool { return nr == unix.SYS_READLINK || nr == unix.SYS_READLINKAT }
