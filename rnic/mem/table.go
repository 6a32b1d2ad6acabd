package mem

import (
	"fmt"
	"math/rand/v2"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

const (
	// MaxRegions is how many regions one table holds, as rxe's.
	MaxRegions = 1<<19 - 1

	// restKeys is how many keys of regions that are gone wait before they can
	// be drawn again. Beyond it a draw hits a given key with odds of 2^-32.
	restKeys = 1024

	// minSlots is the size of an empty table, a power of two.
	minSlots = 64
)

// Table holds a device's regions by key. A key is 32 random bits, so that a
// region's key follows neither from another's nor from its own former one, and
// a guess hits one of n regions with odds of n in 2^32.
//
// It is an open-addressing hash table with linear probing. Keys are their own
// hash, being random.
//
// Invariants: len(slots) is a power of two; live regions and resting keys
// together fill at most half of it; there is no empty slot between a key's
// home, key & (len(slots)-1), and its slot.
type Table struct {
	slots  []slot
	used   int // slots that are not empty
	live   int // regions
	random *rand.ChaCha8
	rest   [restKeys]uint32 // keys of regions that are gone, a ring; 0: none
	oldest int              // in rest

	windows map[uint32]*Window // by the upper 24 bits of their keys

	word [8]byte // on its way from or to memory: Far keeps a local one off the stack
}

// slot is empty with the key 0, which no region has: it looks like an unset
// key.
type slot struct {
	key    uint32
	region *Region // nil: the key rests
}

// NewTable makes an empty table whose keys follow from the secret seed.
func NewTable(seed [32]byte) *Table {
	return &Table{slots: make([]slot, minSlots), random: rand.NewChaCha8(seed)}
}

// Len is the number of registered regions.
func (t *Table) Len() int { return t.live }

// Register adds m, whose first byte has the address iova. Memory of no bytes, a
// range that wraps the address space, and remote write or atomic access without
// local write (IBA 10.6.3.1) are EINVAL; a full table is ENOMEM.
func (t *Table) Register(pd PD, m Memory, iova uint64, access abi.AccessFlags) (*Region, error) {
	if err := checkRegion(m.Len, iova, access); err != nil {
		return nil, err
	}
	if t.live >= MaxRegions {
		return nil, fmt.Errorf("all %d memory regions are in use: %w", MaxRegions, syscall.ENOMEM)
	}
	r := &Region{key: t.draw(), pd: pd, iova: iova, mem: m, access: access}
	t.insert(slot{r.key, r})
	t.live++
	return r, nil
}

// draw returns a key that no region has, nor had lately.
func (t *Table) draw() uint32 {
	for {
		key := uint32(t.random.Uint64())
		if key != 0 && t.slots[t.locate(key)].key == 0 && t.windows[key>>8] == nil {
			return key
		}
	}
}

// locate returns the slot that holds key, or else the empty one where it would
// go. key is not 0.
func (t *Table) locate(key uint32) uint32 {
	mask := uint32(len(t.slots) - 1)
	i := key & mask
	for t.slots[i].key != key && t.slots[i].key != 0 {
		i = (i + 1) & mask
	}
	return i
}

func (t *Table) insert(s slot) {
	t.used++
	if 2*t.used > len(t.slots) {
		t.resize(2 * len(t.slots))
	}
	t.slots[t.locate(s.key)] = s
}

// remove empties the slot of key and closes the gap (Knuth, volume 3, 6.4,
// algorithm R).
func (t *Table) remove(key uint32) {
	mask := uint32(len(t.slots) - 1)
	gap := t.locate(key)
	for i := (gap + 1) & mask; t.slots[i].key != 0; i = (i + 1) & mask {
		if home := t.slots[i].key & mask; (i-home)&mask >= (i-gap)&mask {
			t.slots[gap] = t.slots[i]
			gap = i
		}
	}
	t.slots[gap] = slot{}
	t.used--
	if len(t.slots) > minSlots && 8*t.used < len(t.slots) {
		t.resize(len(t.slots) / 2)
	}
}

func (t *Table) resize(n int) {
	old := t.slots
	t.slots = make([]slot, n)
	for _, s := range old {
		if s.key != 0 {
			t.slots[t.locate(s.key)] = s
		}
	}
}

// Deregister removes the region with this key: ErrKey if there is none,
// ErrWindow while windows are bound to it (IBA 10.6.7.2.6). When it returns no
// packet reaches the memory any more.
func (t *Table) Deregister(key uint32) error {
	switch r := t.find(key); {
	case r == nil:
		return ErrKey
	case r.windows > 0:
		return ErrWindow
	}
	t.slots[t.locate(key)].region = nil
	t.live--
	if gone := t.rest[t.oldest]; gone != 0 {
		t.remove(gone)
	}
	t.rest[t.oldest] = key
	t.oldest = (t.oldest + 1) % restKeys
	return nil
}

// Invalidate revokes a key on behalf of a queue pair's LOCAL_INV, or of a SEND
// with invalidate that came to it. Only windows of type 2, and regions that
// allow it, can be revoked.
func (t *Table) Invalidate(pd PD, user, key uint32) error {
	r := t.find(key)
	switch {
	case r == nil:
		return t.invalidateWindow(pd, user, key)
	case r.pd != pd:
		return ErrPD
	case !r.revocable:
		return ErrAccess
	}
	return t.Deregister(key)
}

// find returns the region with this key, or nil.
func (t *Table) find(key uint32) *Region {
	mask := uint32(len(t.slots) - 1)
	for i := key & mask; t.slots[i].key != 0; i = (i + 1) & mask {
		if t.slots[i].key == key {
			return t.slots[i].region
		}
	}
	return nil
}

// lookup returns the region with this key and where in it the n bytes at addr
// begin, after the checks in the order key, protection domain, access rights,
// bounds (IBA 10.6.3). n is not 0.
func (t *Table) lookup(pd PD, key uint32, addr, n uint64, need abi.AccessFlags) (r *Region, off uint64, err error) {
	r = t.find(key)
	switch {
	case r == nil:
		return t.lookupWindow(pd, key, addr, n, need)
	case r.pd != pd:
		return nil, 0, ErrPD
	case r.access&need != need:
		return nil, 0, ErrAccess
	}
	off, err = r.offset(addr, n)
	return r, off, err
}

// Check reports whether n bytes at addr could be reached with this key. No
// bytes need no key (IBA 9.7.4.1.5).
func (t *Table) Check(pd PD, key uint32, addr, n uint64, need abi.AccessFlags) error {
	if n == 0 {
		return nil
	}
	_, _, err := t.lookup(pd, key, addr, n, need)
	return err
}
