package driver

import (
	"net/netip"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// CMDevice is the communication manager (IBA vol. 1, chapter 12; the part of
// ib_cm) of a Device whose queue pairs can be connected by address. The core
// keeps ids, ports and events; the driver exchanges the messages. Methods are
// called concurrently and without the core's locks. Errors are, or wrap, a
// syscall.Errno.
//
// Services of the port space UDP (abi.UCMPSUDP) are of datagrams, which nothing
// connects: the request asks for the queue pair that serves them (SIDR, IBA
// 12.11), Accept and Reject answer it, and no event tells of that.
type CMDevice interface {
	// CMResolve tells how the device reaches dst, from src if that is valid.
	// EADDRNOTAVAIL when src is no address of the device, ENETUNREACH when it
	// does not reach dst.
	CMResolve(src, dst netip.Addr) (CMPath, error)

	// CMListen asks for the requests for a service id that name addr, any
	// address of its IP version when it is unspecified, or any at all when it
	// is invalid. At most backlog of them wait for
	// CMConn.Taken, Accept, Reject or Destroy; the driver drops more, and their
	// senders try again.
	CMListen(service uint64, addr netip.Addr, backlog int, ev CMListenEvents) (CMListener, error)

	// CMConnect sends a request. The outcome goes to ev: CONNECT_RESPONSE,
	// REJECTED or UNREACHABLE; of datagrams ESTABLISHED or UNREACHABLE.
	CMConnect(p *CMRequest, ev CMEvents) (CMConn, error)
}

// CMPath is the way to an address.
type CMPath struct {
	Local    netip.Addr // the device's address
	GIDIndex int        // in the GID table of port 1
	TOS      uint8      // the core's: the program's wish when the route was resolved
	// Preferred says that the system would take this way; it decides between
	// devices that reach the same address.
	Preferred bool
}

// CMListener is a driver's listener. Requests that were reported stay when it
// is closed.
type CMListener interface{ Close() }

// CMListenEvents takes requests. It does not block and may be called with the
// driver's locks held, as CMEvents.
type CMListenEvents interface {
	// Request tells of a request, whose connection is the core's from now on.
	// It returns the receiver of its events, or an error: with EAFNOSUPPORT
	// the listener is for other addresses, and the driver refuses the request
	// as a program would (abi.UCMRejConsumerDefined); otherwise the driver
	// forgets it without an answer.
	Request(conn CMConn, r *CMRequest) (CMEvents, error)
}

// CMEvents takes the events of a connection.
type CMEvents interface{ Event(CMEvent) }

// CMEvent is an event of a connection: CONNECT_RESPONSE (the peer accepted;
// next is Confirm or Reject), ESTABLISHED (on the passive side), REJECTED,
// UNREACHABLE, DISCONNECTED (the driver has answered the peer) or
// TIMEWAIT_EXIT.
type CMEvent struct {
	Event   abi.UCMEvent
	Status  int32       // a negative errno; in REJECTED the abi.UCMRejReason, if it is not negative; of datagrams in UNREACHABLE the peer's answer
	Peer    CMPeerParam // in CONNECT_RESPONSE
	Private []byte      // as long as the message's room

	// AV and QKey are, with Peer.QPN, where datagrams go: in their ESTABLISHED.
	AV   abi.QPDest // as CMAttr's
	QKey uint32
}

// CMPeerParam holds the parameters of the peer's end, read from this side.
type CMPeerParam struct {
	QPN                                uint32
	ResponderResources, InitiatorDepth uint8
	RetryCount, RNRRetryCount          uint8
	FlowControl, SRQ                   bool
}

// CMRequest holds the contents of a request.
type CMRequest struct {
	Service  uint64
	Src, Dst netip.AddrPort // as the programs see them; Dst's port is in Service too
	GIDIndex int            // of the sending device
	Param    CMPeerParam
	Private  []byte

	TOS        uint8
	FlowLabel  uint32
	AckTimeout uint8 // local ACK timeout that the program wishes; 0: the driver's
}

// CMReply holds the contents of an acceptance.
type CMReply struct {
	Param   CMPeerParam
	QKey    uint32 // of datagrams
	Private []byte
}

// CMConn is a driver's connection. EINVAL in states that a call does not fit.
type CMConn interface {
	// Attr returns the attributes that the queue pair is set to; EINVAL before
	// the peer's word is there and after the connection's end.
	Attr() (CMAttr, error)
	// Taken tells that the request does not wait any more (CMListen's backlog).
	Taken()
	Accept(r *CMReply) error
	// Confirm tells the peer that the queue pair is ready (RTU).
	Confirm() error
	Reject(reason abi.UCMRejReason, private []byte) error
	Disconnect() error
	// CommEstablished tells that the queue pair got a packet.
	CommEstablished() error
	// Destroy gives the connection back in any state; the peer is told of the
	// end if it must know. No event comes after it has returned.
	Destroy()
}

// CMAttr holds a connection's attributes of its queue pair (struct ib_qp_attr
// as ib_cm_init_qp_attr fills it).
type CMAttr struct {
	AV                           abi.QPDest // SGIDIndex and PortNum are the core's
	DestQPN, RQPSN, SQPSN        uint32
	PathMTU                      abi.MTU
	MaxRdAtomic, MaxDestRdAtomic uint8
	Timeout                      uint8
	RetryCnt, RNRRetry           uint8
}
