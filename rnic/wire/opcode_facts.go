package wire

import "strings"

// Service is a transport service. The values are the three high bits of the
// opcode (IBA 9.2.1).
type Service uint8

const (
	ServiceRC  Service = 0
	ServiceUC  Service = 1
	ServiceRD  Service = 2 // no opcodes in the table
	ServiceUD  Service = 3
	ServiceCNP Service = 4
	ServiceXRC Service = 5 // no opcodes in the table

	numServices = 8
)

var serviceText = [numServices]string{"RC", "UC", "RD", "UD", "CNP", "XRC", "reserved service", "reserved service"}

// String returns the service's short name.
func (s Service) String() string { return name(serviceText[:], s, "service") }

// Operation is a packet's operation, apart from its service and place in the
// message.
type Operation uint8

const (
	OpNone Operation = iota
	OpSend
	OpWrite
	OpRead
	OpReadResponse
	OpAck
	OpAtomicAck
	OpCompareSwap
	OpFetchAdd
	OpFlush
	OpAtomicWrite
	OpCongestion

	numOperations
)

var operationText = [numOperations]string{
	"none", "SEND", "RDMA WRITE", "RDMA READ", "RDMA READ response", "ACK", "ATOMIC ACK",
	"COMPARE_SWAP", "FETCH_ADD", "FLUSH", "ATOMIC WRITE", "CNP",
}

// String returns the operation's name.
func (o Operation) String() string { return name(operationText[:], o, "unknown operation") }

func (o Operation) isRequest() bool {
	switch o {
	case OpSend, OpWrite, OpRead, OpCompareSwap, OpFetchAdd, OpFlush, OpAtomicWrite:
		return true
	}
	return false
}

func (o Operation) hasPayload() bool {
	switch o {
	case OpSend, OpWrite, OpReadResponse, OpAtomicWrite:
		return true
	}
	return false
}

// Position is the place of a packet in its message. A message of one packet, an
// acknowledgement among them, is Only.
type Position uint8

const (
	NoPosition Position = iota
	First
	Middle
	Last
	Only

	numPositions
)

var positionText = [numPositions]string{"none", "First", "Middle", "Last", "Only"}

// String returns the position's name.
func (p Position) String() string { return name(positionText[:], p, "unknown position") }

// Suffix is the extra field that a SEND or WRITE brings beside its payload.
type Suffix uint8

const (
	Plain Suffix = iota
	Immediate
	Invalidate

	numSuffixes
)

var suffixText = [numSuffixes]string{"plain", "with immediate", "with invalidate"}

// String returns the suffix' name.
func (x Suffix) String() string { return name(suffixText[:], x, "unknown suffix") }

// Headers is a set of extended headers. In a packet they follow the BTH in the
// order of these constants.
type Headers uint16

const (
	HasDETH Headers = 1 << iota
	HasFETH
	HasRETH
	HasAtomicETH
	HasAETH
	HasAtomicAckETH
	HasImmDt
	HasIETH
	// HasCNP stands for the 16 reserved bytes of a congestion notification.
	HasCNP

	numHeaders = iota
)

var headerFacts = [numHeaders]struct {
	name   string
	length uint8
}{
	{"DETH", DETHLen}, {"FETH", FETHLen}, {"RETH", RETHLen}, {"AtomicETH", AtomicETHLen},
	{"AETH", AETHLen}, {"AtomicAckETH", AtomicAckETHLen}, {"ImmDt", ImmDtLen}, {"IETH", IETHLen},
	{"CNP", CNPLen},
}

// Length returns the bytes that the headers of the set take together.
func (h Headers) Length() int {
	n := 0
	for i := range headerFacts {
		if h>>i&1 != 0 {
			n += int(headerFacts[i].length)
		}
	}
	return n
}

// String returns the names of the headers, in their order, joined by "+".
func (h Headers) String() string {
	var names []string
	for i := range headerFacts {
		if h>>i&1 != 0 {
			names = append(names, headerFacts[i].name)
		}
	}
	return strings.Join(names, "+")
}
