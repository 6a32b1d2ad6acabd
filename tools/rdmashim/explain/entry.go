package explain

import "slices"

// Kind is the kind of an entry.
type Kind string

// The kinds, in the order in which answers are given.
const (
	Status   Kind = "status"   // of a work completion, enum ib_wc_status
	Errno    Kind = "errno"    // Linux's numbers
	Opcode   Kind = "opcode"   // of a packet, the BTH's first byte
	Syndrome Kind = "syndrome" // of an acknowledgement, the AETH's first byte
	Timer    Kind = "timer"    // RNR timer code, IBA table 45
	Timeout  Kind = "timeout"  // local ACK timeout code
	Reject   Kind = "reject"   // reason in a REJ of the connection manager
	Event    Kind = "event"    // asynchronous, enum ib_event_type
	CMEvent  Kind = "cm"       // of the connection manager, enum rdma_cm_event_type
	Fault    Kind = "fault"    // a word of a rule in fault=, package rules
)

// Kinds lists them all.
var Kinds = []Kind{Status, Errno, Opcode, Syndrome, Timer, Timeout, Reject, Event, CMEvent, Fault}

// Title says in words what a kind is.
func (k Kind) Title() string {
	return map[Kind]string{
		Status:   "status of a work completion",
		Errno:    "errno of a call",
		Opcode:   "opcode of a packet",
		Syndrome: "syndrome of an acknowledgement",
		Timer:    "RNR timer code",
		Timeout:  "local ACK timeout code",
		Reject:   "reason of a rejected connection",
		Event:    "event of a device",
		CMEvent:  "event of the connection manager",
		Fault:    "word of a rule in fault=",
	}[k]
}

// Entry is one thing explained. Its JSON keys are stable.
type Entry struct {
	Kind   Kind     `json:"kind"`
	Name   string   `json:"name"`
	Number int      `json:"number"`
	Also   []string `json:"also"`   // other names
	Means  string   `json:"means"`  // a sentence
	Causes []string `json:"causes"` // usual ones, the likeliest first
	Look   []string `json:"look"`   // the places to look at

	Packet       *Packet  `json:"packet,omitempty"`       // of an opcode
	Milliseconds *float64 `json:"milliseconds,omitempty"` // of a timer or timeout
}

// Packet holds the facts that a packet's opcode gives.
type Packet struct {
	Service     string   `json:"service"`
	Operation   string   `json:"operation"`
	Position    string   `json:"position"`
	Direction   string   `json:"direction"` // "request", "response" or "notification"
	Headers     []string `json:"headers"`   // behind the BTH
	HeaderBytes int      `json:"header_bytes"`
	Payload     bool     `json:"payload"`
}

// All returns every entry of a kind, in the order of their numbers.
func All(k Kind) []Entry { return slices.Clone(lists()[k]) }
