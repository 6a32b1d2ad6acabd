package core

// window bounds the bytes that the peer may send: on one stream, or on all.
//
// consumed <= received <= limit <= consumed + size holds, and limit never
// falls.
type window struct {
	received uint64 // bytes that arrived, or that a reset skipped
	consumed uint64 // … and that the program has read or will never read
	limit    uint64 // how far the peer may send, as it was told
	size     uint64 // how far the limit may be ahead of consumed
	max      uint64 // how far size may grow
	raised   Time   // when the limit was last raised
}

func newWindow(now Time, size, max uint64) window {
	return window{limit: size, size: size, max: max, raised: now}
}

// low reports whether half of the window was consumed since the peer was told.
func (w *window) low() bool { return w.limit-w.consumed <= w.size/2 && w.size > 0 }

// raise moves the limit. A window of which half is consumed within two round
// trips is too small for the path and doubles.
func (w *window) raise(now Time, rtt Duration) {
	if rtt > 0 && Duration(now-w.raised) < 2*rtt {
		w.size = min(2*w.size, w.max)
	}
	w.limit = w.consumed + w.size
	w.raised = now
}

// credit bounds the bytes that this side may send: on one stream, or on all.
type credit struct {
	sent      uint64
	limit     uint64
	blockedAt uint64 // limit+1 of the last frame that said "blocked" at limit
}

func (c *credit) left() uint64 { return c.limit - c.sent }

// raise takes a new limit; a lower one is old. It reports whether it is higher.
func (c *credit) raise(limit uint64) bool {
	if limit <= c.limit {
		return false
	}
	c.limit = limit
	return true
}

// blocked reports whether the peer must be told that the limit is reached.
func (c *credit) blocked() bool { return c.sent == c.limit && c.blockedAt != c.limit+1 }
