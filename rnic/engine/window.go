package engine

// window bounds the bytes in flight: requests that are not acknowledged, and READ
// responses that were asked for. It doubles every round trip until the first
// loss, then grows by a quarter, and halves when something was lost, at most
// once for what was in flight together.
//
// It stands for the socket buffers on the way, which the requester cannot see: a
// default one holds some 200 kB (notes of measurement: 40 packets of 4 KiB).
type window struct {
	size    int // bytes
	slow    bool
	recover seq // losses before this one were answered already
}

func (w *window) reset(t *Tuning, mtu int) {
	*w = window{size: max(t.InitialWindow, mtu+packetCost)}
}

// grow notes that n bytes were acknowledged.
func (w *window) grow(t *Tuning, n uint64) {
	if w.slow {
		n = n/4 + 1
	}
	w.size = min(w.size+int(n), max(t.MaxWindow, w.size))
}

// shrink notes that una was lost while everything below sent was in flight.
// A loss that a later packet showed leaves room for a few packets, so that the
// next loss shows too; a timeout leaves room for one.
func (w *window) shrink(una, sent seq, mtu int, timeout bool) {
	if una < w.recover && !timeout {
		return
	}
	floor := 4
	if timeout {
		floor = 1
	}
	w.recover = sent
	w.slow = true
	w.size = max(w.size/2, floor*(mtu+packetCost))
}
