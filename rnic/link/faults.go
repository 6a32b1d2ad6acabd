package link

import (
	"math/bits"
	"time"

	"github.com/rdmashim/rdmashim/rnic/link/rules"
	"github.com/rdmashim/rdmashim/rnic/splitmix"
)

// Faults says how a link misbehaves on what it sends. The zero value is a
// faultless link.
//
// Which fault hits which packet is decided by the packet's number, counted from
// the first Send, and Seed alone: each kind of fault draws from a sequence of
// its own, so that kinds do not influence each other's rates. Time decides
// nothing but when a delayed or held packet goes.
type Faults struct {
	Loss    float64       // 0 … 1: packets that vanish
	Reorder float64       // 0 … 1: packets held back behind the next 1 … 8
	Dup     float64       // 0 … 1: packets sent twice
	Corrupt float64       // 0 … 1: packets in which one bit is inverted after the ICRC was computed
	Delay   time.Duration // ≥ 0: how much later every packet goes; keeps the order
	Seed    uint64
	Rules   *rules.Set // of single packets; nil: none
}

// Any reports whether f holds any fault.
func (f Faults) Any() bool {
	f.Seed = 0
	return f != Faults{}
}

// The kinds of faults, each with its own stream of decisions, and the streams
// that choose a bit and a distance.
type faultKind uint64

const (
	faultLoss faultKind = iota + 1
	faultReorder
	faultDup
	faultCorrupt
	drawBit
	drawDistance
)

// draw returns 64 random bits that depend on nothing but its arguments: the
// output function of splitmix64 over two rounds.
func draw(seed uint64, kind faultKind, packet uint64) uint64 {
	x := splitmix.Mix(seed ^ bits.RotateLeft64(uint64(kind)*splitmix.Gamma, 17))
	return splitmix.Mix(x + packet*splitmix.Gamma)
}

// threshold turns a rate into the bound below which 63 random bits hit.
func threshold(rate float64) uint64 {
	if !(rate > 0) { // NaN too
		return 0
	}
	return uint64(min(rate, 1) * (1 << 63))
}

// decision is the fate of one packet.
type decision struct {
	lose, dup, corrupt bool
	flip               uint32        // with corrupt: Packet.Flip
	behind             int           // 0, or held back behind so many packets
	late               time.Duration // 0, or it goes so much later, past others
}

// maxBehind is the largest distance over which a packet is reordered.
const maxBehind = 8

// decider makes the decisions for one link.
type decider struct {
	seed                         uint64
	loss, reorder, dup, corruptT uint64
	next                         uint64 // number of the next packet
}

func newDecider(f Faults) decider {
	return decider{seed: f.Seed, loss: threshold(f.Loss), reorder: threshold(f.Reorder), dup: threshold(f.Dup), corruptT: threshold(f.Corrupt)}
}

func (d *decider) decide() decision {
	n := d.next
	d.next++
	var x decision
	x.lose = d.hit(faultLoss, d.loss, n)
	x.dup = d.hit(faultDup, d.dup, n)
	if d.hit(faultCorrupt, d.corruptT, n) {
		x.corrupt = true
		x.flip = 1 + uint32(draw(d.seed, drawBit, n)>>33)
	}
	if d.hit(faultReorder, d.reorder, n) {
		x.behind = 1 + int(draw(d.seed, drawDistance, n)%maxBehind)
	}
	return x
}

func (d *decider) hit(k faultKind, bound, n uint64) bool {
	return bound != 0 && draw(d.seed, k, n)>>1 < bound
}
