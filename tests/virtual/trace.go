package virtual

import "math/bits"

// Trace is a digest of everything that happened in a world, in its order. Equal
// traces mean equal runs, bit for bit: every packet counts with its time,
// number and ICRC, every completion with all its fields.
type Trace uint64

type note uint64

const (
	noteSent note = iota + 1
	noteDropped
	noteICRC
	noteNoQP
	noteDelivered
	noteTimeout
	noteCompleted
	noteState
)

// noteDestroyed stands where a state would.
const noteDestroyed = 1 << 32

func (w *World) note(kind note, a, b uint64) {
	t := uint64(w.trace)
	for _, x := range [...]uint64{uint64(kind), uint64(w.now), a, b} {
		t = bits.RotateLeft64((t^x)*0x9e3779b97f4a7c15, 29)
	}
	w.trace = Trace(t)
}

// Trace returns the digest of the run so far.
func (w *World) Trace() Trace { return w.trace }
