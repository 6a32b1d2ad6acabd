package mem

import (
	"encoding/binary"
	"unsafe"
)

// start is where memory begins, in its own process.
func (m *Memory) start() uint64 {
	if m.isFar() {
		return m.Addr
	}
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(m.Bytes))))
}

// lastWord returns where the last aligned word of b, of eight or else four
// bytes, begins and its size; a size of 0 if there is none.
func lastWord(b []byte) (at, size int) {
	return lastWordOf(uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))), len(b))
}

// lastWordOf is lastWord for n bytes at start.
func lastWordOf(start uint64, n int) (at, size int) {
	end := (start + uint64(n)) &^ 3
	switch {
	case end&7 == 0 && end >= start+8:
		return int(end - 8 - start), 8
	case end >= start+4:
		return int(end - 4 - start), 4
	}
	return n, 0
}

// storeWord stores the 8, 4 or 0 bytes of src in dst, which is aligned.
//
//go:norace
func storeWord(dst, src []byte) {
	switch len(src) {
	case 8:
		store64((*uint64)(unsafe.Pointer(unsafe.SliceData(dst))), binary.NativeEndian.Uint64(src))
	case 4:
		store32((*uint32)(unsafe.Pointer(unsafe.SliceData(dst))), binary.NativeEndian.Uint32(src))
	}
}

// addWord adds to the aligned word b and returns what it was.
func addWord(b []byte, add uint64) uint64 {
	return add64((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), add)
}

// casWord stores swap in the aligned word b if it is compare, and returns what
// it was.
func casWord(b []byte, compare, swap uint64) uint64 {
	return cas64((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), compare, swap)
}
