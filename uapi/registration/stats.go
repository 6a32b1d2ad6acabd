package registration

import (
	"time"

	"github.com/rdmashim/rdmashim/uapi/qmux"
)

// Counters count the machinery of connections above their datapath, and mean
// the same on every transport. Machinery that a transport does without stays
// zero: the counters are to show that.
type Counters struct {
	FramesSent     map[string]uint64 `json:"frames_sent"`     // by type: "STREAM", "ACK"
	FramesReceived map[string]uint64 `json:"frames_received"` // by type
	TimersArmed    map[string]uint64 `json:"timers_armed"`    // by kind: "idle", "keepalive", "loss"
	RTTSamples     map[string]uint64 `json:"rtt_samples"`     // by source: "QX_PING", "ACK"

	Lost             uint64 `json:"lost"`          // packets declared lost
	Retransmitted    uint64 `json:"retransmitted"` // frames sent again
	CongestionEvents uint64 `json:"congestion_events"`
	MTUProbes        uint64 `json:"mtu_probes"`
}

// Stats are a registration's.
type Stats struct {
	Registration string `json:"registration"`
	Transport    string `json:"transport"`
	Connections  int    `json:"connections"` // that are open
	Dialed       uint64 `json:"dialed"`
	Accepted     uint64 `json:"accepted"`
	Failed       uint64 `json:"failed"` // dials, and handshakes of listeners
	// Counters are the sum of all connections, also of those that have ended.
	Counters
	Below Below `json:"below"`
}

// Below counts the work of a datapath beneath its connections, which do not see
// it: an RDMA device, and TCP, send lost packets again by themselves. Fields
// that a transport does not know are zero.
type Below struct {
	Device string `json:"device,omitempty"` // "soft0"
	// Retransmitted is how many packets the device sent again, for all that use
	// it; how many segments TCP did, on Linux.
	Retransmitted uint64 `json:"retransmitted"`
	// RTT is the shortest of the smoothed round trips that a soft device has
	// measured for its queue pairs, of 100 connections at most, or TCP for its
	// connections, on Linux.
	RTT time.Duration `json:"rtt_ns"`
	// CreditWaits is how often a writer found the peer's ring full.
	CreditWaits uint64 `json:"credit_waits"`
}

// Add adds those of another connection.
func (c *Counters) Add(other Counters) {
	for _, m := range []struct {
		to   *map[string]uint64
		from map[string]uint64
	}{
		{&c.FramesSent, other.FramesSent},
		{&c.FramesReceived, other.FramesReceived},
		{&c.TimersArmed, other.TimersArmed},
		{&c.RTTSamples, other.RTTSamples},
	} {
		if *m.to == nil {
			*m.to = map[string]uint64{}
		}
		for name, n := range m.from {
			(*m.to)[name] += n
		}
	}
	c.Lost += other.Lost
	c.Retransmitted += other.Retransmitted
	c.CongestionEvents += other.CongestionEvents
	c.MTUProbes += other.MTUProbes
}

// measured takes note of a round trip, if it is one.
func (b *Below) measured(rtt time.Duration) {
	if rtt > 0 && (b.RTT == 0 || rtt < b.RTT) {
		b.RTT = rtt
	}
}

// counters are those of a connection of package qmux.
func counters(s qmux.ConnectionStats) Counters {
	c := Counters{TimersArmed: s.Timers(), RTTSamples: map[string]uint64{}}
	c.FramesSent, c.FramesReceived = s.Frames()
	if s.RTTSamples > 0 {
		c.RTTSamples["QX_PING"] = s.RTTSamples
	}
	return c
}
