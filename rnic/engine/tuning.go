package engine

// Tuning are constants of the requester that the specification leaves open.
// Zero fields get the defaults.
type Tuning struct {
	// InitialWindow is how many bytes, packetCosts included, are in flight at
	// the start. 80 KiB: a message of 64 KiB in packets of 1 KiB or more.
	InitialWindow int
	// MaxWindow bounds the bytes in flight, which a buffer must hold when its
	// reader is late: 1 MiB. On a path that takes longer, more of them are
	// under way: each longStep allows as much again, up to LongWindow, 4 MiB,
	// or MaxWindow if that was given, and to what a peer keeps behind a gap.
	MaxWindow, LongWindow int

	// The retransmission timeout is the estimated round-trip time and a margin
	// of MinRTO or more. Once the round trip is measured the margin may be half
	// of that: a busy peer is late by a millisecond or two. Without either the
	// timeout is InitialRTO: early, to mend a loss on a short path, since on a
	// long one it repeats two packets only. Timeouts in a row double it up to
	// MaxRTO or the local ACK timeout, whichever is less. A probe (probeOldest)
	// comes two round trips and MinRTO/8 or more after silence begins.
	// 4 ms, 1 s, 20 ms.
	MinRTO, MaxRTO, InitialRTO Duration

	// AckDelay is how long an ACK may wait at most for another packet to ride
	// with, or until the caller ends the wait. 0: it leaves with the next
	// Transmit. Of a peer's MinRTO it must be a fraction.
	AckDelay Duration

	// MinAckTimeout is the least local ACK timeout that is obeyed: the codes
	// begin at 8 µs, which no soft device can keep. 1 ms. (IBA 9.7.6.1.3 leaves
	// the lower bound to the implementation.)
	MinAckTimeout Duration
}

// LongWindow is the default of Tuning.LongWindow: what TCP allows, about.
const LongWindow = 4 << 20

func (t Tuning) withDefaults() Tuning {
	def(&t.InitialWindow, 80<<10)
	if t.MaxWindow > 0 {
		def(&t.LongWindow, t.MaxWindow)
	}
	def(&t.MaxWindow, 1<<20)
	def(&t.LongWindow, LongWindow)
	def(&t.MinRTO, 4*Millisecond)
	def(&t.MaxRTO, Second)
	def(&t.InitialRTO, 20*Millisecond)
	def(&t.MinAckTimeout, Millisecond)
	t.InitialWindow = min(t.InitialWindow, t.MaxWindow)
	t.MaxRTO = max(t.MaxRTO, t.MinRTO)
	return t
}

func def[T int | Duration](p *T, v T) {
	if *p <= 0 {
		*p = v
	}
}
