package mem

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/crc"
)

// Write copies src to addr of the region with this remote key. last says that
// src ends a message. On ErrFault a part may have been written.
func (t *Table) Write(pd PD, key uint32, addr uint64, src []byte, last bool) error {
	if len(src) == 0 {
		return nil
	}
	r, off, err := t.lookup(pd, key, addr, uint64(len(src)), abi.AccessRemoteWrite)
	if err != nil {
		return err
	}
	return r.mem.copyIn(off, src, last)
}

// Read copies from addr of the region with this remote key into dst, of which
// it gives the sum, if that costs hardly more than the copy.
func (t *Table) Read(pd PD, key uint32, addr uint64, dst []byte) (crc.Sum, error) {
	if len(dst) == 0 {
		return crc.Sum{}, nil
	}
	r, off, err := t.lookup(pd, key, addr, uint64(len(dst)), abi.AccessRemoteRead)
	if err != nil {
		return crc.Sum{}, err
	}
	return r.mem.copyOut(dst, off)
}

// FetchAdd adds to the 64-bit word at addr, in the host's byte order, and
// returns what was there (IBA 9.4.5).
func (t *Table) FetchAdd(pd PD, key uint32, addr, add uint64) (uint64, error) {
	r, off, err := t.atomicWord(pd, key, addr)
	switch {
	case err != nil:
		return 0, err
	case r.mem.isFar():
		return t.update(&r.mem, off, func(old uint64) uint64 { return old + add })
	}
	return r.mem.fetchAdd(off, add)
}

// CompareSwap stores swap in the 64-bit word at addr if it equals compare, and
// returns what was there.
func (t *Table) CompareSwap(pd PD, key uint32, addr, compare, swap uint64) (uint64, error) {
	r, off, err := t.atomicWord(pd, key, addr)
	switch {
	case err != nil:
		return 0, err
	case r.mem.isFar():
		return t.update(&r.mem, off, func(old uint64) uint64 {
			if old == compare {
				return swap
			}
			return old
		})
	}
	return r.mem.compareSwap(off, compare, swap)
}

func (t *Table) atomicWord(pd PD, key uint32, addr uint64) (*Region, uint64, error) {
	if addr%8 != 0 {
		return nil, 0, ErrAlign
	}
	r, off, err := t.lookup(pd, key, addr, 8, abi.AccessRemoteAtomic)
	if err != nil {
		return nil, 0, err
	}
	if (r.mem.start()+off)%8 != 0 { // addr is what iova says; the memory may lie elsewhere
		return nil, 0, ErrAlign
	}
	return r, off, nil
}
