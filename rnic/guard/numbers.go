package guard

import (
	"math/rand/v2"
	"slices"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// restNumbers is how many numbers of destroyed queue pairs are not drawn:
// packets for them may still be on the way. As many as the communication
// manager keeps connections in TIMEWAIT.
const restNumbers = 4096

// Numbers draws queue pair numbers: 24 random bits, so that no number follows
// from another.
type Numbers struct {
	random rand.Source
	dead   [restNumbers]wire.QPN // a ring; 0: none
	oldest int                   // in dead
}

// NewNumbers returns numbers of a source of random bits that strangers cannot
// foresee.
func NewNumbers(random rand.Source) *Numbers { return &Numbers{random: random} }

// Draw returns a number that is not taken and that was not retired lately. At
// most a small part of all numbers is taken, so few draws do.
func (n *Numbers) Draw(taken func(wire.QPN) bool) wire.QPN {
	for {
		num := wire.QPN(n.random.Uint64()) & wire.MulticastQPN
		if num == wire.SMIQPN || num == wire.GSIQPN || num == wire.MulticastQPN {
			continue
		}
		if !taken(num) && !n.Rests(num) {
			return num
		}
	}
}

// Retire lets the number of a destroyed queue pair rest.
func (n *Numbers) Retire(num wire.QPN) {
	n.dead[n.oldest] = num
	n.oldest = (n.oldest + 1) % restNumbers
}

// Rests reports whether a number was retired lately.
func (n *Numbers) Rests(num wire.QPN) bool { return slices.Contains(n.dead[:], num) }
