package flow

import (
	"net/netip"
	"time"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// End is one of two queue pairs.
type End struct {
	Addr netip.Addr `json:"address"`
	QPN  *wire.QPN  `json:"qpn,omitempty"` // nil: no packet said the number
}

// may reports whether the number of the queue pair may be q.
func (e *End) may(q wire.QPN) bool { return e.QPN == nil || *e.QPN == q }

// Pair is two queue pairs and their traffic with each other. Of unreliable
// ones, and where the capture has one direction only, one number may be
// unknown. The keys of its JSON are stable.
type Pair struct {
	Service string    `json:"service"`
	A       End       `json:"a"` // A sent the first packet
	B       End       `json:"b"`
	First   time.Time `json:"first"` // UTC
	Last    time.Time `json:"last"`
	Packets uint64    `json:"packets"`

	AB Direction `json:"ab"` // requests of A to B and their answers
	BA Direction `json:"ba"` // and the other way round
}

// Direction is the requests that one queue pair sent to another, and the
// responses to them.
type Direction struct {
	Messages Messages `json:"messages"`
	Bytes    uint64   `json:"bytes"`      // payload of SENDs and WRITEs, each counted once
	Read     uint64   `json:"read_bytes"` // bytes that READs brought back, each counted once

	Requests           uint64  `json:"requests"`            // request packets
	Retransmitted      uint64  `json:"retransmitted"`       // of these, sent again
	RetransmissionRate float64 `json:"retransmission_rate"` // their share, 0 … 1
	RepeatedBytes      uint64  `json:"repeated_bytes"`      // payload sent again
	OutOfOrder         uint64  `json:"out_of_order"`        // of these, overtaken by a later one
	Missing            uint64  `json:"missing"`             // packets that the capture never saw

	Responses uint64 `json:"responses"` // packets that came back
	Repeated  uint64 `json:"repeated"`  // of these, READ data that had been there
	NAKs      NAKs   `json:"naks"`
	Damaged   uint64 `json:"damaged"` // packets that went this way, requests or answers, with a wrong ICRC or no meaning
	Marked    uint64 `json:"marked"`  // of these, with congestion marks: CE, FECN or BECN, or a CNP
	Waiting   int    `json:"waiting"` // requests whose answer the capture does not have

	RTT *RTT `json:"rtt,omitempty"` // nil without a sample
}

// Messages counts them by operation. Messages on the wire are counted: a device
// may make several READs of one work request.
type Messages struct {
	Send   uint64 `json:"send"`
	Write  uint64 `json:"write"`
	Read   uint64 `json:"read"`
	Atomic uint64 `json:"atomic"`
	Other  uint64 `json:"other"`
}

// NAKs counts them by syndrome.
type NAKs struct {
	Sequence    uint64 `json:"sequence"`
	Invalid     uint64 `json:"invalid"`
	Access      uint64 `json:"access"`
	Operational uint64 `json:"operational"`
	RNR         uint64 `json:"rnr"`
	Other       uint64 `json:"other"`
}

// RTT estimates the time from a request to its answer at the point of capture,
// in microseconds, of requests that were sent once (Karn) and that asked for an
// answer.
type RTT struct {
	Samples  uint64  `json:"samples"`
	Min      float64 `json:"min_us"`
	Smoothed float64 `json:"smoothed_us"` // RFC 6298: an eighth of each new one
	Max      float64 `json:"max_us"`
}

// sample adds a round trip.
func (d *Direction) sample(t time.Duration) {
	us := float64(t.Nanoseconds()) / 1e3
	switch r := d.RTT; {
	case t < 0: // records out of order
	case r == nil:
		d.RTT = &RTT{1, us, us, us}
	default:
		r.Samples++
		r.Min, r.Max = min(r.Min, us), max(r.Max, us)
		r.Smoothed += (us - r.Smoothed) / 8
	}
}
