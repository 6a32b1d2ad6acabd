package mem

import "encoding/binary"

// Far is memory of another process (kshim/driver.Far). Any error means that not
// all of it was there.
type Far interface {
	// Read fills dst with what lies at addr.
	Read(dst []byte, addr uint64) error
	// Write copies src to addr. Its process sees what one call wrote before
	// what the next one writes, and all of an aligned word at once.
	Write(addr uint64, src []byte) error
}

func (m *Memory) readFar(dst []byte, off uint64) error {
	if m.Far.Read(dst, m.Addr+off) != nil {
		return ErrFault
	}
	return nil
}

// writeFar is copyIn for far memory: the last aligned word of a message is
// written after the rest.
func (m *Memory) writeFar(off uint64, src []byte, last bool) error {
	addr, at, size := m.Addr+off, len(src), 0
	if last {
		at, size = lastWordOf(addr, len(src))
	}
	end := at + size
	for _, p := range [...]struct{ from, to int }{{0, at}, {end, len(src)}, {at, end}} {
		if p.from < p.to && m.Far.Write(addr+uint64(p.from), src[p.from:p.to]) != nil {
			return ErrFault
		}
	}
	return nil
}

// update replaces the aligned far word at off and returns what it was. It is
// atomic among the operations of one table only, IBV_ATOMIC_HCA: the word's
// process may come between. A word that stays as it is is not written.
func (t *Table) update(m *Memory, off uint64, next func(old uint64) uint64) (old uint64, err error) {
	b := t.word[:]
	if err := m.readFar(b, off); err != nil {
		return 0, err
	}
	old = binary.NativeEndian.Uint64(b)
	changed := next(old)
	if changed == old {
		return old, nil
	}
	binary.NativeEndian.PutUint64(b, changed)
	return old, m.writeFar(off, b, false)
}
