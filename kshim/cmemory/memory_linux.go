package cmemory

import (
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/fault"
)

// bottom is where a program's addresses begin (vm.mmap_min_addr). A fault in
// the first page is a nil pointer's to Go, and no memory fault.
const bottom = 1 << 16

// top is where a program's addresses end (TASK_SIZE of amd64; arm64 has more,
// and nothing there).
const top = 1 << 47

// heapFrom and heapTo are where Go puts its heap on Linux. A slice of memory
// there that Go did not allocate would stop the collector, and no address of a
// C program is there.
const heapFrom, heapTo = 0x00c0_0000_0000, 0x00d0_0000_0000

// Slice is the n bytes of a C program at addr, or nil where none can be.
// Whether memory is there, only Probe tells.
func Slice(addr, n uint64) []byte {
	end := addr + n
	if addr < bottom || n == 0 || end < addr || end > top || addr < heapTo && end > heapFrom {
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

// Probe reports EFAULT for memory that cannot be read, or written if write is
// asked for, without a fault, which would be a handler's of the program. Before
// Linux 5.14 it does not find memory that cannot be written.
func Probe(mem []byte, write bool) error {
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

// Guard calls access, which reads or writes slices of Slice, and returns EFAULT
// if that faults. Any other panic passes.
func Guard(access func()) (err error) {
	defer fault.End(fault.Begin(), &err, syscall.EFAULT)
	access()
	return nil
}
