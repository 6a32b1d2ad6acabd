package mem

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
)

// PD is a protection domain: regions and queue pairs of different domains
// cannot be used together (IBA 10.2.3).
type PD uint32

// SGE is an entry of a scatter or gather list: struct ib_sge.
type SGE struct {
	Addr   uint64
	Length uint32
	LKey   uint32
}

// Memory is what a region gives access to: bytes of this process, or Len bytes
// at Addr of another one.
type Memory struct {
	Bytes []byte // nil: far
	Len   uint64
	Far   Far
	Addr  uint64
}

func (m *Memory) isFar() bool { return m.Bytes == nil }

// Near returns the memory that b is.
func Near(b []byte) Memory { return Memory{Bytes: b, Len: uint64(len(b))} }

// bytes returns n bytes of near memory from off on.
func (m *Memory) bytes(off uint64, n int) []byte {
	return m.Bytes[off : off+uint64(n) : off+uint64(n)]
}

// Region is a registered memory region.
type Region struct {
	key       uint32
	pd        PD
	iova      uint64
	access    abi.AccessFlags
	revocable bool
	mem       Memory
	windows   int // bound to it
	tag       any // of the table's owner; nil: none
}

// SetTag gives the region a value of its owner's, by which Locate finds it, or
// with nil none.
func (r *Region) SetTag(tag any) { r.tag = tag }

// Tag is what SetTag set.
func (r *Region) Tag() any { return r.tag }

// Key is both the region's L_Key and its R_Key, as with rxe.
func (r *Region) Key() uint32 { return r.key }

// IOVA is the address of the region's first byte for local and remote users.
func (r *Region) IOVA() uint64 { return r.iova }

// AllowInvalidate lets a SEND with invalidate revoke the region's key. Regions
// that user space registers are not of that kind (IBA 10.6.5,
// rxe_invalidate_mr).
func (r *Region) AllowInvalidate() { r.revocable = true }

// offset returns where in the region the n bytes at addr begin. n is not 0.
func (r *Region) offset(addr, n uint64) (uint64, error) {
	off := addr - r.iova // below iova it wraps and exceeds any length
	if off > r.mem.Len || n > r.mem.Len-off {
		return 0, ErrBounds
	}
	return off, nil
}
