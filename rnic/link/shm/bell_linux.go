package shm

import (
	"encoding/hex"
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// bell is the datagram socket by which its peers wake a device. They know it by
// name, and so none can take another one's wake-up, or shut the socket down, as
// the holder of a descriptor could. A ring is never waited for: MSG_DONTWAIT is
// the call's own, where O_NONBLOCK belongs to all that share a file, and an
// eventfd with a full counter blocks. A bell that is full wakes as well.
type bell struct {
	mu sync.RWMutex // read: fd is in use
	fd int          // guarded by mu; -1: closed
}

// bellName is the abstract name of a device's bell, for one life of it.
func bellName(n nonce) *unix.SockaddrUnix {
	return &unix.SockaddrUnix{Name: "@rdmashim/bell/" + hex.EncodeToString(n[:])}
}

func newBellSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	return fd, os.NewSyscallError("socket", err)
}

func (b *bell) open(n nonce) (err error) {
	if b.fd, err = newBellSocket(); err != nil {
		return err
	}
	if err = unix.Bind(b.fd, bellName(n)); err != nil {
		unix.Close(b.fd)
	}
	return os.NewSyscallError("bind", err)
}

// drain takes up to most rings, and reports whether there was one. Another one
// ends the next sleep at once.
func (b *bell) drain(most int) (rung bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for range most {
		if _, err := unix.Read(b.fd, make([]byte, 1)); err != nil {
			break
		}
		rung = true
	}
	return rung
}

func (b *bell) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	unix.Close(b.fd)
	b.fd = -1
}

// dialBell returns a socket for ringBell.
func dialBell(n nonce) (fd int, err error) {
	if fd, err = newBellSocket(); err != nil {
		return -1, err
	}
	if err = unix.Connect(fd, bellName(n)); err != nil {
		unix.Close(fd)
		return -1, os.NewSyscallError("connect", err)
	}
	return fd, nil
}

// ringBell wakes the device at the other end of a socket.
func ringBell(fd int) {
	for errors.Is(unix.Send(fd, []byte{1}, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL), unix.EINTR) {
	}
}
