package soak

import "github.com/rdmashim/rdmashim/kshim/abi"

// mistake is a fault of a request. A request with a mistake has no effect in
// the responder's memory, and nothing after it is executed.
type mistake uint8

const (
	fine mistake = iota

	// Found by the responder.
	unknownRKey  // a key that no region has
	staleRKey    // the key of a region that was deregistered; another has its place
	revokedRKey  // the key that a SEND with invalidate before it revoked
	beyondRegion // the last byte is outside
	wrapsAround  // address plus length overflow
	noPermission // the region forbids it
	otherPD      // the region is of another protection domain
	misaligned   // an atomic on an odd address
	forbidden    // the queue pair's access flags forbid it
	tooLong      // a message longer than the receive
	badReceive   // a message into a receive with a bad key
	oddReceive   // a message into a receive that is malformed

	// Found by the requester.
	unknownLKey
	beyondLocal
	otherPDLocal
	noLocalWrite // an answer into a region without local write access
	malformed    // the ring's entry made no sense
	manyPieces   // a list longer than the queue pair takes
	longInline   // more inline bytes than it takes
	oddOpcode    // an operation that it does not have
	oddAtomic    // an atomic that is not of eight bytes
	tooLarge     // more than a message can be

	numMistakes
)

// outcomes: the requester's status for each mistake (IBA 9.9.2, 9.9.3; table
// 60) and, where a receive is hit, the responder's.
var outcomes = [numMistakes]struct {
	name       string
	send, recv abi.WCStatus
}{
	fine:         {"none", abi.WCSuccess, abi.WCSuccess},
	unknownRKey:  {"unknown rkey", abi.WCRemAccessErr, 0},
	staleRKey:    {"stale rkey", abi.WCRemAccessErr, 0},
	revokedRKey:  {"rkey invalidated before", abi.WCRemAccessErr, 0},
	beyondRegion: {"beyond region", abi.WCRemAccessErr, 0},
	wrapsAround:  {"address overflow", abi.WCRemAccessErr, 0},
	noPermission: {"no permission", abi.WCRemAccessErr, 0},
	otherPD:      {"other PD", abi.WCRemAccessErr, 0},
	misaligned:   {"misaligned atomic", abi.WCRemInvReqErr, 0},
	forbidden:    {"forbidden by QP", abi.WCRemInvReqErr, 0},
	tooLong:      {"longer than receive", abi.WCRemInvReqErr, abi.WCLocLenErr},
	badReceive:   {"receive with bad lkey", abi.WCRemOpErr, abi.WCLocProtErr},
	oddReceive:   {"malformed receive", abi.WCRemOpErr, abi.WCLocQPOpErr},
	unknownLKey:  {"unknown lkey", abi.WCLocProtErr, 0},
	beyondLocal:  {"beyond local region", abi.WCLocProtErr, 0},
	otherPDLocal: {"other PD locally", abi.WCLocProtErr, 0},
	noLocalWrite: {"no local write", abi.WCLocProtErr, 0},
	malformed:    {"malformed request", abi.WCLocQPOpErr, 0},
	manyPieces:   {"list too long", abi.WCLocQPOpErr, 0},
	longInline:   {"inline too long", abi.WCLocQPOpErr, 0},
	oddOpcode:    {"unsupported opcode", abi.WCLocQPOpErr, 0},
	oddAtomic:    {"atomic of other length", abi.WCLocLenErr, 0},
	tooLarge:     {"message too large", abi.WCLocLenErr, 0},
}

func (m mistake) String() string { return outcomes[m].name }
