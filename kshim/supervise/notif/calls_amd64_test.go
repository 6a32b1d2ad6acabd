//go:build linux

package notif

import "golang.org/x/sys/unix"

var oldPaths = []uint32{unix.SYS_OPEN, unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_ACCESS, unix.SYS_READLINK}
