package path

import (
	"math"
	"net/netip"
)

// Flow is a sender's place on the path to its peer. The zero Flow is on none:
// it has all the room that it asks for, and notes nothing.
//
// A flow may send while all of them together stay below the limit. Above it, a
// flow may send up to an equal share, so that a newcomer gets its own at once
// and the others, which have more, wait until theirs was acknowledged. A flow
// that waits has packets in flight, and goes on with their acknowledgement.
type Flow struct {
	// Most bounds what Stretched adds, in bytes.
	Most int

	set      *Set
	path     *path
	to       netip.Addr
	inFlight int // bytes
	stamps   stamps
}

// Join takes the flow to the path of a peer, off any other. Window is what a
// new path begins with, packet the longest packet of the flow, in bytes. With a
// nil set it does nothing.
func (f *Flow) Join(s *Set, to netip.Addr, window, packet int) {
	if s == nil || f.path != nil && f.to == to {
		return
	}
	f.Leave()
	f.set, f.path, f.to = s, s.join(to, window), to
	f.Carries(packet)
}

// Leave takes the flow, and its bytes in flight, off its path.
func (f *Flow) Leave() {
	if f.path == nil {
		return
	}
	f.Charge(0)
	f.set.leave(f.to, f.path)
	f.path = nil
}

// OnPath reports whether the flow is on a path.
func (f *Flow) OnPath() bool { return f.path != nil }

// Carries sets the length of the flow's longest packet.
func (f *Flow) Carries(packet int) {
	if x := f.path; x != nil {
		x.packet = max(x.packet, packet)
		x.control.Serve(x.active, x.packet)
	}
}

// Charge sets how much the flow has in flight. It follows each change that
// other flows may see.
func (f *Flow) Charge(n int) {
	x := f.path
	if x == nil {
		return
	}
	if was := f.inFlight != 0; was != (n != 0) {
		if was {
			x.active--
		} else {
			x.active++
		}
		x.control.Serve(x.active, x.packet)
	}
	x.inFlight += n - f.inFlight
	f.inFlight = n
}

// longStep is the round trip of a path that may have twice as many bytes in
// flight as a short one.
const longStep = 2 * Millisecond

// Stretched is how many bytes may be in flight where n may on a short path.
// Least is the least round trip as far as the flow knows, which counts until
// the path has measured its own, here and below.
func (f *Flow) Stretched(n int, least Duration) int {
	if f.path != nil && f.path.Base != 0 {
		least = f.path.Base
	}
	if least < longStep {
		return n
	}
	return max(n, min(n+n*int(least/longStep), f.Most))
}

// Limit is how many bytes all flows of the path may have in flight.
func (f *Flow) Limit(least Duration) int {
	size, _ := f.path.control.Room()
	if l := f.set.limit; l > 0 {
		return min(f.Stretched(l, least), size)
	}
	return size
}

// Room is how many bytes the flow may have in flight now.
func (f *Flow) Room(least Duration) int {
	if f.path == nil {
		return math.MaxInt
	}
	limit := f.Limit(least)
	return max(f.part(limit), limit-(f.path.inFlight-f.inFlight))
}

// Share is the part of Room that no other flow can take.
func (f *Flow) Share(least Duration) int {
	if f.path == nil {
		return math.MaxInt
	}
	return f.part(f.Limit(least))
}

func (f *Flow) part(limit int) int {
	if f.inFlight == 0 {
		return limit / (f.path.active + 1)
	}
	return limit / f.path.active
}

// Wait notes that a packet waits for room.
func (f *Flow) Wait() {
	if f.path != nil {
		f.path.Limited = true
	}
}

// Held reports whether the path has sent too much for its pace, and until when
// a run more than that has come together.
func (f *Flow) Held(now Time) (until Time, held bool) {
	if f.path == nil {
		return 0, false
	}
	_, after := f.path.control.Room()
	return after + Time(pacingRun), after > now
}

// RoundTrip is the path's least round trip without a queue, and its present
// one; 0: not measured.
func (f *Flow) RoundTrip() (base, smoothed Duration) {
	if f.path == nil {
		return 0, 0
	}
	return f.path.Base, f.path.Smoothed
}

// Sent notes that n bytes leave.
func (f *Flow) Sent(now Time, n int) {
	if f.path != nil {
		f.path.control.Sent(now, n)
	}
}

// Acked notes that n bytes were acknowledged.
func (f *Flow) Acked(now Time, n int, least Duration) {
	if f.path != nil {
		f.path.control.Acked(now, n, 0, f.Stretched(f.set.limit, least))
	}
}

// Lost notes a loss that a later packet showed.
func (f *Flow) Lost() {
	if f.path != nil {
		f.path.control.Lost()
	}
}

// Marked notes that a switch, or the peer, says that there is a queue.
func (f *Flow) Marked(now Time) {
	if f.path != nil {
		f.path.control.Marked(now)
	}
}

// Timeout notes that the peer was silent for too long.
func (f *Flow) Timeout() {
	if f.path != nil {
		f.path.control.Timeout()
	}
}
