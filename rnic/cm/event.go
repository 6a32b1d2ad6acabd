package cm

import (
	"net/netip"
	"syscall"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// EventKind is the kind of an event, in the words of the RDMA connection
// manager.
type EventKind uint8

const (
	// ConnectRequest: a listener got a REQ; Conn is new, and its owner's from
	// now on. Next: Accept or Reject.
	ConnectRequest EventKind = iota + 1
	// ConnectResponse: the peer accepted. Next: Confirm or Reject.
	ConnectResponse
	// Connected: the passive side got the RTU (RDMA_CM_EVENT_ESTABLISHED).
	Connected
	// Rejected: the peer refused, for Reason, or its host did, for Errno.
	Rejected
	// Unreachable: no answer came in the documented time or, with an Errno,
	// none will: the network or this system says so.
	Unreachable
	// Disconnected: the connection is over: by this side, by the peer, or, with
	// a Reason, because the peer knows nothing of it.
	Disconnected
	// TimeWaitExit: nothing of the connection can be on its way any more, its
	// queue pair may be used again.
	TimeWaitExit
	// Probe: a REQ says that the peer has the connection no more. Not for the
	// owner: the device asks the peer through queue pair QPN, whose address and
	// number Attr has. Next: AnswerProbe or Gone.
	Probe
	// SIDRRequest: a listener got a SIDR_REQ; Conn is new, and its owner's from
	// now on. Next: Answer.
	SIDRRequest
	// SIDRReply: the peer answered a Resolve, with Status.
	SIDRReply
)

// String returns the name without RDMA_CM_EVENT_, or IB_CM_ of those of SIDR.
func (k EventKind) String() string {
	names := [...]string{"", "CONNECT_REQUEST", "CONNECT_RESPONSE", "ESTABLISHED", "REJECTED", "UNREACHABLE", "DISCONNECTED", "TIMEWAIT_EXIT", "PROBE",
		"SIDR_REQ_RECEIVED", "SIDR_REP_RECEIVED"}
	if int(k) < len(names) && k != 0 {
		return names[k]
	}
	return "UNKNOWN"
}

// Event is something that a connection's owner should know.
type Event struct {
	Kind EventKind
	Conn wire.CommID
	// Listener is the one that a ConnectRequest or a SIDRRequest is for.
	Listener ListenerID
	// Reason is of a Rejected, and of a Disconnected without a DREQ.
	Reason wire.RejectReason
	// Errno is of a Rejected or Unreachable that Undelivered raised; else 0.
	Errno syscall.Errno
	// Status is of a SIDRReply, and QKey if it is [wire.SIDRValid]; the queue
	// pair is Attr.RemoteQPN.
	Status wire.SIDRStatus
	QKey   uint32
	// Service, Src and Dst are of a ConnectRequest and a SIDRRequest: the
	// service that the peer wants, and for services of the IP kind from where
	// and at which address.
	Service wire.ServiceID
	Src     netip.AddrPort
	Dst     netip.Addr
	// Attr is of a ConnectRequest, a ConnectResponse and a Probe; of SIDR it
	// holds the peer and, in a SIDRReply, its queue pair.
	Attr Attr
	// QPN is of a ConnectResponse, a Connected and a Probe: this side's queue
	// pair. RoundTrip, of the first two, is how long the peer took to answer,
	// its program included; 0 when the question was repeated or the peer asked
	// for patience.
	QPN       wire.QPN
	RoundTrip Duration
	// Private is the private data of a request, its answer or a refusal, all of
	// it: how much the peer's program gave is not on the wire, zeros follow.
	Private []byte
}

// Attr holds the attributes that connect a queue pair, from its own side.
type Attr struct {
	Peer         netip.AddrPort // address and UDP port of the peer's device
	Soft         bool           // it is a soft device: it sends from that port too
	RemoteQPN    wire.QPN
	RQPSN, SQPSN wire.PSN // first to be received, first to be sent
	MTU          uint8    // path MTU code, 1 … 5
	// MaxDestRdAtomic and MaxRdAtomic are the numbers that the peer asks for
	// and offers; once accepted, those agreed on.
	MaxDestRdAtomic, MaxRdAtomic uint8
	Timeout                      wire.AckTimeout
	RetryCount, RNRRetryCount    uint8
	FlowControl, SRQ             bool // of the peer
	TrafficClass, HopLimit       uint8
	FlowLabel                    uint32
}

// Datagram is a management datagram that shall leave, from queue pair 1 to
// queue pair 1.
type Datagram struct {
	To  netip.AddrPort
	MAD [wire.MADLen]byte
}
