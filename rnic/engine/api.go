package engine

import (
	"net/netip"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine/path"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Time is nanoseconds on a monotonic clock of the caller's choice.
type Time = path.Time

// Duration is nanoseconds.
type Duration = path.Duration

// Units of Duration.
const (
	Microsecond = path.Microsecond
	Millisecond = path.Millisecond
	Second      = path.Second
)

// MaxMessage is the largest message in bytes (IBA 9.3.3).
const MaxMessage = 1 << 31

// MaxRdAtomic is the most READs and atomics that a queue pair may have
// outstanding in one direction, as rxe's max_qp_rd_atom.
const MaxRdAtomic = 128

// Config is fixed when a queue pair is created.
type Config struct {
	QPN        wire.QPN
	PD         mem.PD
	Regions    *mem.Table    // keys of the whole device
	Receives   ReceiveSource // nil: there never is a receive
	SigAll     bool          // every send work request is signaled
	SendDepth  int           // work requests the send queue holds
	MaxSendSGE int
	MaxRecvSGE int
	MaxInline  int // bytes
	Tuning     Tuning
	Paths      *path.Set      // of the device; nil: the queue pair shares nothing
	Stash      *Stash         // of the device; nil: the queue pair goes back N
	Self       netip.AddrPort // where the device answers; zero: it has no loopback
}

// ReceiveSource is the receive ring, from which the responder takes receives on
// demand, as the kernel does.
type ReceiveSource interface {
	// NextReceive fills wr with the oldest receive and consumes it. It
	// returns false when there is none. A malformed entry is returned with
	// wr.Err set and completes with LOC_QP_OP_ERR. wr.SGE comes in empty with
	// the capacity MaxRecvSGE and is to be appended to.
	NextReceive(wr *ReceiveWR) bool
}

// SendWR is a work request taken from a send queue; Post copies it. Its length
// is that of SGE, or of Inline when Flags has SendInline.
type SendWR struct {
	ID         uint64
	Opcode     abi.WROpcode
	Flags      abi.SendFlags // signaled, solicited, fence, inline
	Imm        [4]byte       // immediate as on the wire
	Invalidate uint32        // SEND_WITH_INV, LOCAL_INV: the R_Key to revoke
	Bind       mem.Bind      // BIND_MW
	RemoteAddr uint64
	RKey       uint32
	CompareAdd uint64
	Swap       uint64
	SGE        []mem.SGE
	Inline     []byte
	To         Destination // of a datagram
	Err        error       // the entry was malformed: it completes with LOC_QP_OP_ERR
}

// ReceiveWR is a receive.
type ReceiveWR struct {
	ID  uint64
	SGE []mem.SGE
	Err error
}

// Completion is a work completion, before it goes to a completion queue.
type Completion struct {
	ID         uint64
	Status     abi.WCStatus
	Opcode     abi.WCOpcode // also set on an error
	ByteLen    uint32       // receives and READs
	Flags      abi.WCFlags
	Imm        [4]byte  // with WCWithImm, as on the wire
	Invalidate uint32   // with WCWithInvalidate: the R_Key that was revoked
	SrcQPN     wire.QPN // of a datagram that was received: its sender
	Recv       bool     // belongs to the receive completion queue
	Solicited  bool     // the sender asked for a solicited event, or this is an error

	// Silent completions are unsignaled requests that succeeded. The caller
	// writes no entry for them; they tell that the send queue has room again.
	Silent bool
}

// New makes a queue pair in RESET.
func New(cfg Config) *QP {
	cfg.Tuning = cfg.Tuning.withDefaults()
	q := &QP{cfg: cfg, service: wire.ServiceRC, state: abi.QPSReset}
	q.sq.init(cfg.SendDepth, cfg.MaxSendSGE, cfg.MaxInline)
	q.rsp.recv.SGE = make([]mem.SGE, 0, cfg.MaxRecvSGE)
	return q
}

// QP is a reliable-connection queue pair. Its methods must not be called
// concurrently. Errors that they return wrap a syscall.Errno; the failure of a
// work request shows in its Completion.
type QP struct {
	cfg      Config
	service  wire.Service // ServiceRC; ServiceUC of Unreliable, ServiceUD of Datagrams
	state    abi.QPState
	attr     Attr
	mtu      int        // the path's, in bytes
	largest  int        // bytes of the largest packets that were sent: mtu, or a private one
	peer     netip.Addr // of attr.Peer, as packets' sources are compared with it
	counters Counters

	flow      path.Flow  // to the peer, from RTR on
	extension *extension // of the connection; nil: specification only

	notice notification

	sq     sendQueue
	req    requester
	rsp    responder
	comps  completionQueue
	fail   failure
	events events

	genuine bool        // of the packet of the last Receive, see Genuine
	out     wire.Packet // the packet being written
	sources payloadSources

	lossless bool // see SetLossless
}

// State is the present state; Receive, Transmit and HandleTimeout may turn it
// to ERR.
func (q *QP) State() abi.QPState { return q.state }

// selective reports whether the peer repeats selectively, as this side does.
func (q *QP) selective() bool { return q.extension != nil && q.extension.soft }

// Attr returns the present attributes. RQPSN and SQPSN are the next expected
// and the next to be sent.
func (q *QP) Attr() Attr {
	a := q.attr
	if q.state == abi.QPSRTR || q.sends() {
		a.RQPSN = q.rsp.next.psn()
	}
	if q.sends() {
		a.SQPSN = q.req.nxt.psn()
	}
	return a
}

// Counters returns the queue pair's counters, which only grow.
func (q *QP) Counters() *Counters { return &q.counters }

// Outstanding is the number of work requests in the send queue that were not
// completed yet.
func (q *QP) Outstanding() int { return q.sq.len() }

// Unacknowledged is the cost in bytes of what was posted and is not
// acknowledged, sent or not.
func (q *QP) Unacknowledged() uint64 { return q.sq.cost - q.costAt(q.sq.head, q.req.una) }
