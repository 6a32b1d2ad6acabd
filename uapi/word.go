package uapi

import (
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// Uint64At is the 8 bytes of registered memory at mem[offset:] as an atomic
// word, for a program that spins on memory instead of waiting for a
// completion. A peer's write is not Go synchronisation: plain loads of memory
// that a peer is writing are a data race, and the compiler may keep them out
// of a loop. Load here is a load-acquire: once it shows the last aligned word
// of a message, the rest of the message is there too (the soft RNIC stores
// that word after the others). The value is in the machine's byte order, as
// are the operands of PostFetchAdd and PostCompareSwap. docs/memory.md says
// what else a peer may see.
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
