package ring

import (
	"sync/atomic"
	"unsafe"
)

// Word is the n bytes of shared memory at b[off:], for a program that spins on
// memory which the other side writes: n is the size of W, 4 or 8. It is nil
// when they do not lie in b or are not aligned to n.
func Word[W atomic.Uint32 | atomic.Uint64](b []byte, off int) *W {
	var w W
	size := int(unsafe.Sizeof(w))
	if off < 0 || len(b) < size || off > len(b)-size {
		return nil
	}
	p := unsafe.Pointer(&b[off])
	if uintptr(p)%uintptr(size) != 0 {
		return nil
	}
	return (*W)(p)
}
