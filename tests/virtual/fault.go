package virtual

import (
	"fmt"

	"github.com/rdmashim/rdmashim/rnic/engine"
)

// Faults are the rates, 0 … 1 per packet, at which the network misbehaves.
type Faults struct {
	Loss    float64 // vanishes
	Dup     float64 // arrives twice, the second up to MaxHold later
	Reorder float64 // is held up to MaxHold, and overtaken
	Corrupt float64 // has one bit inverted after its ICRC was computed
	Delay   float64 // holds its direction up, itself and all behind it, up to MaxHold
	MaxHold engine.Duration
}

// Fault is a fault of a packet on its way.
type Fault uint8

// The kinds of faults.
const (
	Lost Fault = iota
	Duplicated
	Reordered
	Corrupted
	Delayed
	Partitioned
	Overflowed // the queue before the wire had no room
	Marked     // the queue before the wire was longer than SetMark allows
	TooLong    // longer than SetMTU allows
	NumFaults
)

var faultNames = [NumFaults]string{"lost", "duplicated", "reordered", "corrupted", "delayed", "partitioned", "overflowed", "marked", "too long"}

// String returns the fault in a word.
func (f Fault) String() string {
	if f < NumFaults {
		return faultNames[f]
	}
	return fmt.Sprintf("fault %d", uint8(f))
}

// direction is one way between two nodes.
type direction struct {
	cut  bool        // partitioned
	wire *wireTime   // its own, or that of all ways to a node
	last engine.Time // when the last packet that was not reordered arrives
}

// wireTime is when a wire has sent what it was given so far.
type wireTime struct{ free engine.Time }

// Cut partitions one way between two nodes, or heals it. Packets already on
// their way arrive.
func (w *World) Cut(from, to *Node, cut bool) { w.way(from, to).cut = cut }

// SetQueue bounds the bytes that wait for each way's wire from now on: packets
// beyond it are dropped, as by a switch or a socket with a small buffer. 0 is
// without bound.
func (w *World) SetQueue(bytes int) { w.queue = bytes }

// SetMark has packets marked that find more bytes waiting for their wire, as a
// switch does with packets that can be. 0 marks none.
func (w *World) SetMark(bytes int) { w.mark = bytes }

// SetMTU has packets vanish from now on that are longer, in bytes of UDP
// payload, as on a path whose routers do not tell of that. 0 is without bound.
func (w *World) SetMTU(bytes int) { w.mtu = bytes }

// SetFaults changes the rates from now on.
func (w *World) SetFaults(f Faults) { w.faults = f }

func (w *World) way(from, to *Node) *direction { return &w.ways[from.Index][to.Index] }

// carry is the network: it decides what happens to a packet, and when it
// arrives. Decisions are drawn for every packet, whether they count or not, so
// that one fault does not shift the others.
func (w *World) carry(f *Flight) {
	way := w.way(f.From, f.To)
	r, x := &w.rand, &w.faults
	lose, dup, reorder, corrupt, delay := r.Hit(x.Loss), r.Hit(x.Dup), r.Hit(x.Reorder), r.Hit(x.Corrupt), r.Hit(x.Delay)
	hold, again, bit := w.hold(), w.hold(), r.Uint64()

	if way.cut {
		w.drop(f, Partitioned)
		return
	}
	if w.mtu > 0 && len(f.Bytes) > w.mtu {
		w.drop(f, TooLong)
		return
	}
	wire := way.wire
	wire.free = max(wire.free, w.now)
	waiting := int((wire.free - w.now) * 1024 / w.nsPerKiB)
	if w.mark > 0 && waiting > w.mark {
		w.Hit[Marked]++
		f.Bytes[4] |= 0x80 // FECN, which the ICRC leaves out
	}
	if w.queue > 0 && waiting+len(f.Bytes) > w.queue {
		w.drop(f, Overflowed)
		return
	}
	wire.free += engine.Time(len(f.Bytes)) * w.nsPerKiB / 1024
	at := wire.free + w.latency
	if lose {
		w.drop(f, Lost)
		return
	}
	if corrupt {
		w.Hit[Corrupted]++
		f.Corrupt(int(bit % uint64(len(f.Bytes)*8)))
	}
	switch {
	case reorder:
		w.Hit[Reordered]++
		at = max(at, way.last) + hold
	case delay:
		w.Hit[Delayed]++
		at = max(at+hold, way.last)
		way.last = at
	default:
		at = max(at, way.last)
		way.last = at
	}
	if dup {
		w.Hit[Duplicated]++
		w.Arrive(w.copyFlight(f), at+again)
	}
	w.Arrive(f, at)
}

func (w *World) hold() engine.Time {
	n := w.rand.Uint64()
	if w.faults.MaxHold <= 0 {
		return 0
	}
	return engine.Time(n % uint64(w.faults.MaxHold))
}

// drop ends a packet's way.
func (w *World) drop(f *Flight, why Fault) {
	w.Hit[why]++
	w.note(noteDropped, uint64(why), f.digest())
	if w.log != nil {
		w.log(fmt.Sprintf("%-12s %s", why, f))
	}
	if w.opts.Watch != nil {
		w.opts.Watch.Dropped(f, why)
	}
	w.release(f)
}
