//go:build linux && !udpportable

package udp

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// quiet is a socket that the netpoller watches during a Wait only. A watched
// socket wakes a thread with every datagram that arrives, and every one that
// has left, although no goroutine waits: a program that polls would pay for
// that with each packet.
type quiet struct {
	fd     int // unknown to the netpoller
	bell   int // an eventfd that ends a Sleep
	closed atomic.Bool
	use    sync.RWMutex // read: fd is in use; write: it is closed

	look  func(fd uintptr) bool // mayRead
	looks int                   // the waiter's

	mu        sync.Mutex
	watch     *os.File        // guarded by mu: the socket's readiness for the netpoller, or nil
	ready     syscall.RawConn // guarded by mu: watch's
	set       int             // guarded by mu: watch's descriptor
	armed     bool            // guarded by mu: the netpoller hears of datagrams
	interrupt bool            // guarded by mu: the next Wait is not to block
	sleeping  bool            // guarded by mu: a Sleep wants the bell
	rung      bool            // guarded by mu: the bell can be read

	other atomic.Int32 // Watch's descriptor and one, or 0
}

// detach takes a socket out of the netpoller. It closes conn, also on an error.
func detach(conn *net.UDPConn) (conduit, error) {
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	q := &quiet{}
	q.look = q.mayRead
	ctl := raw.Control(func(fd uintptr) { q.fd, err = duplicate(int(fd)) })
	if err = errors.Join(ctl, err); err != nil {
		return nil, err
	}
	if q.bell, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		unix.Close(q.fd)
		return nil, os.NewSyscallError("eventfd", err)
	}
	// Every device waits sooner or later. A device that lacks the descriptors
	// to wait is not opened, rather than lost when it first waits.
	if _, err = q.watched(); err != nil {
		unix.Close(q.fd)
		unix.Close(q.bell)
		return nil, err
	}
	return q, q.arm(false)
}

func duplicate(fd int) (int, error) {
	n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	return n, os.NewSyscallError("fcntl", err)
}

// Control implements conduit.
func (q *quiet) Control(f func(fd uintptr)) error {
	q.use.RLock()
	defer q.use.RUnlock()
	if q.closed.Load() {
		return net.ErrClosed
	}
	f(uintptr(q.fd))
	return nil
}

// Wait implements conduit.
func (q *quiet) Wait() error {
	ready, err := q.watched()
	if ready == nil || err != nil {
		return err
	}
	q.looks = 0
	err = ready.Read(q.look)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.watch != nil {
		_ = q.arm(false)
	}
	switch {
	case q.closed.Load() || errors.Is(err, os.ErrClosed):
		return net.ErrClosed
	case errors.Is(err, os.ErrDeadlineExceeded):
		q.takeInterrupt()
		return nil
	}
	return err
}

// Sleep implements conduit.
func (q *quiet) Sleep(d time.Duration) error {
	blocks, err := q.fallAsleep()
	if blocks && err == nil {
		q.block(d, int32(q.bell))
		q.wakeUp()
	}
	return err
}

// fallAsleep begins a Sleep. It returns false for one that was interrupted
// before.
func (q *quiet) fallAsleep() (blocks bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed.Load() {
		return false, net.ErrClosed
	}
	q.sleeping = !q.takeInterrupt()
	return q.sleeping, nil
}

// wakeUp ends a Sleep, with the interruption that ended it.
func (q *quiet) wakeUp() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sleeping = false
	if q.rung {
		var count [8]byte
		_, _ = unix.Read(q.bell, count[:])
		q.rung = false
	}
	q.takeInterrupt()
}

// takeInterrupt ends an interruption, if there is one. Preconditions, here and
// below: mu is held.
func (q *quiet) takeInterrupt() bool {
	did := q.interrupt
	q.interrupt = false
	if did && q.watch != nil {
		_ = q.watch.SetReadDeadline(time.Time{})
	}
	return did
}

// ring ends a Sleep.
func (q *quiet) ring() {
	if q.sleeping && !q.rung {
		_, _ = unix.Write(q.bell, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // in either order of bytes
		q.rung = true
	}
}

// Interrupt implements conduit.
func (q *quiet) Interrupt() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.interrupt = true
	q.ring()
	if q.watch != nil {
		_ = q.watch.SetReadDeadline(longAgo)
	}
}

// watched lets the netpoller watch the socket. It gives nothing for a Wait that
// was interrupted before it began.
func (q *quiet) watched() (syscall.RawConn, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed.Load():
		return nil, net.ErrClosed
	case q.interrupt && q.watch == nil:
		q.interrupt = false
		return nil, nil
	}
	if q.watch != nil {
		return q.ready, q.arm(true)
	}
	fd, err := readiness(q.fd)
	if err != nil {
		return nil, err
	}
	w := os.NewFile(uintptr(fd), "udp") // it does not block, so the netpoller takes it
	ready, err := w.SyscallConn()
	if err == nil {
		err = w.SetReadDeadline(time.Time{}) // an error if it did not
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	q.watch, q.ready, q.set, q.armed = w, ready, fd, true
	return ready, nil
}

// arm lets the netpoller hear of datagrams and of Watch's descriptor, and of
// what is there already, or keeps it from it. Preconditions: mu is held, watch
// is there.
func (q *quiet) arm(on bool) error {
	if q.armed == on {
		return nil
	}
	var e unix.EpollEvent
	if on {
		e.Events = unix.EPOLLIN
	}
	q.armed = on
	err := unix.EpollCtl(q.set, unix.EPOLL_CTL_MOD, q.fd, &e)
	if other := int(q.other.Load()) - 1; other >= 0 && err == nil {
		err = unix.EpollCtl(q.set, unix.EPOLL_CTL_MOD, other, &e)
	}
	return os.NewSyscallError("epoll_ctl", err)
}

// readiness makes a descriptor that can be read when fd can. The netpoller
// would watch the socket itself for room to send too, which wakes a thread when
// the peer has taken a datagram. It is an epoll set of one.
func readiness(fd int) (int, error) {
	set, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return -1, os.NewSyscallError("epoll_create1", err)
	}
	err = unix.EpollCtl(set, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN})
	if err == nil {
		err = unix.SetNonblock(set, true)
	}
	if err != nil {
		unix.Close(set)
		return -1, os.NewSyscallError("epoll_ctl", err)
	}
	return set, nil
}

// mayRead looks at the set itself the first time, when the netpoller is set
// up to report what comes after, and believes the netpoller the second time.
func (q *quiet) mayRead(fd uintptr) bool {
	if q.looks++; q.looks > 1 {
		return true
	}
	return readable(fd)
}

func (q *quiet) unwatch() {
	if q.watch != nil {
		q.watch.Close()
		q.watch, q.ready = nil, nil
	}
}

// fullWait is the longest wait for a full send buffer, in milliseconds; then
// the sender looks whether the socket was closed.
const fullWait = 10

// Write implements conduit. It blocks a thread when the buffer is full, which
// is rare.
func (q *quiet) Write(f func(fd uintptr) bool) error {
	q.use.RLock()
	defer q.use.RUnlock()
	for !q.closed.Load() {
		if f(uintptr(q.fd)) {
			return nil
		}
		p := [1]unix.PollFd{{Fd: int32(q.fd), Events: unix.POLLOUT}}
		_, _ = unix.Poll(p[:], fullWait)
	}
	return net.ErrClosed
}

// Doze implements conduit.
func (q *quiet) Doze(d time.Duration) { q.block(d, -1) }

// block blocks the thread until a datagram has come, Watch's descriptor or bell
// can be read, or for d. A descriptor of -1 is left out.
func (q *quiet) block(d time.Duration, bell int32) {
	q.use.RLock()
	defer q.use.RUnlock()
	if q.closed.Load() {
		return
	}
	t := unix.NsecToTimespec(int64(d))
	fds := [...]unix.PollFd{{Fd: int32(q.fd), Events: unix.POLLIN}, {Fd: bell, Events: unix.POLLIN}, {Fd: q.other.Load() - 1, Events: unix.POLLIN}}
	for {
		// A signal, as Go's collector sends threads, interrupts the call, which
		// leaves in t what is left of d.
		if _, err := unix.Ppoll(fds[:], &t, nil); err != unix.EINTR {
			return
		}
	}
}

// Watch lets Wait and Doze end for another descriptor, too. The set has a
// second member then.
func (q *quiet) Watch(fd int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.watch == nil {
		return net.ErrClosed
	}
	var e unix.EpollEvent
	if q.armed {
		e.Events = unix.EPOLLIN
	}
	if err := unix.EpollCtl(q.set, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
		return os.NewSyscallError("epoll_ctl", err)
	}
	q.other.Store(int32(fd) + 1)
	return nil
}

// Close implements conduit.
func (q *quiet) Close() error {
	if q.closed.Swap(true) {
		return nil
	}
	q.mu.Lock()
	q.unwatch()
	q.ring()
	q.mu.Unlock()
	q.use.Lock()
	defer q.use.Unlock()
	return errors.Join(unix.Close(q.fd), unix.Close(q.bell))
}
