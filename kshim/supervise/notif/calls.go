//go:build linux && (amd64 || arm64)

package notif

import (
	"slices"

	"golang.org/x/sys/unix"
)

// rdmaVerbsIoctl is RDMA_VERBS_IOCTL (rdma/rdma_user_ioctl_cmds.h).
const rdmaVerbsIoctl = 0xc0181b01

// calls lists the calls of which some are held, those that are made most often
// first. All others are Linux's own and cost nothing, as Linux notes (5.11).
var calls = slices.Concat([]call{
	{unix.SYS_WRITE, ofWindow},
	{unix.SYS_IOCTL, ofRequest(1, rdmaVerbsIoctl)},
	{unix.SYS_OPENAT, always},
	{unix.SYS_FSTAT, ofWindow},
	{unix.SYS_NEWFSTATAT, ofPathOrWindow(3)},
	{unix.SYS_STATX, ofPathOrWindow(2)},
	{unix.SYS_WRITEV, ofWindow},
	{unix.SYS_SENDTO, ofWindow},
	{unix.SYS_SENDMSG, ofWindow},
	{unix.SYS_READLINKAT, always},
	{unix.SYS_FACCESSAT, always},
	{unix.SYS_FACCESSAT2, always},
	{unix.SYS_OPENAT2, always},
	{unix.SYS_STATFS, always},
	{unix.SYS_GETXATTR, always},
	{unix.SYS_LGETXATTR, always},
	{unix.SYS_LISTXATTR, always},
	{unix.SYS_LLISTXATTR, always},
	{unix.SYS_SOCKET, ofNetlinkRDMA},
	{unix.SYS_EXECVE, always},
	{unix.SYS_EXECVEAT, always},
}, oldCalls)

// call is a row: a call's number, and what of it is held.
type call struct {
	nr   uint32
	held condition
}

// condition appends instructions that return, whichever way they go.
type condition func(p []unix.SockFilter, w Window) []unix.SockFilter

// always: the call names a path, or has the process another memory.
func always(p []unix.SockFilter, _ Window) []unix.SockFilter { return append(p, hold) }

// ofWindow: the descriptor, the first argument, has a number in the window.
func ofWindow(p []unix.SockFilter, w Window) []unix.SockFilter {
	return append(p,
		loadArg(0),
		unless(unix.BPF_JGE, uint32(w.Low), 2),
		when(unix.BPF_JGE, uint32(w.High), 1),
		hold,
		allow)
}

// ofRequest: the argument has this value.
func ofRequest(arg int, value uint32) condition {
	return func(p []unix.SockFilter, _ Window) []unix.SockFilter {
		return append(p, loadArg(arg), unless(unix.BPF_JEQ, value, 1), hold, allow)
	}
}

// ofPathOrWindow: the call names a path, or by AT_EMPTY_PATH among its flags a
// descriptor in the window. The flag with AT_FDCWD goes with a path.
func ofPathOrWindow(flags int) condition {
	return func(p []unix.SockFilter, w Window) []unix.SockFilter {
		p = append(p,
			loadArg(flags),
			when(unix.BPF_JSET, unix.AT_EMPTY_PATH, 1),
			hold,
			loadArg(0),
			unless(unix.BPF_JEQ, 1<<32+unix.AT_FDCWD, 1),
			hold)
		return ofWindow(p, w)
	}
}

// ofNetlinkRDMA: socket(AF_NETLINK, any type, NETLINK_RDMA).
func ofNetlinkRDMA(p []unix.SockFilter, _ Window) []unix.SockFilter {
	return append(p,
		loadArg(0),
		unless(unix.BPF_JEQ, unix.AF_NETLINK, 3),
		loadArg(2),
		unless(unix.BPF_JEQ, unix.NETLINK_RDMA, 1),
		hold,
		allow)
}

// Opens returns the address of the path of a call that opens a file.
func (n *Notification) Opens() (path uint64, ok bool) {
	switch n.NR {
	case unix.SYS_OPENAT, unix.SYS_OPENAT2:
		return n.Args[1], true
	case oldOpen:
		return n.Args[0], true
	}
	return 0, false
}
