package cm

// State is that of a connection (IBA 12.9.5, 12.9.6).
type State uint8

const (
	// Idle: it came to an end, or never began; its owner still holds it.
	Idle State = iota
	// ReqSent: the active side waits for an answer to its REQ.
	ReqSent
	// ReqRcvd: the passive side's program has to accept or reject.
	ReqRcvd
	// RepSent: the passive side waits for the RTU.
	RepSent
	// RepWait: an MRA came for the REP (IBA: RTU Wait). An MRA for a REQ, and
	// one that was sent, change no state: the wait alone is longer.
	RepWait
	// RepRcvd: the active side's program has to confirm or reject.
	RepRcvd
	// Established: data may flow.
	Established
	// DreqSent: a DREQ is under way.
	DreqSent
	// TimeWait: it is over; its identifiers wait until no packet of it can be
	// on the way any more.
	TimeWait
	// SidrReqSent: it is no connection: this side asks for the queue pair that
	// serves datagrams (SIDR), and waits for the answer.
	SidrReqSent
	// SidrReqRcvd: the program has to answer such a question.
	SidrReqRcvd

	numStates
)

var stateNames = [numStates]string{
	"IDLE", "REQ_SENT", "REQ_RCVD", "REP_SENT", "MRA_REP_RCVD", "REP_RCVD", "ESTABLISHED", "DREQ_SENT", "TIMEWAIT", "SIDR_REQ_SENT", "SIDR_REQ_RCVD",
}

// String returns Linux's name (enum ib_cm_state).
func (s State) String() string {
	if s < numStates {
		return stateNames[s]
	}
	return "UNKNOWN"
}
