package rnic

import (
	"math/rand/v2"
	"slices"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// restQPNs is how many numbers of destroyed queue pairs are not drawn: packets
// for them may still be on the way. As many as the communication manager keeps
// connections in TIMEWAIT.
const restQPNs = 4096

// qpNumbers draws queue pair numbers: 24 random bits, so that no number follows
// from another.
type qpNumbers struct {
	random rand.Source
	dead   [restQPNs]wire.QPN // a ring; 0: none
	oldest int                // in dead
}

// draw returns a number that live does not hold and that was not buried lately.
// live holds at most maxQP numbers, so few draws do.
func (n *qpNumbers) draw(live map[wire.QPN]*QP) wire.QPN {
	for {
		num := wire.QPN(n.random.Uint64()) & wire.MulticastQPN
		if num == wire.SMIQPN || num == wire.GSIQPN || num == wire.MulticastQPN {
			continue
		}
		if _, taken := live[num]; !taken && !slices.Contains(n.dead[:], num) {
			return num
		}
	}
}

// bury lets the number of a destroyed queue pair rest.
func (n *qpNumbers) bury(num wire.QPN) {
	n.dead[n.oldest] = num
	n.oldest = (n.oldest + 1) % restQPNs
}
