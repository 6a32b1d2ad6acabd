//go:build linux && (amd64 || arm64)

package notif

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Notification is a held call: struct seccomp_notif (linux/seccomp.h).
type Notification struct {
	ID    uint64 // names the call in the answer
	PID   uint32 // the calling thread, 0 from a PID namespace that is not below
	Flags uint32
	NR    int32  // the call's number on Arch
	Arch  uint32 // AUDIT_ARCH_X86_64 and so on
	IP    uint64 // the instruction pointer
	Args  [6]uint64
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	val   int64
	errno int32 // negative
	flags uint32
}

// addition is struct seccomp_notif_addfd.
type addition struct {
	id         uint64
	flags      uint32
	srcFD      uint32
	newFD      uint32
	newFDFlags uint32
}

// Listener is the descriptor at which the held calls of the programs under a
// filter arrive. One goroutine receives; any may answer. When the last
// duplicate of the descriptor is closed, held calls and those to come fail with
// ENOSYS, also opens of ordinary files.
type Listener struct {
	Window  Window // the filter's
	fd      int
	journal *journal // of a shared one

	mu     sync.RWMutex // held for each use of fd and journal but Receive's
	closed bool         // guarded by mu
}

// NewListener returns the listener with the descriptor fd, which it owns.
func NewListener(fd int, w Window) *Listener { return &Listener{Window: w, fd: fd} }

// FD returns the descriptor.
func (l *Listener) FD() int { return l.fd }

// Close closes the descriptor. It does not end a Receive. It waits for answers
// on their way: a program may have its last one, and end, before that returns.
func (l *Listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	err := unix.Close(l.fd)
	if l.journal != nil {
		err = errors.Join(err, l.journal.close())
	}
	return err
}

// Receive waits for the next call and stores it in n. It returns io.EOF when no
// program under the filter is left: before Linux 6.11 those that ended and have
// not been waited for count as well. The goroutine stays locked to its thread,
// since the wake-up of another one costs more than the call.
func (l *Listener) Receive(n *Notification) error {
	for ask := !endsReceive(); ; ask = true {
		if ask {
			if err := l.await(); err != nil {
				return err
			}
		}
		*n = Notification{} // Linux demands it
		_, err := ioctlWait(l.fd, unix.SECCOMP_IOCTL_NOTIF_RECV, n)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINTR) {
			continue // the caller was killed or took a signal, or none is left
		}
		if err == nil && l.journal != nil {
			l.journal.add(l, n)
		}
		return err
	}
}

// endsReceive reports whether NOTIF_RECV ends with the last program, as it does
// since Linux 6.11. Before, a poll has to tell that there may be a call.
var endsReceive = sync.OnceValue(func() bool {
	var u unix.Utsname
	var major, minor int
	_ = unix.Uname(&u)
	_, _ = fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor)
	return major > 6 || major == 6 && minor >= 11
})

// await waits for a call; io.EOF when no program is left.
func (l *Listener) await() error {
	for {
		p := [1]unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}}
		_, err := unix.Poll(p[:], -1)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case p[0].Revents&unix.POLLNVAL != 0:
			return unix.EBADF
		case p[0].Revents&unix.POLLIN == 0: // POLLHUP
			return io.EOF
		}
		return nil
	}
}

// Ready reports whether there is something to receive: a call, or the end.
func (l *Listener) Ready() bool {
	p := [1]unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(p[:], 0)
	return n > 0 || err != nil
}

// Value answers a call with its result. This and the other answers return
// ENOENT when the call has ended by a signal or the listener is closed, and
// EINPROGRESS when it has been answered already.
func (l *Listener) Value(id uint64, v int64) error { return l.answer(&response{id: id, val: v}) }

// Fail answers a call with an error. ERESTARTSYS, 512, restarts the call or
// makes it EINTR, as the handler of the pending signal wants.
func (l *Listener) Fail(id uint64, errno syscall.Errno) error {
	return l.answer(&response{id: id, errno: -int32(errno)})
}

// Continue lets Linux do the call.
func (l *Listener) Continue(id uint64) error {
	return l.answer(&response{id: id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE})
}

func (l *Listener) answer(r *response) error {
	err := request(l, unix.SECCOMP_IOCTL_NOTIF_SEND, r)
	l.answered(r.id)
	return err
}

// request does a request that does not wait.
func request[T any](l *Listener, number uintptr, arg *T) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return unix.ENOENT
	}
	return ioctl(l.fd, number, arg)
}

// answered takes a call out of the journal.
func (l *Listener) answered(id uint64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.journal != nil && !l.closed {
		l.journal.remove(id)
	}
}

// Valid reports whether the call is still held. If it is, what was read before
// from the process with its PID was the caller's, and not that of a process
// that got the same PID later.
func (l *Listener) Valid(id uint64) bool {
	return request(l, unix.SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == nil
}

// SyncWakeUp makes Linux run the receiver on the caller's processor, and the
// caller on the one that answers. It returns EINVAL before Linux 6.6.
func (l *Listener) SyncWakeUp() error {
	return setFlags(l.fd, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
}

// Add puts a duplicate of fd into the calling process, at the number at, whose
// descriptor it replaces, or at the lowest free one when at is negative. It
// returns the number, and leaves the call held.
//
// Errors are the program's, EMFILE, or EBADF for a number beyond its limit.
func (l *Listener) Add(id uint64, fd, at int, cloexec bool) (int, error) {
	a := addition{id: id, srcFD: uint32(fd)}
	if at >= 0 {
		a.flags |= unix.SECCOMP_ADDFD_FLAG_SETFD
		a.newFD = uint32(at)
	}
	if cloexec {
		a.newFDFlags = unix.O_CLOEXEC
	}
	for {
		n, err := l.add(&a)
		if err == nil || !errors.Is(err, unix.EINTR) { // EINTR: Linux has taken it back
			return n, err
		}
	}
}

// add does ADDFD, which waits for the program.
func (l *Listener) add(a *addition) (int, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return -1, unix.ENOENT
	}
	return ioctlWait(l.fd, unix.SECCOMP_IOCTL_NOTIF_ADDFD, a)
}
