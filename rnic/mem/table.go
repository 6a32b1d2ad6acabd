package mem

import (
	"fmt"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

const (
	genBits   = 8
	indexMask = 1<<(32-genBits) - 1

	// MaxRegions is how many regions one table holds.
	MaxRegions = 1 << 20

	// restSlots is how many freed slots wait before one is used again: a
	// generation has eight bits only, and a stale key should stay stale long.
	restSlots = 256
)

// Table holds a device's regions by key. A key is an index, shifted by a random
// start, and a generation that changes with every use of the index, so that
// neither a stale key nor one of a dead process hits anything.
type Table struct {
	slots []slot
	free  []uint32 // slots to use again, oldest first
	base  uint32   // index of slot 0
	seed  uint64
	live  int
}

type slot struct {
	region *Region // nil: not in use
	gen    uint8
	last   *Region // what was here before; only the planted mistake looks at it
}

// NewTable makes an empty table. seed is random; it decides the keys.
func NewTable(seed uint64) *Table {
	return &Table{seed: seed, base: uint32(mix(seed)) & indexMask}
}

// mix is the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Len is the number of registered regions.
func (t *Table) Len() int { return t.live }

// Register adds mem, whose first byte has the address iova. An empty mem, a
// range that wraps the address space, and remote write or atomic access without
// local write (IBA 10.6.3.1) are EINVAL; a full table is ENOMEM.
func (t *Table) Register(pd PD, mem []byte, iova uint64, access abi.AccessFlags) (*Region, error) {
	if err := checkRegion(mem, iova, access); err != nil {
		return nil, err
	}
	if t.live >= MaxRegions {
		return nil, fmt.Errorf("all %d memory regions are in use: %w", MaxRegions, syscall.ENOMEM)
	}
	i := t.takeSlot()
	r := &Region{key: t.key(i), pd: pd, iova: iova, mem: mem, access: access}
	t.slots[i].region = r
	t.live++
	return r, nil
}

// takeSlot returns a slot with a generation that was not in use lately.
func (t *Table) takeSlot() uint32 {
	if len(t.free) > restSlots || len(t.slots) >= MaxRegions+restSlots {
		i := t.free[0]
		t.free = t.free[1:]
		return i
	}
	i := uint32(len(t.slots))
	t.slots = append(t.slots, slot{gen: uint8(mix(t.seed ^ uint64(i)<<32))})
	if t.key(i) == 0 { // 0 looks like an unset key
		t.slots[i].gen++
	}
	return i
}

func (t *Table) key(i uint32) uint32 {
	return (i+t.base)&indexMask<<genBits | uint32(t.slots[i].gen)
}

// Deregister removes the region with this key: ErrKey if there is none. When it
// returns no packet reaches the memory any more.
func (t *Table) Deregister(key uint32) error {
	r := t.find(key)
	if r == nil || r.key != key {
		return ErrKey
	}
	i := (key>>genBits - t.base) & indexMask
	s := &t.slots[i]
	s.region = nil
	if planted == plantStaleKey {
		s.last = r
	}
	s.gen++
	if t.key(i) == 0 {
		s.gen++
	}
	t.free = append(t.free, i)
	t.live--
	return nil
}

// Invalidate revokes a key on behalf of a SEND with invalidate. Only regions
// that allow it can be revoked.
func (t *Table) Invalidate(pd PD, key uint32) error {
	r := t.find(key)
	switch {
	case r == nil:
		return ErrKey
	case r.pd != pd:
		return ErrPD
	case !r.revocable:
		return ErrAccess
	}
	return t.Deregister(key)
}

// find returns the region with this key, or nil.
func (t *Table) find(key uint32) *Region {
	i := (key>>genBits - t.base) & indexMask
	if i >= uint32(len(t.slots)) {
		return nil
	}
	s := &t.slots[i]
	if planted == plantStaleKey && s.region == nil {
		return s.last
	}
	if s.region == nil || (s.region.key != key && planted != plantStaleKey) {
		return nil
	}
	return s.region
}

// lookup returns the n bytes at addr of the region with this key, after the
// checks in the order key, protection domain, access rights, bounds (IBA 10.6.3). n is not 0.
func (t *Table) lookup(pd PD, key uint32, addr, n uint64, need abi.AccessFlags) ([]byte, error) {
	r := t.find(key)
	switch {
	case r == nil:
		return nil, ErrKey
	case r.pd != pd:
		return nil, ErrPD
	case r.access&need != need:
		return nil, ErrAccess
	}
	return r.window(addr, n)
}

// Check reports whether n bytes at addr could be reached with this key. No bytes
// need no key (IBA 9.7.4.1.5).
func (t *Table) Check(pd PD, key uint32, addr, n uint64, need abi.AccessFlags) error {
	if n == 0 {
		return nil
	}
	_, err := t.lookup(pd, key, addr, n, need)
	return err
}
