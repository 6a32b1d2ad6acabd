//go:build linux && (amd64 || arm64)

package supervise

import (
	"sync"

	"golang.org/x/sys/unix"
)

// watcher calls functions when descriptors are ready, and memfds have lost
// their last user or were written to. They are called one by one.
type watcher struct {
	epoll, wake    int
	closes, writes *notifier
	done           chan struct{}

	turn sync.Mutex // held while functions are called

	mu    sync.Mutex
	count int32              // guarded by mu: of calls of add
	ready map[int32]*watched // guarded by mu, by descriptor
}

// watched is a descriptor that is watched. Its number tells it from others that
// had the descriptor: events that were read at once may be of those.
type watched struct {
	number int32
	call   func(events uint32)
}

func newWatcher() (*watcher, error) {
	w := &watcher{epoll: -1, wake: -1, done: make(chan struct{}), ready: map[int32]*watched{}}
	if err := w.open(); err != nil {
		w.closeAll()
		return nil, err
	}
	for _, n := range []*notifier{w.closes, w.writes} {
		w.add(n.fd, unix.EPOLLIN, func(uint32) {
			n.read()
			w.modify(n.fd, unix.EPOLLIN)
		})
	}
	go w.loop()
	return w, nil
}

// open opens the descriptors. After an error some are open.
func (w *watcher) open() (err error) {
	if w.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	if w.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		return err
	}
	if w.closes, err = newNotifier(unix.IN_CLOSE_WRITE); err != nil {
		return err
	}
	w.writes, err = newNotifier(unix.IN_MODIFY)
	return err
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

func (w *watcher) loop() {
	defer close(w.done)
	for {
		ready := []unix.PollFd{{Fd: int32(w.epoll), Events: unix.POLLIN}, {Fd: int32(w.wake), Events: unix.POLLIN}}
		_, err := unix.Poll(ready, -1)
		if err != nil && err != unix.EINTR || ready[1].Revents != 0 {
			return
		}
		w.look()
	}
}

// look calls the functions of what has happened, and reports whether anything
// has.
func (w *watcher) look() bool {
	w.turn.Lock()
	defer w.turn.Unlock()
	var events [64]unix.EpollEvent
	n, _ := unix.EpollWait(w.epoll, events[:], 0)
	for _, e := range events[:max(n, 0)] {
		w.mu.Lock()
		r := w.ready[e.Fd]
		w.mu.Unlock()
		if r != nil && r.number == e.Pad {
			r.call(e.Events)
		}
	}
	return n > 0
}

func (w *watcher) close() {
	one := [8]byte{1}
	_, _ = unix.Write(w.wake, one[:])
	<-w.done
	w.closeAll()
}

func (w *watcher) closeAll() {
	unix.Close(w.epoll)
	unix.Close(w.wake)
	for _, n := range []*notifier{w.closes, w.writes} {
		if n != nil {
			unix.Close(n.fd)
		}
	}
}
