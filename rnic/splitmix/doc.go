// Package splitmix implements the finalizer of splitmix64: it makes
// random-looking bits of a number, which never change with the toolchain. It is
// for faults, patterns and tests that must repeat; math/rand/v2 is for the
// rest, crypto/rand for secrets.
package splitmix

// Gamma is the increment of splitmix64's state for each number.
const Gamma = 0x9e3779b97f4a7c15

// Mix returns the number that follows the state x.
func Mix(x uint64) uint64 {
	x += Gamma
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
