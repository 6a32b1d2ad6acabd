package path

// Controller decides how many bytes may be in flight on a path, and when they
// may leave. Bytes are as the flows count them, here and below: with what a
// packet costs beside its payload.
type Controller interface {
	// Serve sets how many flows have bytes in flight, and the length of the
	// longest packet. It is called whenever one of them changes.
	Serve(flows, packet int)
	// Sent notes that n bytes leave.
	Sent(now Time, n int)
	// Acked notes that n bytes arrived, and that the path took rtt; each may be
	// 0: none. More than limit in flight would not be used; 0: any would.
	Acked(now Time, n int, rtt Duration, limit int)
	// Lost notes a loss that a later packet showed.
	Lost()
	// Marked notes that a switch, or the peer, says that there is a queue.
	Marked(now Time)
	// Timeout notes that the peer was silent for too long, on a path that was
	// measured.
	Timeout()
	// Room returns how many bytes may be in flight, and a time before which no
	// more are to leave.
	Room() (bytes int, after Time)
}

// Measured is the state of a path that its flows and its controller share.
type Measured struct {
	// Base is the least round trip, without a queue; 0: not measured. A
	// controller that finds the path to be longer sets it.
	Base Duration
	// Smoothed is about the present round trip, Base or more.
	Smoothed Duration
	// Fresh is when Base was measured last.
	Fresh Time
	// Limited is set when a packet waits for room. The controller clears it.
	Limited bool
}

// measure takes a round trip.
func (m *Measured) measure(now Time, rtt Duration) {
	if m.Base == 0 || rtt <= m.Base {
		m.Base, m.Fresh = rtt, now
	}
	if m.Smoothed == 0 {
		m.Smoothed = rtt
	}
	m.Smoothed += (rtt - m.Smoothed) / 8
}
