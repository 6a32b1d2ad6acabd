package engine

import "github.com/rdmashim/rdmashim/kshim/abi"

// events are the affiliated asynchronous events of a connection that wait for
// TakeEvent, as bits, and whether communication is established.
type events struct {
	waiting     uint8
	established bool // a packet of the peer came
}

// The events in the order in which they can come about.
const (
	communicationEstablished = iota
	requestError
	accessViolation
)

var eventTypes = [...]abi.EventType{
	communicationEstablished: abi.EventCommEst,
	requestError:             abi.EventQPReqErr,
	accessViolation:          abi.EventQPAccessErr,
}

// TakeEvent returns an asynchronous event, once, the oldest first; false when
// there is none. Completions that came before it are in Completions.
func (q *QP) TakeEvent() (abi.EventType, bool) {
	if q.events.waiting == 0 {
		return 0, false
	}
	for i, t := range eventTypes {
		if bit := uint8(1) << i; q.events.waiting&bit != 0 {
			q.events.waiting &^= bit
			return t, true
		}
	}
	return 0, false
}

// communicates notes a packet that only the peer could send. The first one is
// an event in RTR, where the program may not know yet that the peer is ready
// (IBA 11.6.3.1, "communication established").
func (q *QP) communicates() {
	if !q.events.established && q.state == abi.QPSRTR {
		q.events.waiting |= 1 << communicationEstablished
	}
	q.events.established = true
}

// raiseRefusal raises the event of a request that ends the queue pair, where no
// completion tells why: it held no receive, or one that is flushed
// (IBA 11.6.3.2, "invalid request" and "access violation").
func (q *QP) raiseRefusal(e refusal) {
	if q.rsp.holds && e.status != abi.WCWRFlushErr {
		return
	}
	if e == accessError || e == remoteOpError {
		q.events.waiting |= 1 << accessViolation
	} else {
		q.events.waiting |= 1 << requestError
	}
}
