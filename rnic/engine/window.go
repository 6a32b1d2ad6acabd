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

// longStep is the round trip of a path that may have twice as many bytes in
// flight as a short one.
const longStep = 2 * Millisecond

// stretched is what may be in flight on the path where n may on a short one.
func (q *QP) stretched(n int) int {
	rtt := q.req.timer.least
	if q.path != nil && q.path.base != 0 {
		rtt = q.path.base
	}
	if rtt < longStep {
		return n
	}
	most := min(q.cfg.Tuning.LongWindow, int(q.reach())*(q.mtu+packetCost))
	return max(n, min(n+n*int(rtt/longStep), most))
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
