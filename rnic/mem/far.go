package mem

import "encoding/binary"

// Far is memory of another process (kshim/driver.Far). Any error means that not
// all of it was there.
type Far interface {
	// Read fills dst with what lies at addr.
	Read(dst []byte, addr uint64) error
	// Write copies src to addr. With last, the last aligned word appears there
	// after the rest, and at once.
	Write(addr uint64, src []byte, last bool) error
}

// update replaces the aligned far word at off and returns what it was. It is
// atomic among the operations of one table only, IBV_ATOMIC_HCA: the word's
// process may come between. A word that stays as it is is not written.
func (t *Table) update(m *Memory, off uint64, next func(old uint64) uint64) (old uint64, err error) {
	b := t.word[:]
	if m.Far.Read(b, m.Addr+off) != nil {
		return 0, ErrFault
	}
	old = binary.NativeEndian.Uint64(b)
	changed := next(old)
	if changed == old {
		return old, nil
	}
	binary.NativeEndian.PutUint64(b, changed)
	if m.Far.Write(m.Addr+off, b, true) != nil {
		return 0, ErrFault
	}
	return old, nil
}
