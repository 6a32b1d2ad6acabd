package mem

import (
	"github.com/rdmashim/rdmashim/kshim/fault"
	"github.com/rdmashim/rdmashim/rnic/crc"
)

// copyOut copies from off on into a packet, and sums that where it costs hardly
// more.
func (m *Memory) copyOut(dst []byte, off uint64) (sum crc.Sum, err error) {
	if m.isFar() {
		return crc.Sum{}, m.readFar(dst, off)
	}
	defer fault.End(fault.Begin(), &err, ErrFault)
	return copySum(dst, m.bytes(off, len(dst))), nil
}

// Readable reports whether user memory that is copied later is there now: a
// byte of each page is read.
func Readable(src []byte) bool {
	_, err := probe(src)
	return err == nil
}

//go:norace
func probe(src []byte) (seen byte, err error) {
	defer fault.End(fault.Begin(), &err, ErrFault)
	for at := 0; at < len(src); at += leastPage {
		seen ^= src[at]
	}
	return seen ^ src[len(src)-1], nil
}

// leastPage is the size in bytes of the smallest pages of memory that there
// are.
const leastPage = 4096

// copyIn copies a packet to off. At the end of a message the last aligned word
// is stored atomically after the rest.
func (m *Memory) copyIn(off uint64, src []byte, last bool) (err error) {
	if m.isFar() {
		return m.writeFar(off, src, last)
	}
	defer fault.End(fault.Begin(), &err, ErrFault)
	dst := m.bytes(off, len(src))
	if !last {
		copyBytes(dst, src)
		return nil
	}
	at, size := lastWord(dst)
	copyBytes(dst[:at], src[:at])
	copyBytes(dst[at+size:], src[at+size:])
	raceDisable()
	defer raceEnable()
	storeWord(dst[at:at+size], src[at:at+size])
	return nil
}

// fetchAdd adds to the aligned word at off and returns what it was.
func (m *Memory) fetchAdd(off, add uint64) (orig uint64, err error) {
	defer fault.End(fault.Begin(), &err, ErrFault)
	raceDisable()
	defer raceEnable()
	return addWord(m.bytes(off, 8), add), nil
}

// compareSwap stores swap in the aligned word at off if it is compare, and
// returns what it was.
func (m *Memory) compareSwap(off, compare, swap uint64) (orig uint64, err error) {
	defer fault.End(fault.Begin(), &err, ErrFault)
	raceDisable()
	defer raceEnable()
	return casWord(m.bytes(off, 8), compare, swap), nil
}
