package engine

import (
	"fmt"
	"net/netip"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// DatagramConfig is fixed when a queue pair for datagrams is created.
type DatagramConfig struct {
	Config            // Tuning has no meaning
	MTU    int        // of the port, in bytes: the longest message
	Local  netip.Addr // the port's address, as receive buffers show it
}

// Datagrams is a queue pair of the service unreliable datagram (IBA 9.8.3). A
// message is one packet, a request has completed when its packet is in a batch,
// and what cannot be received is dropped and counted. It is driven as QP is,
// with the same calls, of which HandleTimeout has nothing to do.
//
// Of Attr only QKey and SQPSN count. Requests carry their destination
// (SendWR.To).
type Datagrams struct {
	cfg      DatagramConfig
	state    abi.QPState
	qkey     uint32
	psn      wire.PSN // of the next packet
	heard    wire.PSN // one more than that of the last packet received
	counters Counters

	sq    sendQueue
	to    []Destination // of the requests in sq, at the same places
	recv  ReceiveWR
	grh   [wire.GRHLen]byte
	comps completionQueue
	fail  failure
}

// NewDatagrams makes a queue pair in RESET.
func NewDatagrams(cfg DatagramConfig) *Datagrams {
	q := &Datagrams{cfg: cfg, state: abi.QPSReset}
	q.sq.init(cfg.SendDepth, cfg.MaxSendSGE, cfg.MaxInline)
	q.to = make([]Destination, len(q.sq.ring))
	q.recv.SGE = make([]mem.SGE, 0, cfg.MaxRecvSGE)
	return q
}

// State is the present state; Receive and Transmit may turn it to ERR.
func (q *Datagrams) State() abi.QPState { return q.state }

// Attr returns QKey, SQPSN, the next PSN to be sent, and RQPSN, the one after
// the last that came, of any sender.
func (q *Datagrams) Attr() Attr { return Attr{QKey: q.qkey, SQPSN: q.psn, RQPSN: q.heard} }

// Counters gives access to the queue pair's counters, which only grow.
func (q *Datagrams) Counters() *Counters { return &q.counters }

// Outstanding is the number of work requests that were not sent yet.
func (q *Datagrams) Outstanding() int { return q.sq.len() }

// Modify sets the attributes that mask names and moves to the state to. The
// transitions are those of QP.Modify.
func (q *Datagrams) Modify(_ Time, to abi.QPState, attr *Attr, mask abi.QPAttrMask) error {
	if !mayFollow(q.state, to) {
		return fmt.Errorf("queue pair %v: cannot go from %v to %v: %w", q.cfg.QPN, q.state, to, syscall.EINVAL)
	}
	if to == abi.QPSReset {
		q.reset()
		return nil
	}
	take(&q.qkey, attr.QKey, mask&abi.QPMaskQKey)
	take(&q.psn, attr.SQPSN&wire.MaxPSN, mask&abi.QPMaskSQPSN)
	q.state = to
	return nil
}

// reset makes the queue pair as new. Posted requests are forgotten without
// completions (IBA 10.3.1.1).
func (q *Datagrams) reset() {
	q.state, q.qkey, q.psn, q.heard = abi.QPSReset, 0, 0, 0
	q.sq.reset()
	q.comps.list, q.comps.head = q.comps.list[:0], 0
	q.fail = failure{}
}

// Drained reports SQD: no request is ever half done.
func (q *Datagrams) Drained() bool { return q.state == abi.QPSSQD }

// NextTimeout is never.
func (q *Datagrams) NextTimeout() (Time, bool) { return 0, false }

// HandleTimeout does nothing.
func (q *Datagrams) HandleTimeout(Time) {}

// HoldsAck is never: datagrams are not acknowledged.
func (q *Datagrams) HoldsAck() bool { return false }

// Hurry does nothing.
func (q *Datagrams) Hurry() {}

// Ping does nothing: there is no peer.
func (q *Datagrams) Ping() bool { return false }

// HasCompletions reports whether Completions would have something besides what
// it flushes.
func (q *Datagrams) HasCompletions() bool { return q.comps.head < len(q.comps.list) }

// Completions is QP.Completions.
func (q *Datagrams) Completions(buf []Completion) int {
	n := q.comps.pop(buf)
	if q.state == abi.QPSErr {
		n += flushQueues(buf[n:], &q.sq, q.fail, q.cfg.Receives, &q.recv, &q.counters)
	}
	return n
}
