//go:build linux

package main

import (
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/emu"
)

// program is the C program around this library, as the mini kernel sees it
// (emu.Host).
type program struct {
	kinds []uint32 // by descriptor: the stub's table
}

var _ emu.Host = (*program)(nil)

// bottomOfUser is where a program's addresses begin (vm.mmap_min_addr). A fault
// in the first page is a nil pointer's to Go, and no memory fault.
const bottomOfUser = 1 << 16

// topOfUser is where a program's addresses end (TASK_SIZE of amd64; arm64 has
// more, and nothing there).
const topOfUser = 1 << 47

// heapFrom and heapTo are where Go puts its heap on Linux. A slice of memory
// there that Go did not allocate would stop the collector, and no address of a
// C program is there.
const heapFrom, heapTo = 0x00c0_0000_0000, 0x00d0_0000_0000

// Memory implements emu.Host.
func (p *program) Memory(addr, n uint64) []byte {
	end := addr + n
	if addr < bottomOfUser || n == 0 || end < addr || end > topOfUser || addr < heapTo && end > heapFrom {
		return nil
	}
	return unsafe.Slice((*byte)(at(uintptr(addr))), n)
}

// at is the memory at an address, which the collector does not know.
func at(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

// populates reports whether madvise can say that memory is there (Linux 5.14).
var populates = sync.OnceValue(func() bool {
	b, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return false
	}
	defer unix.Munmap(b)
	return unix.Madvise(b, unix.MADV_POPULATE_WRITE) == nil
})

// Probe implements emu.Host without a fault, which would be a handler's of the
// program. Before Linux 5.14 it does not find out what cannot be written.
func (p *program) Probe(mem []byte, write bool) error {
	if len(mem) == 0 {
		return nil
	}
	page := uintptr(os.Getpagesize())
	first := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	from, to := first&^(page-1), (first+uintptr(len(mem))+page-1)&^(page-1)
	if !populates() {
		return peekPages(from, to, page)
	}
	advice := unix.MADV_POPULATE_READ
	if write {
		advice = unix.MADV_POPULATE_WRITE
	}
	for {
		_, _, errno := unix.Syscall(unix.SYS_MADVISE, from, to-from, uintptr(advice))
		switch errno {
		case 0:
			return nil
		case unix.EINTR, unix.EAGAIN:
		default:
			return unix.EFAULT
		}
	}
}

// peekPages reads a byte of each page, by the kernel.
func peekPages(from, to, page uintptr) error {
	var b byte
	local := unix.Iovec{Base: &b}
	local.SetLen(1)
	for ; from < to; from += page {
		if _, err := unix.ProcessVMReadv(os.Getpid(), []unix.Iovec{local}, []unix.RemoteIovec{{Base: from, Len: 1}}, 0); err != nil {
			return unix.EFAULT
		}
	}
	return nil
}

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
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			err = syscall.EFAULT
		}
	}()
	return *(*uint16)(at(addr)), nil
}
