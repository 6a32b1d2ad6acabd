package rdmacm

import (
	"slices"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// Event is something that happened to an id.
type Event struct {
	Type   abi.UCMEvent
	Status int32 // 0, a negative errno, or in REJECTED an abi.UCMRejReason
	Peer   Peer  // in CONNECT_RESPONSE; its private data also in REJECTED and, where the kernel gives any, ESTABLISHED and DISCONNECTED
}

// Peer holds the other side's description of itself.
type Peer struct {
	QPN uint32 // its queue pair's number

	// ResponderResources and InitiatorDepth are from here: READs and atomics
	// that the peer will send, and that it takes at a time. An answer may lower
	// them.
	ResponderResources uint8
	InitiatorDepth     uint8

	FlowControl   bool
	RetryCount    uint8 // in a request
	RNRRetryCount uint8

	// Private is the private data as the kernel gives it: the whole room of the
	// message (abi.UCMConnectData, UCMAcceptData, UCMRejectData) with zeroes
	// behind the peer's bytes. How much that was it does not tell.
	Private []byte
}

func peer(resp *abi.UCMEventResp) Peer {
	p := resp.Conn()
	return Peer{
		QPN: p.QPNum, ResponderResources: p.ResponderResources, InitiatorDepth: p.InitiatorDepth, FlowControl: p.FlowControl != 0,
		RetryCount: p.RetryCount, RNRRetryCount: p.RNRRetryCount, Private: slices.Clone(p.Private()),
	}
}

// Err is the failure that the event tells of, or nil. Errors are *EventError
// and *RejectedError.
func (e *Event) Err() error {
	switch e.Type {
	case abi.UCMEventRejected:
		if e.Status < 0 { // iWARP has errnos for reasons
			return &EventError{e.Type, e.Status}
		}
		return &RejectedError{abi.UCMRejReason(e.Status), e.Peer.Private}
	case abi.UCMEventAddrError, abi.UCMEventRouteError, abi.UCMEventConnectError, abi.UCMEventUnreachable,
		abi.UCMEventMulticastError, abi.UCMEventDeviceRemoval:
		return &EventError{e.Type, e.Status}
	}
	if e.Status < 0 && e.Type != abi.UCMEventDisconnected {
		return &EventError{e.Type, e.Status}
	}
	return nil
}

// ended is why an event ends a connection that stood, or nil.
func (e *Event) ended(local bool) error {
	switch e.Type {
	case abi.UCMEventDisconnected:
		return &DisconnectedError{local, e.Status}
	case abi.UCMEventTimewaitExit: // the peer reused its queue pair: a stale connection goes without being disconnected
		return &DisconnectedError{local, -int32(syscall.ESTALE)}
	}
	return e.Err()
}
