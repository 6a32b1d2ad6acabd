package shm

import (
	"sync/atomic"
	"unsafe"
)

// word is the atomic word of shared memory at an offset that is a multiple of
// eight; the memory begins at a page.
func word(b []byte, at int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(b[at : at+8])))
}
