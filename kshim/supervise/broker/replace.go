//go:build linux && (amd64 || arm64)

package broker

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/far"
	"github.com/rdmashim/rdmashim/kshim/supervise/notif"
)

// replace answers in the place of a kernel that has ended, until the last
// program has: first the calls that the kernel held.
func replace(l *notif.Listener, memory Memory) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, n := range l.Held() {
		refuse(l, &n, memory)
	}
	var n notif.Notification
	for l.Receive(&n) == nil {
		refuse(l, &n, memory)
	}
}

// refuse answers one call: with an error what only the kernel could do, and
// lets Linux do the others.
func refuse(l *notif.Listener, n *notif.Notification, memory Memory) {
	if errno := refusal(n, memory); errno != 0 {
		_ = l.Fail(n.ID, errno)
		return
	}
	_ = l.Continue(n.ID)
}

// refusal is the error, 0 for a call that continues. A call that is unknown, of
// number -1, does.
func refusal(n *notif.Notification, memory Memory) syscall.Errno {
	if path, ok := n.Opens(); ok {
		if strings.HasPrefix(readPath(int(n.PID), path, memory), "/dev/infiniband/") {
			return syscall.ENODEV
		}
		return 0
	}
	switch n.NR {
	case unix.SYS_IOCTL, unix.SYS_WRITE, unix.SYS_WRITEV, unix.SYS_SENDTO, unix.SYS_SENDMSG:
		if planted(n) {
			return syscall.EIO
		}
	}
	return 0
}

// planted reports whether the descriptor of a call may be a kernel's: all of
// its files are memory, pipes or sockets. A file or a device of Linux never is.
func planted(n *notif.Notification) bool {
	name, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", n.PID, int32(n.Args[0])))
	if err != nil {
		return false
	}
	for _, kind := range []string{"/memfd:", "pipe:", "socket:"} {
		if strings.HasPrefix(name, kind) {
			return true
		}
	}
	return false
}

// readPath reads a path out of a process, "" if it cannot. A path of more than
// 255 bytes is none of ours.
func readPath(pid int, address uint64, memory Memory) string {
	mem, err := memory(pid)
	if err != nil {
		return ""
	}
	m := far.New(mem, pid)
	defer m.Close()
	path, _ := m.ReadString(address, 256)
	return path
}
