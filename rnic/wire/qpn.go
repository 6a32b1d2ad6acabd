package wire

import "fmt"

// QPN is a queue pair number: 24 bits.
type QPN uint32

const (
	// SMIQPN is the subnet management queue pair; RoCE does not use it.
	SMIQPN QPN = 0
	// GSIQPN is the general services queue pair, which carries the
	// communication manager's datagrams (IBA 16).
	GSIQPN QPN = 1
	// MulticastQPN is the destination of a multicast datagram.
	MulticastQPN QPN = mask24
)

// Valid reports whether q fits 24 bits.
func (q QPN) Valid() bool { return q <= mask24 }

// String returns q as 0x with six digits.
func (q QPN) String() string { return fmt.Sprintf("0x%06x", uint32(q)) }

// PKey is a partition key: 15 bits of partition, and above them the membership
// bit (IBA 10.9).
type PKey uint16

// DefaultPKey is full membership of the default partition, the only key that
// RoCE uses.
const DefaultPKey PKey = 0xffff

// Full reports whether k stands for full membership.
func (k PKey) Full() bool { return k&0x8000 != 0 }

// Match reports whether a packet with key k may enter a port with key q: the
// same partition, not 0, and at least one full member (IBA 10.9).
func (k PKey) Match(q PKey) bool {
	return k&0x7fff == q&0x7fff && k&0x7fff != 0 && (k|q)&0x8000 != 0
}
