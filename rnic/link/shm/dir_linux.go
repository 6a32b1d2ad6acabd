package shm

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/privatefile"
)

const (
	// locking bounds the wait for the lock of a directory, which devices hold
	// while they take their names.
	locking = 2 * time.Second
	// leaving is how long a device that ends may still have its name when its
	// UDP port is another's.
	leaving = 500 * time.Millisecond
	// maxSweep bounds the names of a directory that are looked at.
	maxSweep = 4 * maxDevices
)

// dirOf is the directory in which the device at an address is met; "" for one
// that is met by its network namespace's abstract name.
func (o *Options) dirOf(device netip.AddrPort) string {
	if device.Addr().IsGlobalUnicast() {
		return o.Dir
	}
	return ""
}

// name is the name of the socket at which a device is met.
func (o *Options) name(device netip.AddrPort) string {
	if dir := o.dirOf(device); dir != "" {
		return filepath.Join(dir, device.String())
	}
	return socketName(device)
}

// absentName holds for the error of a dial to a name that no device has.
func absentName(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT)
}

// mode is the permission of the sockets in the directory.
func (o *Options) mode() os.FileMode {
	if len(o.Users) > 0 {
		return 0o666 // of those that the directory lets in
	}
	return 0o600
}

// checkDir returns an error, EPERM, for a directory that users reach that are
// not met, or in which one may remove another's names.
func (o *Options) checkDir() error {
	if len(o.Users) == 0 {
		return privatefile.CheckDir(o.Dir)
	}
	info, err := os.Lstat(o.Dir)
	if err != nil {
		return err
	}
	owner, mode := int(info.Sys().(*syscall.Stat_t).Uid), info.Mode()
	switch {
	case !mode.IsDir():
		return &fs.PathError{Op: "check", Path: o.Dir, Err: syscall.ENOTDIR}
	case owner != 0 && owner != os.Geteuid() && !slices.Contains(o.Users, owner):
		return fmt.Errorf("%s belongs to user %d: %w", o.Dir, owner, syscall.EPERM)
	case mode&0o007 != 0 || mode&0o020 != 0 && mode&os.ModeSticky == 0:
		return fmt.Errorf("%s has mode %v: give it a group of the users that meet in it, and chmod 1770 %s: %w", o.Dir, mode, o.Dir, syscall.EPERM)
	}
	return nil
}

// listen takes the device's name. In a directory a name that nobody listens at
// is that of a device that was killed, and is removed before.
func (l *Link) listen() (*net.UnixListener, error) {
	at := l.zoned(l.local)
	dir := l.options.dirOf(at)
	if dir == "" {
		return takeName(unixAddr(at))
	}
	if err := l.options.checkDir(); err != nil {
		return nil, fmt.Errorf("%s: %w", EnvDir, err)
	}
	unlock, err := lock(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: lock %s: %w", EnvDir, dir, err)
	}
	defer unlock()
	addr := &net.UnixAddr{Net: "unixpacket", Name: l.options.name(at)}
	if err := vacate(addr); err != nil {
		return nil, fmt.Errorf("%s: %s is there already: devices that share a directory need addresses that differ, or shm=off: %w", EnvDir, addr.Name, err)
	}
	sweepBells(dir)
	listener, err := net.ListenUnix("unixpacket", addr)
	if err == nil {
		if err = os.Chmod(addr.Name, l.options.mode()); err != nil {
			listener.Close()
		}
	}
	return listener, err
}

// takeName listens at a name, which a device that ends has for a moment longer
// than its UDP port.
func takeName(addr *net.UnixAddr) (*net.UnixListener, error) {
	for end := time.Now().Add(leaving); ; time.Sleep(10 * time.Millisecond) {
		listener, err := net.ListenUnix(addr.Net, addr)
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(end) {
			return listener, err
		}
	}
}

// vacate removes the name of a device that was killed, and is ErrTwice for that
// of a device that lives, and does not end.
func vacate(addr *net.UnixAddr) error {
	for end := time.Now().Add(leaving); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.DialUnix(addr.Net, nil, addr)
		if errors.Is(err, syscall.ECONNREFUSED) {
			_ = os.Remove(addr.Name)
		}
		if err == nil {
			c.Close()
		}
		if err != nil {
			return nil // what else there is, listening tells
		}
		if time.Now().After(end) {
			return ErrTwice
		}
	}
}

// lock has a directory locked until unlock.
func lock(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(locking); ; time.Sleep(time.Millisecond) {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(end) {
			f.Close()
			return nil, err
		}
	}
}

// sweepBells removes the bells of devices that were killed.
func sweepBells(dir string) {
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	defer f.Close()
	entries, _ := f.ReadDir(maxSweep)
	for _, e := range entries {
		if e.Type() != fs.ModeSocket || !strings.HasPrefix(e.Name(), bellPrefix) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Net: "unixgram", Name: path})
		if err == nil {
			c.Close()
		} else if errors.Is(err, syscall.ECONNREFUSED) {
			_ = os.Remove(path)
		}
	}
}
