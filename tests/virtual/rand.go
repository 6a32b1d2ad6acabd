package virtual

import (
	"encoding/binary"

	"github.com/rdmashim/rdmashim/rnic/splitmix"
)

// Rand is a small generator (splitmix64) whose sequence never changes with the
// toolchain: a seed that failed once fails for good.
type Rand struct{ state uint64 }

// NewRand starts a sequence.
func NewRand(seed uint64) Rand { return Rand{state: seed} }

// Uint64 returns the next 64 bits.
func (r *Rand) Uint64() uint64 {
	x := splitmix.Mix(r.state)
	r.state += splitmix.Gamma
	return x
}

// Intn returns a number of 0 … n-1; n is at least 1.
func (r *Rand) Intn(n int) int { return int(r.Uint64() % uint64(n)) }

// Between returns a number of lo … hi.
func (r *Rand) Between(lo, hi int) int { return lo + r.Intn(hi-lo+1) }

// Hit is true with probability p.
func (r *Rand) Hit(p float64) bool { return float64(r.Uint64()>>11) < p*(1<<53) }

// Fork starts a sequence of its own, so that what one part draws does not move
// another.
func (r *Rand) Fork() Rand { return Rand{state: r.Uint64()} }

// Fill overwrites b with random bytes.
func (r *Rand) Fill(b []byte) {
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, r.Uint64())
		b = b[8:]
	}
	if len(b) > 0 {
		x := r.Uint64()
		for i := range b {
			b[i] = byte(x >> (8 * i))
		}
	}
}
