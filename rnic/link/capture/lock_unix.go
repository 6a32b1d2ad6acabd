//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package capture

import (
	"os"
	"syscall"
)

// openFlags: opening a pipe must not wait for a reader (ENXIO says that there
// is none), nor closing one for its reader.
const openFlags = syscall.O_NONBLOCK

// lock makes f this capture's until it is closed; of two devices that were
// given one file the second gets an error. File systems without locks are
// trusted.
func lock(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	var taken error
	if err := raw.Control(func(fd uintptr) {
		if err := syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB); err == syscall.EWOULDBLOCK {
			taken = err
		}
	}); err != nil {
		return nil
	}
	return taken
}
