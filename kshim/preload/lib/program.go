//go:build linux

package main

import (
	"encoding/binary"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/cmemory"
	"github.com/rdmashim/rdmashim/kshim/emu"
)

// program is the C program around this library, as the mini kernel sees it
// (emu.Host).
type program struct {
	kinds []uint32 // by descriptor: the stub's table
}

var _ emu.Host = (*program)(nil)

// Memory implements emu.Host.
func (p *program) Memory(addr, n uint64) []byte { return cmemory.Slice(addr, n) }

// Probe implements emu.Host.
func (p *program) Probe(mem []byte, write bool) error { return cmemory.Probe(mem, write) }

// Alloc implements emu.Host: memory that remap can map a second time.
func (p *program) Alloc(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANON)
}

// Free implements emu.Host.
func (p *program) Free(mem []byte) { _ = unix.Munmap(mem) }

// remap maps memory of Alloc once more, for the program to unmap: mremap of
// nothing of a shared mapping gives another one of the same pages.
func remap(mem []byte, addr uintptr, fixed bool) (uintptr, error) {
	flags := uintptr(unix.MREMAP_MAYMOVE)
	if fixed {
		flags |= unix.MREMAP_FIXED
	}
	got, _, errno := unix.Syscall6(unix.SYS_MREMAP, uintptr(unsafe.Pointer(unsafe.SliceData(mem))), 0, uintptr(len(mem)), flags, addr, 0)
	if errno != 0 {
		return 0, errno
	}
	return got, nil
}

// Descriptor implements emu.Host: an eventfd, which is readable while it counts
// one.
func (p *program) Descriptor() (int32, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return 0, err
	}
	if fd >= len(p.kinds) {
		_ = unix.Close(fd)
		return 0, syscall.EMFILE
	}
	atomic.StoreUint32(&p.kinds[fd], 1)
	return int32(fd), nil
}

// Ready implements emu.Host.
func (p *program) Ready(fd int32, ready bool) {
	one := [8]byte{1}
	if ready {
		_, _ = unix.Write(int(fd), one[:])
		return
	}
	poll := []unix.PollFd{{Fd: fd, Events: unix.POLLIN}}
	if n, _ := unix.Poll(poll, 0); n == 1 {
		_, _ = unix.Read(int(fd), one[:])
	}
}

// length reads the length that an ioctl's argument begins with.
func length(addr uintptr) (n uint16, err error) {
	mem := cmemory.Slice(uint64(addr), 2)
	if mem == nil {
		return 0, syscall.EFAULT
	}
	err = cmemory.Guard(func() { n = binary.NativeEndian.Uint16(mem) })
	return n, err
}
