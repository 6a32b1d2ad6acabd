//go:build linux && (amd64 || arm64)

package supervise

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// notifier calls functions when memfds are closed or written to: one of the
// two, since a queue that a program fills with one would lose the other.
type notifier struct {
	fd   int
	mask uint32

	mu    sync.Mutex
	calls map[int]func() // guarded by mu, by watch descriptor
	marks map[int]int    // guarded by mu: memfd → watch descriptor
}

func newNotifier(mask uint32) (*notifier, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("an inotify instance (sysctl fs.inotify.max_user_instances bounds them): %w", err)
	}
	return &notifier{fd: fd, mask: mask, calls: map[int]func(){}, marks: map[int]int{}}, nil
}

// add has f called at each event of a memfd until remove.
func (n *notifier) add(memfd int, f func()) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	wd, err := unix.InotifyAddWatch(n.fd, "/proc/self/fd/"+strconv.Itoa(memfd), n.mask)
	if err != nil {
		return fmt.Errorf("watch a device file: %w", err)
	}
	n.calls[wd], n.marks[memfd] = f, wd
	return nil
}

func (n *notifier) remove(memfd int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if wd, ok := n.marks[memfd]; ok {
		delete(n.marks, memfd)
		delete(n.calls, wd)
		_, _ = unix.InotifyRmWatch(n.fd, uint32(wd))
	}
}

// read calls the functions of the events that are there.
func (n *notifier) read() {
	var b [4096]byte
	size, _ := unix.Read(n.fd, b[:])
	for at := 0; at+unix.SizeofInotifyEvent <= size; {
		var e unix.InotifyEvent
		_, _ = binary.Decode(b[at:], binary.NativeEndian, &e)
		at += unix.SizeofInotifyEvent + int(e.Len)
		n.mu.Lock()
		f := n.calls[int(e.Wd)]
		n.mu.Unlock()
		if f != nil && e.Mask&n.mask != 0 {
			f()
		}
	}
}
