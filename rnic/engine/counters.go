package engine

import (
	"reflect"
	"strings"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Counters of a queue pair. They only grow; their names are rxe's where the
// meaning is the same (rxe_hw_counters.c), or mlx5's. One has two: rxe's, and
// the one that goes with nak_seq_sent.
type Counters struct {
	SentPkts  uint64 `names:"sent_pkts"`
	SentBytes uint64 `names:"sent_bytes"` // of payload
	RcvdPkts  uint64 `names:"rcvd_pkts"`
	RcvdBytes uint64 `names:"rcvd_bytes"`

	// Messages completed.
	Sends   uint64 `names:"rdma_sends"`
	Recvs   uint64 `names:"rdma_recvs"` // as responder
	Writes  uint64 `names:"rdma_writes"`
	Reads   uint64 `names:"rdma_reads"`
	Atomics uint64 `names:"rdma_atomics"`

	RetransmittedPkts uint64 `names:"retransmitted_pkts"`
	Retries           uint64 `names:"completer_retry_err"` // times the requester went back, for whatever reason
	Timeouts          uint64 `names:"retransmit_timeouts"` // of them because nothing came for a retransmission timeout
	ImpliedNAKs       uint64 `names:"implied_nak_seq"`     // responses that showed a lost one before them

	DuplicateRequest uint64 `names:"duplicate_request"`
	OutOfSeqRequest  uint64 `names:"out_of_seq_request"` // requests beyond the expected PSN

	NAKSeqSent    uint64 `names:"nak_seq_sent"`
	NAKInvSent    uint64 `names:"nak_inv_sent"`
	NAKAccessSent uint64 `names:"nak_access_sent"`
	NAKOpSent     uint64 `names:"nak_op_sent"`
	NAKSeqRcvd    uint64 `names:"nak_seq_rcvd rcvd_seq_err"`
	NAKInvRcvd    uint64 `names:"nak_inv_rcvd"`
	NAKAccessRcvd uint64 `names:"nak_access_rcvd"`
	NAKOpRcvd     uint64 `names:"nak_op_rcvd"`
	RNRSent       uint64 `names:"send_rnr_err"`
	RNRRcvd       uint64 `names:"rcvd_rnr_err"`

	Marked      uint64 `names:"np_ecn_marked_roce_packets"` // packets that met a queue, by FECN
	NoticesSent uint64 `names:"np_cnp_sent"`                // CNPs
	NoticesRcvd uint64 `names:"rp_cnp_handled"`             // CNPs, and answers with BECN

	RetryExceeded    uint64 `names:"retry_exceeded_err"`
	RNRRetryExceeded uint64 `names:"retry_rnr_exceeded_err"`
	LocalErrors      uint64 `names:"send_err"` // requests that failed here: lengths, keys, queue entries
	Flushed          uint64 `names:"flushed"`  // work requests flushed

	DropState     uint64 `names:"drop_state"` // packets for a state that takes none
	DropPeer      uint64 `names:"drop_peer"`  // packets from an address that is not the peer's
	DropPKey      uint64 `names:"drop_pkey"`
	DropService   uint64 `names:"drop_service"`    // packets of another transport service
	DropQKey      uint64 `names:"drop_qkey"`       // datagrams with another Q_Key
	DropNoReceive uint64 `names:"drop_no_receive"` // datagrams without a receive
	DropRequest   uint64 `names:"drop_request"`    // messages of an unreliable connection that were refused
	DropTooLong   uint64 `names:"drop_too_long"`   // datagrams longer than the port's MTU, not sent
	DropStaleAck  uint64 `names:"drop_stale_ack"`  // responses to PSNs that are acknowledged already
	DropUnsentAck uint64 `names:"drop_unsent_ack"` // responses to PSNs that were not sent
	DropSyndrome  uint64 `names:"drop_syndrome"`   // responses with a reserved syndrome
	DropReplay    uint64 `names:"drop_replay"`     // repeated READs and atomics that are not remembered
	DropResponse  uint64 `names:"drop_response"`   // responses that do not belong to the request
}

// Each calls f with each counter's name and value, always in the same order.
func (c *Counters) Each(f func(name string, value uint64)) {
	for field, v := range reflect.ValueOf(c).Elem().Fields() {
		for name := range strings.FieldsSeq(field.Tag.Get("names")) {
			f(name, v.Uint())
		}
	}
}

// Add adds o to c: a device's total over its queue pairs.
func (c *Counters) Add(o *Counters) {
	sum, v := reflect.ValueOf(c).Elem(), reflect.ValueOf(o).Elem()
	for i := range v.NumField() {
		sum.Field(i).SetUint(sum.Field(i).Uint() + v.Field(i).Uint())
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
// nothing, and for services without acknowledgements.
func (q *QP) Gauges() Gauges {
	if !q.sends() || q.service != wire.ServiceRC {
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

// Unready is how long the peer has had no receive for the oldest request.
func (q *QP) Unready(now Time) Duration {
	if since := q.req.timer.unready; since != 0 {
		return Duration(now - since)
	}
	return 0
}
