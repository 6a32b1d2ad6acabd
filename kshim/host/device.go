//go:build linux && (amd64 || arm64 || loong64 || mips64le || ppc64le || riscv64)

package host

import (
	"context"
	"encoding/binary"
	"io"
	"sync"
	"syscall"
	"unsafe"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
)

// device is an open file whose calls end by themselves: a device file, or an
// attribute. The kernel itself says which calls it has.
type device struct {
	path    string
	rawBell bool

	mu sync.RWMutex // shared by calls; Close takes it whole, and so waits for them
	fd int          // guarded by mu; -1 when closed
}

var _ kshim.File = (*device)(nil)

// FD is the descriptor's number, for messages; -1 when it is closed.
func (d *device) FD() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.fd
}

// Write is write(2). See kshim.File. It allocates nothing.
func (d *device) Write(cmd []byte) (int, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.fd < 0 {
		return 0, errClosed
	}
	raw := d.rawBell && isDoorbell(cmd)
	for {
		var n uintptr
		var errno syscall.Errno
		if raw {
			n, _, errno = syscall.RawSyscall(syscall.SYS_WRITE, uintptr(d.fd), uintptr(unsafe.Pointer(unsafe.SliceData(cmd))), uintptr(len(cmd)))
		} else {
			n, _, errno = syscall.Syscall(syscall.SYS_WRITE, uintptr(d.fd), uintptr(unsafe.Pointer(unsafe.SliceData(cmd))), uintptr(len(cmd)))
		}
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
			continue
		}
		return 0, &callError{Op: "write", Path: d.path, Errno: errno}
	}
}

// isDoorbell tells POST_SEND from the other commands of write().
func isDoorbell(cmd []byte) bool {
	return len(cmd) >= 4 && binary.LittleEndian.Uint32(cmd) == uint32(abi.CmdPostSend)
}

// Ioctl is ioctl(RDMA_VERBS_IOCTL). See kshim.File. An argument that is shorter
// than its header says is EFAULT: the kernel would write behind it.
func (d *device) Ioctl(arg []byte) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.fd < 0 {
		return errClosed
	}
	if len(arg) < abi.IoctlHdrSize || len(arg) < int(binary.LittleEndian.Uint16(arg)) {
		return &callError{Op: "ioctl", Path: d.path, Msg: "the argument is shorter than its header says", Errno: syscall.EFAULT}
	}
	for {
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(d.fd), abi.RDMAVerbsIoctl, uintptr(unsafe.Pointer(unsafe.SliceData(arg))))
		switch errno {
		case 0:
			return nil
		case syscall.EINTR:
			continue
		}
		return &callError{Op: "ioctl", Path: d.path, Errno: errno}
	}
}

// Mmap maps a queue, once. See kshim.File.
func (d *device) Mmap(offset uint64, length int) ([]byte, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.fd < 0 {
		return nil, errClosed
	}
	return mapQueue(d.path, d.fd, offset, length)
}

// Munmap gives a mapping back. See kshim.File.
func (d *device) Munmap(mapping []byte) error { return unmapQueue(d.path, mapping) }

// Read gives the text of an attribute, then io.EOF. A device file has nothing
// to be read: EINVAL.
func (d *device) Read(_ context.Context, buf []byte) (int, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.fd < 0 {
		return 0, errClosed
	}
	n, err := retry(func() (int, error) { return syscall.Read(d.fd, buf) })
	switch {
	case err != nil:
		return 0, &callError{Op: "read", Path: d.path, Errno: err.(syscall.Errno)}
	case n == 0 && len(buf) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// Pin keeps memory in its place for the kernel. See kshim.File.
func (d *device) Pin(buf []byte) (uint64, func()) { return pinMemory(buf) }

// Close closes the descriptor when the calls on it have ended. See kshim.File.
// The file's objects in the kernel are gone when it returns, unless queues of
// it are still mapped: then it goes with the last of them.
func (d *device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fd < 0 {
		return nil
	}
	fd := d.fd
	d.fd = -1
	unhold(fd)
	syscall.Close(fd) // Linux frees the number whatever it answers
	return nil
}
