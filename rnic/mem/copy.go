package mem

import (
	"github.com/rdmashim/rdmashim/kshim/fault"
	"github.com/rdmashim/rdmashim/rnic/crc"
)

// read copies from off on into a packet, and sums that where it costs hardly
// more.
func (r *Region) read(dst []byte, off uint64) (crc.Sum, error) {
	if r.mem.Far != nil {
		return crc.Sum{}, r.mem.readFar(dst, off)
	}
	return copyOut(dst, r.bytes(off, uint64(len(dst))))
}

// write copies a packet to off. last says that it ends a message.
func (r *Region) write(off uint64, src []byte, last bool) error {
	if r.mem.Far != nil {
		return r.mem.writeFar(off, src, last)
	}
	return copyIn(r.bytes(off, uint64(len(src))), src, last)
}

// copyOut copies user memory into a packet, and sums it where that costs
// hardly more.
func copyOut(dst, src []byte) (sum crc.Sum, err error) {
	defer fault.End(fault.Begin(), &err, ErrFault)
	return copySum(dst, src), nil
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

// copyIn copies a packet into user memory. At the end of a message the last
// aligned word is stored atomically after the rest.
func copyIn(dst, src []byte, last bool) (err error) {
	defer fault.End(fault.Begin(), &err, ErrFault)
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

func fetchAdd(b []byte, add uint64) (orig uint64, err error) {
	defer fault.End(fault.Begin(), &err, ErrFault)
	raceDisable()
	defer raceEnable()
	return addWord(b, add), nil
}

func compareSwap(b []byte, compare, swap uint64) (orig uint64, err error) {
	defer fault.End(fault.Begin(), &err, ErrFault)
	raceDisable()
	defer raceEnable()
	return casWord(b, compare, swap), nil
}
