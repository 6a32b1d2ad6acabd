package shm

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
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

	file string // its name in a directory, "" if it is abstract
}

// bellPrefix begins the names of bells in a directory.
const bellPrefix = "bell-"

// bellName is the name of a device's bell, for one life of it: an abstract one,
// or a file's of a directory.
func bellName(dir string, n nonce) *unix.SockaddrUnix {
	if dir != "" {
		return &unix.SockaddrUnix{Name: filepath.Join(dir, bellPrefix+hex.EncodeToString(n[:]))}
	}
	return &unix.SockaddrUnix{Name: "@rdmashim/bell/" + hex.EncodeToString(n[:])}
}

func newBellSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	return fd, os.NewSyscallError("socket", err)
}

func (b *bell) open(dir string, mode os.FileMode, n nonce) (err error) {
	if b.fd, err = newBellSocket(); err != nil {
		return err
	}
	name := bellName(dir, n)
	if err = unix.Bind(b.fd, name); err == nil && dir != "" {
		b.file = name.Name
		err = os.Chmod(b.file, mode)
	}
	if err != nil {
		b.close()
		return fmt.Errorf("bind %s: %w", name.Name, err)
	}
	return nil
}

// drain takes up to most rings, and reports whether there was one. Another one
// ends the next sleep at once. Like ringBell it neither blocks nor tells the Go
// scheduler: the UDP socket beside the bell sees to the monitor (package udp).
func (b *bell) drain(most int) (rung bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for range most {
		if _, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(b.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0); errno != 0 {
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
	if b.file != "" {
		_ = os.Remove(b.file)
	}
}

// dialBell returns a socket for ringBell.
func dialBell(dir string, n nonce) (fd int, err error) {
	if fd, err = newBellSocket(); err != nil {
		return -1, err
	}
	if err = unix.Connect(fd, bellName(dir, n)); err != nil {
		unix.Close(fd)
		return -1, os.NewSyscallError("connect", err)
	}
	return fd, nil
}

// ringBell wakes the device at the other end of a socket, by an empty datagram.
func ringBell(fd int) {
	for {
		if _, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), 0, 0, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0); errno != unix.EINTR {
			return
		}
	}
}
