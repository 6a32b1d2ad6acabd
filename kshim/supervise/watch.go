//go:build linux && (amd64 || arm64)

package supervise

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// watcher calls functions when descriptors are ready and memfds have lost their
// last user. One goroutine calls them, one by one.
type watcher struct {
	epoll, inotify, wake int
	done                 chan struct{}

	mu    sync.Mutex
	count int32              // guarded by mu: of calls of add
	ready map[int32]*watched // guarded by mu, by descriptor
	gone  map[int]func()     // guarded by mu, by watch descriptor
	marks map[int]int        // guarded by mu: memfd → watch descriptor
}

// watched is a descriptor that is watched. Its number tells it from others that
// had the descriptor: events that were read at once may be of those.
type watched struct {
	number int32
	call   func(events uint32)
}

func newWatcher() (w *watcher, err error) {
	w = &watcher{done: make(chan struct{}), ready: map[int32]*watched{}, gone: map[int]func(){}, marks: map[int]int{}}
	if w.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	if w.inotify, err = unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK); err != nil {
		unix.Close(w.epoll)
		return nil, err
	}
	if w.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		unix.Close(w.epoll)
		unix.Close(w.inotify)
		return nil, err
	}
	w.add(w.inotify, unix.EPOLLIN, func(uint32) { w.closes() })
	w.add(w.wake, unix.EPOLLIN, nil)
	go w.loop()
	return w, nil
}

// add has f called once when fd is ready for events, or has failed, and once
// more for each modify.
func (w *watcher) add(fd int, events uint32, f func(events uint32)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	w.ready[int32(fd)] = &watched{w.count, f}
	w.control(unix.EPOLL_CTL_ADD, fd, events)
}

// control changes what epoll looks for. Preconditions: mu is held.
func (w *watcher) control(op, fd int, events uint32) {
	if r := w.ready[int32(fd)]; r != nil {
		_ = unix.EpollCtl(w.epoll, op, fd, &unix.EpollEvent{Events: events | unix.EPOLLONESHOT, Fd: int32(fd), Pad: r.number})
	}
}

func (w *watcher) modify(fd int, events uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.control(unix.EPOLL_CTL_MOD, fd, events)
}

func (w *watcher) remove(fd int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.ready, int32(fd))
	_ = unix.EpollCtl(w.epoll, unix.EPOLL_CTL_DEL, fd, nil)
}

// closed has f called when no description of a memfd that could write is left
// but the one that made it.
func (w *watcher) closed(memfd int, f func()) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	wd, err := unix.InotifyAddWatch(w.inotify, "/proc/self/fd/"+strconv.Itoa(memfd), unix.IN_CLOSE_WRITE)
	if err != nil {
		return fmt.Errorf("watch a device file: %w", err)
	}
	w.gone[wd], w.marks[memfd] = f, wd
	return nil
}

// forget ends closed.
func (w *watcher) forget(memfd int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if wd, ok := w.marks[memfd]; ok {
		delete(w.marks, memfd)
		delete(w.gone, wd)
		_, _ = unix.InotifyRmWatch(w.inotify, uint32(wd))
	}
}

func (w *watcher) loop() {
	defer close(w.done)
	var events [64]unix.EpollEvent
	for {
		n, err := unix.EpollWait(w.epoll, events[:], -1)
		if err != nil && err != unix.EINTR {
			return
		}
		for _, e := range events[:max(n, 0)] {
			if int(e.Fd) == w.wake {
				return
			}
			w.mu.Lock()
			r := w.ready[e.Fd]
			w.mu.Unlock()
			if r != nil && r.number == e.Pad {
				r.call(e.Events)
			}
		}
	}
}

// closes reads which memfds were closed.
func (w *watcher) closes() {
	defer w.modify(w.inotify, unix.EPOLLIN)
	var b [4096]byte
	n, _ := unix.Read(w.inotify, b[:])
	for at := 0; at+unix.SizeofInotifyEvent <= n; {
		var e unix.InotifyEvent
		_, _ = binary.Decode(b[at:], binary.NativeEndian, &e)
		at += unix.SizeofInotifyEvent + int(e.Len)
		w.mu.Lock()
		f := w.gone[int(e.Wd)]
		delete(w.gone, int(e.Wd))
		w.mu.Unlock()
		if f != nil && e.Mask&unix.IN_CLOSE_WRITE != 0 {
			f()
		}
	}
}

func (w *watcher) close() {
	one := [8]byte{1}
	_, _ = unix.Write(w.wake, one[:])
	<-w.done
	for _, fd := range []int{w.epoll, w.inotify, w.wake} {
		unix.Close(fd)
	}
}
