package mem

import (
	"runtime/debug"

	"github.com/rdmashim/rdmashim/rnic/crc"
)

// faultError is a panic of the runtime that a bad memory access caused while
// debug.SetPanicOnFault was on.
type faultError interface {
	error
	Addr() uintptr
}

// endGuard ends what debug.SetPanicOnFault(true) began. It is to be deferred;
// a fault becomes ErrFault, any other panic goes on.
func endGuard(old bool, err *error) {
	debug.SetPanicOnFault(old)
	if r := recover(); r != nil {
		if _, ok := r.(faultError); !ok {
			panic(r)
		}
		*err = ErrFault
	}
}

// copyOut copies user memory into a packet, and sums it where that costs
// hardly more.
func copyOut(dst, src []byte) (sum crc.Sum, err error) {
	defer endGuard(debug.SetPanicOnFault(true), &err)
	return copySum(dst, src), nil
}

// copyIn copies a packet into user memory. At the end of a message the last
// aligned word is stored atomically after the rest.
func copyIn(dst, src []byte, last bool) (err error) {
	defer endGuard(debug.SetPanicOnFault(true), &err)
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
	defer endGuard(debug.SetPanicOnFault(true), &err)
	raceDisable()
	defer raceEnable()
	return addWord(b, add), nil
}

func compareSwap(b []byte, compare, swap uint64) (orig uint64, err error) {
	defer endGuard(debug.SetPanicOnFault(true), &err)
	raceDisable()
	defer raceEnable()
	return casWord(b, compare, swap), nil
}
