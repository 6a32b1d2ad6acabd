package driver

import "net/netip"

// MulticastQP is a QP that can be in multicast groups. The core has checked
// that it is for datagrams, that the address is a group's, and that the queue
// pair is in it or not. A queue pair that is destroyed leaves its groups.
type MulticastQP interface {
	// AttachMulticast has the queue pair receive the packets to a group.
	AttachMulticast(group netip.Addr) error
	DetachMulticast(group netip.Addr) error
}
