package flow

import (
	"net/netip"
	"time"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// End is one of two queue pairs.
type End struct {
	Addr  netip.Addr
	QPN   wire.QPN
	Known bool // false: no packet said the number
}

// Pair is two queue pairs and their traffic with each other. Of unreliable
// ones, and where the capture has one direction only, one number may be
// unknown.
type Pair struct {
	Service wire.Service
	A, B    End // A sent the first packet
	First   time.Time
	Last    time.Time
	Packets uint64

	AB, BA Direction // requests of A to B and their answers; and the other way round
}

// Direction is the requests that one queue pair sent to another, and the
// responses to them.
type Direction struct {
	Messages Messages
	Bytes    uint64 // payload of SENDs and WRITEs, each counted once
	Read     uint64 // bytes that READs brought back, each counted once

	Requests      uint64 // request packets
	Retransmitted uint64 // of these, sent again
	RepeatedBytes uint64 // payload sent again
	OutOfOrder    uint64 // of these, overtaken by a later one
	Missing       uint64 // packets that the capture never saw

	Responses uint64 // packets that came back
	Repeated  uint64 // of these, READ data that had been there
	NAKs      NAKs
	Damaged   uint64 // packets that went this way, requests or answers, with a wrong ICRC or no meaning
	Marked    uint64 // of these, with congestion marks: CE, FECN or BECN, or a CNP
	Waiting   int    // requests whose answer the capture does not have

	RTT RTT
}

// Messages counts them by operation. Messages on the wire are counted: a device
// may make several READs of one work request.
type Messages struct{ Send, Write, Read, Atomic, Other uint64 }

// NAKs counts them by syndrome.
type NAKs struct{ Sequence, Invalid, Access, Operational, RNR, Other uint64 }

// RetransmissionRate is the share of request packets that were sent again, 0 …
// 1.
func (d *Direction) RetransmissionRate() float64 {
	if d.Requests == 0 {
		return 0
	}
	return float64(d.Retransmitted) / float64(d.Requests)
}

// RTT estimates the time from a request to its answer at the point of capture,
// of requests that were sent once (Karn) and that asked for an answer.
type RTT struct {
	Samples  uint64
	Min, Max time.Duration
	Smoothed time.Duration // RFC 6298: an eighth of each new one
}

func (r *RTT) add(d time.Duration) {
	if d < 0 {
		return // records out of order
	}
	if r.Samples == 0 {
		r.Min, r.Max, r.Smoothed = d, d, d
	}
	r.Samples++
	r.Min, r.Max = min(r.Min, d), max(r.Max, d)
	r.Smoothed += (d - r.Smoothed) / 8
}
