package uapi

import (
	"fmt"
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/ring"
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

// Uint64At is the 8 bytes of registered memory at mem[offset:] as an atomic
// word, for a program that spins on memory instead of waiting for a completion.
// A peer's write is not Go synchronisation: plain loads of memory that a peer
// is writing are a data race, and the compiler may keep them out of a loop.
// Load here is a load-acquire: once it shows the last aligned word of a
// message, the rest of the message is there too (the soft RNIC stores that word
// after the others). The value is in the machine's byte order, as are the
// operands of FetchAdd and CompareSwap. docs/memory.md says what else a peer
// may see.
//
// The address, not the offset, must be a multiple of 8, else EINVAL; Alloc's
// memory begins at one. It is valid as long as mem is.
func Uint64At(mem []byte, offset int) (*atomic.Uint64, error) {
	if w := ring.Word[atomic.Uint64](mem, offset); w != nil {
		return w, nil
	}
	return nil, opError("Uint64At", "", errNoWord(mem, offset, 8))
}

// Uint32At is Uint64At for 4 bytes.
func Uint32At(mem []byte, offset int) (*atomic.Uint32, error) {
	if w := ring.Word[atomic.Uint32](mem, offset); w != nil {
		return w, nil
	}
	return nil, opError("Uint32At", "", errNoWord(mem, offset, 4))
}

func errNoWord(mem []byte, offset, size int) error {
	return errs.Explain(syscall.EINVAL, "offset %d of %d bytes is not an aligned word of %d bytes", offset, len(mem), size)
}
