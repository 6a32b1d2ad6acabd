package mem

import (
	"encoding/binary"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/crc"
)

// ListLength is the number of bytes of a scatter list.
func ListLength(list []SGE) uint64 {
	var n uint64
	for i := range list {
		n += uint64(list[i].Length)
	}
	return n
}

// CheckList reports whether every entry of the list lies in a region that
// permits need; to read locally needs no flag. Empty entries are not looked at.
func (t *Table) CheckList(pd PD, list []SGE, need abi.AccessFlags) error {
	for i := range list {
		s := &list[i]
		if err := t.Check(pd, s.LKey, s.Addr, uint64(s.Length), need); err != nil {
			return err
		}
	}
	return nil
}

// Gather fills dst from the list, beginning off bytes into it. It gives the sum
// of dst if that came from one entry, and costs hardly more than the copy.
func (t *Table) Gather(pd PD, list []SGE, off uint64, dst []byte) (sum crc.Sum, err error) {
	for i, whole := 0, len(dst); len(dst) > 0; i++ {
		if i == len(list) {
			return crc.Sum{}, ErrLength
		}
		s := &list[i]
		if off >= uint64(s.Length) {
			off -= uint64(s.Length)
			continue
		}
		n := min(uint64(s.Length)-off, uint64(len(dst)))
		r, at, err := t.lookup(pd, s.LKey, s.Addr+off, n, 0)
		if err == nil {
			sum, err = r.mem.copyOut(dst[:n], at)
		}
		if err != nil {
			return crc.Sum{}, err
		}
		if n < uint64(whole) {
			sum = crc.Sum{}
		}
		dst, off = dst[n:], 0
	}
	return sum, nil
}

// Locate gives the n bytes of the list from off on where they lie, if that is
// in one near region that has a tag, the tag, and where in the region they
// begin. The checks are those of Gather, but that the memory is not looked at.
func (t *Table) Locate(pd PD, list []SGE, off, n uint64) (src []byte, tag any, at uint64) {
	for i := range list {
		s := &list[i]
		if off >= uint64(s.Length) {
			off -= uint64(s.Length)
			continue
		}
		r := t.find(s.LKey)
		if r == nil || r.tag == nil || r.mem.isFar() || r.pd != pd || n > uint64(s.Length)-off {
			break
		}
		if at, err := r.offset(s.Addr+off, n); err == nil {
			return r.mem.bytes(at, int(n)), r.tag, at
		}
		break
	}
	return nil, nil, 0
}

// ScatterWord stores what an atomic found, in the host's byte order.
func (t *Table) ScatterWord(pd PD, list []SGE, word uint64) error {
	binary.NativeEndian.PutUint64(t.word[:], word)
	return t.Scatter(pd, list, 0, t.word[:], true)
}

// Scatter copies src into the list, beginning off bytes into it. last says that
// src ends a message. On an error a part may have been written.
func (t *Table) Scatter(pd PD, list []SGE, off uint64, src []byte, last bool) error {
	for i := 0; len(src) > 0; i++ {
		if i == len(list) {
			return ErrLength
		}
		s := &list[i]
		if off >= uint64(s.Length) {
			off -= uint64(s.Length)
			continue
		}
		n := min(uint64(s.Length)-off, uint64(len(src)))
		r, at, err := t.lookup(pd, s.LKey, s.Addr+off, n, abi.AccessLocalWrite)
		if err == nil {
			err = r.mem.copyIn(at, src[:n], last && n == uint64(len(src)))
		}
		if err != nil {
			return err
		}
		src, off = src[n:], 0
	}
	return nil
}
