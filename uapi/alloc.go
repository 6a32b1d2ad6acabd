package uapi

import (
	"fmt"
	"syscall"

	"github.com/rdmashim/rdmashim/uapi/internal/errs"
	"github.com/rdmashim/rdmashim/uapi/internal/pages"
)

// Alloc gives n bytes of zeroed memory that begins at a page boundary and, on
// Unix systems, lies outside the Go heap: the garbage collector never scans or
// counts it. Give it back with Free. n that is not positive is EINVAL, more
// than the system has is ENOMEM.
//
// Any []byte can be registered; aligned memory spares the device's copies the
// crossing of page boundaries.
func Alloc(n int) ([]byte, error) {
	if n <= 0 || n > maxAlloc {
		return nil, opError("Alloc", "", errs.Explain(syscall.EINVAL, "%d bytes are not in 1 … %d", n, maxAlloc))
	}
	mem, err := pages.Alloc(n)
	if err != nil {
		return nil, opError("Alloc", "", fmt.Errorf("%d bytes: %w", n, err))
	}
	return mem, nil
}

// maxAlloc keeps rounding up to a page from overflowing.
const maxAlloc = int(^uint(0)>>1) - 1<<20

// Free gives memory back that Alloc gave; the slice and all made of it must
// not be touched afterwards. While part of it is registered, Free answers
// EBUSY; for anything that is not the start of an allocation, EINVAL. Regions
// of a device that is being closed do not count: the memory goes with the last
// of them.
func Free(mem []byte) error {
	regions, err := pages.Free(mem)
	switch err {
	case syscall.EINVAL:
		err = errs.Explain(err, "the memory is not from Alloc, or was freed")
	case syscall.EBUSY:
		err = errs.Explain(err, "%d memory regions lie in it; deregister them first", regions)
	}
	return opError("Free", "", err)
}
