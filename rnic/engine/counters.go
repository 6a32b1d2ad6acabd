package engine

// Counters of a queue pair. They only grow; their names are rxe's where the
// meaning is the same (rxe_hw_counters.c), or mlx5's.
type Counters struct {
	SentPkts, SentBytes uint64 // bytes are payload
	RcvdPkts, RcvdBytes uint64

	Sends, Recvs, Writes, Reads, Atomics uint64 // messages completed; Recvs as responder

	RetransmittedPkts uint64
	Retries           uint64 // times the requester went back, for whatever reason
	Timeouts          uint64 // of them because nothing came for a retransmission timeout
	ImpliedNAKs       uint64 // responses that showed a lost one before them

	DuplicateRequest uint64
	OutOfSeqRequest  uint64 // requests beyond the expected PSN

	NAKSeqSent, NAKInvSent, NAKAccessSent, NAKOpSent uint64
	NAKSeqRcvd, NAKInvRcvd, NAKAccessRcvd, NAKOpRcvd uint64
	RNRSent, RNRRcvd                                 uint64

	Marked                   uint64 // packets that met a queue, by FECN
	NoticesSent, NoticesRcvd uint64 // CNPs sent; CNPs and answers with BECN received

	RetryExceeded, RNRRetryExceeded uint64
	LocalErrors                     uint64 // requests that failed here: lengths, keys, queue entries
	Flushed                         uint64 // work requests flushed

	DropState     uint64 // packets for a state that takes none
	DropPeer      uint64 // packets from an address that is not the peer's
	DropPKey      uint64
	DropService   uint64 // packets of another transport service
	DropQKey      uint64 // datagrams with another Q_Key
	DropNoReceive uint64 // datagrams without a receive
	DropRequest   uint64 // messages of an unreliable connection that were refused
	DropTooLong   uint64 // datagrams longer than the port's MTU, not sent
	DropStaleAck  uint64 // responses to PSNs that are acknowledged already
	DropUnsentAck uint64 // responses to PSNs that were not sent
	DropSyndrome  uint64 // responses with a reserved syndrome
	DropReplay    uint64 // repeated READs and atomics that are not remembered
	DropResponse  uint64 // responses that do not belong to the request
}

// counterTable names the fields. One has two names: rxe's, and the one that
// goes with nak_seq_sent.
var counterTable = []struct {
	name  string
	field func(*Counters) *uint64
}{
	{"sent_pkts", func(c *Counters) *uint64 { return &c.SentPkts }},
	{"sent_bytes", func(c *Counters) *uint64 { return &c.SentBytes }},
	{"rcvd_pkts", func(c *Counters) *uint64 { return &c.RcvdPkts }},
	{"rcvd_bytes", func(c *Counters) *uint64 { return &c.RcvdBytes }},
	{"rdma_sends", func(c *Counters) *uint64 { return &c.Sends }},
	{"rdma_recvs", func(c *Counters) *uint64 { return &c.Recvs }},
	{"rdma_writes", func(c *Counters) *uint64 { return &c.Writes }},
	{"rdma_reads", func(c *Counters) *uint64 { return &c.Reads }},
	{"rdma_atomics", func(c *Counters) *uint64 { return &c.Atomics }},
	{"retransmitted_pkts", func(c *Counters) *uint64 { return &c.RetransmittedPkts }},
	{"completer_retry_err", func(c *Counters) *uint64 { return &c.Retries }},
	{"retransmit_timeouts", func(c *Counters) *uint64 { return &c.Timeouts }},
	{"implied_nak_seq", func(c *Counters) *uint64 { return &c.ImpliedNAKs }},
	{"duplicate_request", func(c *Counters) *uint64 { return &c.DuplicateRequest }},
	{"out_of_seq_request", func(c *Counters) *uint64 { return &c.OutOfSeqRequest }},
	{"nak_seq_sent", func(c *Counters) *uint64 { return &c.NAKSeqSent }},
	{"nak_inv_sent", func(c *Counters) *uint64 { return &c.NAKInvSent }},
	{"nak_access_sent", func(c *Counters) *uint64 { return &c.NAKAccessSent }},
	{"nak_op_sent", func(c *Counters) *uint64 { return &c.NAKOpSent }},
	{"nak_seq_rcvd", func(c *Counters) *uint64 { return &c.NAKSeqRcvd }},
	{"rcvd_seq_err", func(c *Counters) *uint64 { return &c.NAKSeqRcvd }},
	{"nak_inv_rcvd", func(c *Counters) *uint64 { return &c.NAKInvRcvd }},
	{"nak_access_rcvd", func(c *Counters) *uint64 { return &c.NAKAccessRcvd }},
	{"nak_op_rcvd", func(c *Counters) *uint64 { return &c.NAKOpRcvd }},
	{"send_rnr_err", func(c *Counters) *uint64 { return &c.RNRSent }},
	{"rcvd_rnr_err", func(c *Counters) *uint64 { return &c.RNRRcvd }},
	{"np_ecn_marked_roce_packets", func(c *Counters) *uint64 { return &c.Marked }},
	{"np_cnp_sent", func(c *Counters) *uint64 { return &c.NoticesSent }},
	{"rp_cnp_handled", func(c *Counters) *uint64 { return &c.NoticesRcvd }},
	{"retry_exceeded_err", func(c *Counters) *uint64 { return &c.RetryExceeded }},
	{"retry_rnr_exceeded_err", func(c *Counters) *uint64 { return &c.RNRRetryExceeded }},
	{"send_err", func(c *Counters) *uint64 { return &c.LocalErrors }},
	{"flushed", func(c *Counters) *uint64 { return &c.Flushed }},
	{"drop_state", func(c *Counters) *uint64 { return &c.DropState }},
	{"drop_peer", func(c *Counters) *uint64 { return &c.DropPeer }},
	{"drop_pkey", func(c *Counters) *uint64 { return &c.DropPKey }},
	{"drop_service", func(c *Counters) *uint64 { return &c.DropService }},
	{"drop_qkey", func(c *Counters) *uint64 { return &c.DropQKey }},
	{"drop_no_receive", func(c *Counters) *uint64 { return &c.DropNoReceive }},
	{"drop_request", func(c *Counters) *uint64 { return &c.DropRequest }},
	{"drop_too_long", func(c *Counters) *uint64 { return &c.DropTooLong }},
	{"drop_stale_ack", func(c *Counters) *uint64 { return &c.DropStaleAck }},
	{"drop_unsent_ack", func(c *Counters) *uint64 { return &c.DropUnsentAck }},
	{"drop_syndrome", func(c *Counters) *uint64 { return &c.DropSyndrome }},
	{"drop_replay", func(c *Counters) *uint64 { return &c.DropReplay }},
	{"drop_response", func(c *Counters) *uint64 { return &c.DropResponse }},
}

// Each calls tell with each counter's name and value, always in the same order.
func (c *Counters) Each(tell func(name string, value uint64)) {
	for _, e := range counterTable {
		tell(e.name, *e.field(c))
	}
}

// Add adds o to c: a device's total over its queue pairs.
func (c *Counters) Add(o *Counters) {
	for _, e := range counterTable {
		if e.name == "rcvd_seq_err" {
			continue // the same field as nak_seq_rcvd
		}
		*e.field(c) += *e.field(o)
	}
}

// Gauges are the present state of a requester. Unlike counters they go up and
// down.
type Gauges struct {
	InFlight    int      // bytes that were sent, or asked for, and are not acknowledged, and packetCost for each packet
	Window      int      // bytes that InFlight may grow to, as the path is shared now
	RTT         Duration // smoothed round trip (RFC 6298), 0: not measured yet
	RTTVariance Duration
	PathWindow  int      // bytes that all queue pairs to the peer may have in flight, as the delay allows; 0: no path
	BaseRTT     Duration // least round trip of that path, without a queue; 0: not measured yet
	MTU         int      // bytes of the packets of the next message that has several: the path MTU or a private one
	RTO         Duration // after which silence is a loss: from RTT, with backoff
}

// Gauges reads the requester; all zero outside of RTS and SQD, where it has
// nothing.
func (q *QP) Gauges() Gauges {
	if !q.sends() {
		return Gauges{}
	}
	t := &q.req.timer
	g := Gauges{
		InFlight: q.inFlight(), Window: min(q.req.win.size, q.room()),
		RTT: t.srtt, RTTVariance: t.variance, RTO: q.retransmitAfter(),
		MTU: q.mtu,
	}
	if x := q.extension; x != nil {
		g.MTU = max(q.mtu, x.usable().Bytes())
	}
	if q.flow.OnPath() {
		g.PathWindow = q.flow.Limit(t.least)
		g.BaseRTT, _ = q.flow.RoundTrip()
	}
	return g
}

// Gauges of datagrams are zero: nothing is acknowledged.
func (q *Datagrams) Gauges() Gauges { return Gauges{} }

// Unready is how long the peer has had no receive for the oldest request.
func (q *QP) Unready(now Time) Duration {
	if since := q.req.timer.unready; since != 0 {
		return Duration(now - since)
	}
	return 0
}

// Unready of datagrams is 0: the peer does not tell.
func (q *Datagrams) Unready(Time) Duration { return 0 }
