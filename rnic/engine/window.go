package engine

// window bounds the bytes in flight: requests that are not acknowledged, and
// READ responses that were asked for. It doubles every round trip until the
// first loss, then grows by a quarter, and halves when the requester goes back,
// once a round trip.
//
// It stands for the socket buffers on the way, which the requester cannot see:
// a default one holds some 40 packets of 4 KiB.
type window struct {
	size   int // bytes
	slow   bool
	before int // size before timeouts that may have been too early; 0: none
}

func (w *window) reset(t *Tuning, mtu int) {
	*w = window{size: max(t.InitialWindow, mtu+packetCost)}
}

// grow notes that n bytes were acknowledged. Most bounds the size.
func (w *window) grow(most int, n uint64) {
	if w.slow {
		n = n/4 + 1
	}
	w.size = min(w.size+int(n), max(most, w.size))
}

// shrink notes a loss. A loss that a later packet showed leaves room for twelve
// packets at least, so that the next loss shows too, and a path that loses one
// packet in 20 carries something; a timeout leaves room for two. Before the
// round trip was measured, a timeout may only say that the path is long: it
// leaves room for two packets until restore, so that little is repeated for
// nothing.
func (w *window) shrink(mtu int, timeout, measured bool) {
	packet := mtu + packetCost
	switch {
	case timeout && !measured:
		w.before = max(w.before, w.size)
		w.size = 2 * packet
		return
	case timeout:
		w.size = max(w.size/2, 2*packet)
	default:
		w.size = max(w.size/2, 12*packet)
	}
	w.slow, w.before = true, 0
}

// restore notes that the round trip was measured.
func (w *window) restore() {
	w.size, w.before = max(w.size, w.before), 0
}

// trim notes that of so many packets some were lost in a round trip. The window
// shrinks by twice that part, to a half at most, and leaves room for 16
// packets: random losses hardly touch it, and leave it room to grow.
func (w *window) trim(lost, of, mtu int) {
	less := min(2*w.size/max(of, 1)*lost, w.size/2)
	w.size = max(w.size-less, min(w.size, 16*(mtu+packetCost)))
	w.slow = true
}

// Tuning are constants of the requester that the specification leaves open.
// Zero fields get the defaults.
type Tuning struct {
	// InitialWindow is how many bytes, with packetCost for each packet, are in
	// flight at the start. 80 KiB: a message of 64 KiB in packets of 1 KiB or
	// more.
	InitialWindow int
	// MaxWindow bounds the bytes in flight, which a buffer must hold when its
	// reader is late: 1 MiB. On a path that takes longer, more of them are
	// under way: each 2 ms allow as much again, up to LongWindow, 4 MiB,
	// or MaxWindow if that was given, and to the packets that a peer keeps
	// behind a gap.
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

	// AckDelay is how long an ACK may wait at most to be piggybacked on another
	// packet, or until the caller ends the wait. 0: it leaves with the next
	// Transmit. Of a peer's MinRTO it must be a fraction.
	AckDelay Duration
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
	t.InitialWindow = min(t.InitialWindow, t.MaxWindow)
	t.MaxRTO = max(t.MaxRTO, t.MinRTO)
	return t
}

func def[T int | Duration](p *T, v T) {
	if *p <= 0 {
		*p = v
	}
}
