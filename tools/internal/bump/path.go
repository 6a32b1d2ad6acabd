package bump

import (
	"time"

	"github.com/rdmashim/rdmashim/rnic/link/rules"
)

// Path describes the treatment of packets in one direction of a network path,
// in this order. Its zero value delivers every packet of at most DefaultMTU
// bytes at once. Probabilities are of a packet, 0 … 1.
type Path struct {
	// MTU is the largest IP packet in bytes; a longer one is dropped without a
	// word to its sender. 0 means DefaultMTU.
	MTU int
	// Rules decide on RoCEv2 packets, as they do in the sender's device. A set
	// is for one direction alone. nil: none.
	Rules *rules.Set
	// Loss drops a packet.
	Loss float64
	// Corrupt inverts one bit of a packet's transport payload. Of every second
	// UDP datagram the checksum is corrected, as by a router that damages
	// packets in its memory: only checks above UDP notice.
	Corrupt float64
	// Duplicate sends a packet twice.
	Duplicate float64
	// Rate is in bits a second, of Ethernet frames without preamble and check
	// sequence. 0 means no limit.
	Rate int64
	// Queue is the number of bytes of frames that may wait for the rate;
	// further frames are dropped. 0 means DefaultQueue.
	Queue int
	// Delay is how much later a packet arrives, after it has left the queue.
	Delay time.Duration
	// Reorder holds a packet back for ReorderBy longer than others, which may
	// overtake it. ReorderBy 0 means DefaultReorderBy.
	Reorder   float64
	ReorderBy time.Duration
	// Seed, a packet's number and its direction determine which faults it
	// meets.
	Seed uint64
}

const (
	// DefaultMTU is Ethernet's.
	DefaultMTU = 1500
	// AnyMTU is more than any packet has.
	AnyMTU = 1 << 16
	// DefaultQueue in bytes is some forty full packets: a cheap switch's.
	DefaultQueue = 64 << 10
	// DefaultReorderBy lets a few packets of a burst overtake.
	DefaultReorderBy = time.Millisecond
)

// Counts tell a path's acts. Every packet that came, and every duplicate, is
// counted once as dropped, delivered or waiting:
//
//	Packets + Duplicated = TooLong + Lost + Overflowed + Refused + Delivered + Waiting
type Counts struct {
	Packets    uint64 // came from the sender
	RoCE       uint64 // of these, RoCEv2's, which the rules have seen
	TooLong    uint64 // dropped for the MTU
	Lost       uint64 // dropped by Loss or a rule
	Overflowed uint64 // dropped because the queue was full
	Refused    uint64 // the receiver's kernel did not take them
	Delivered  uint64
	Waiting    uint64 // for the rate or the delay

	Corrupted  uint64 // with a checksum that is wrong, or of another protocol than UDP
	Disguised  uint64 // corrupted with a right UDP checksum
	Duplicated uint64
	Reordered  uint64 // held back
	// Overrun packets were lost on the way to the bridge, which was too slow.
	// They are not among Packets.
	Overrun uint64
}
