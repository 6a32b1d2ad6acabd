package wire

import "sync/atomic"

// Lease is the permission to read memory of a program until it ends: that of a
// memory region, and that of a queue pair's outstanding requests.
type Lease struct {
	// Arena numbers the memory that another process may be shown, in which the
	// region begins At bytes from the start (kshim/arena). It is 0 for a region
	// that no other process may be shown.
	Arena, At uint64

	over atomic.Bool
}

// End ends the lease: a reader that checks Over from now on does not look at
// the memory any more.
func (l *Lease) End() { l.over.Store(true) }

// Loan says that a Datagram's payload lies where a program has it. It may be
// read while neither lease is over. The zero Loan is none.
type Loan struct {
	Region *Lease // of the memory region
	Pair   *Lease // of the queue pair
	At     uint64 // where in the region the payload begins
}

// Lent reports whether there is a loan.
func (l *Loan) Lent() bool { return l.Region != nil }

// Over reports whether one of the leases has ended.
func (l *Loan) Over() bool { return l.Region.over.Load() || l.Pair.over.Load() }

// Under reports whether the loan depends on a lease.
func (l *Loan) Under(x *Lease) bool { return l.Region == x || l.Pair == x }

// Elsewhere is the part of a Datagram whose payload lies in a program's memory.
type Elsewhere struct {
	// Loan says so of a packet to be sent. Only a near way takes such packets.
	Loan Loan

	// Pull is the state of a received payload that is still where the sender
	// has it; nil for others.
	Pull *atomic.Uint64
}

// Copy returns a packet to be sent whose bytes lie in buf, which it returns
// grown; but lent bytes stay where they are, while the loan lasts. It has no
// Sum and may leave beside others.
func (d *Datagram) Copy(buf []byte) (Datagram, []byte) {
	c := Datagram{Peer: d.Peer, Flip: d.Flip, Far: d.Far, Payload: d.Payload, Elsewhere: d.Elsewhere}
	buf = append(buf[:0], d.Head...)
	if !d.Loan.Lent() {
		buf = append(buf, d.Payload...)
	}
	c.Head = buf[:len(d.Head):len(d.Head)]
	if len(d.Payload) > 0 && !d.Loan.Lent() {
		c.Payload = buf[len(d.Head):]
	}
	return c, buf
}

// States of the word that belongs to a payload which is read where its sender
// has it. Both ends change it by compare and swap only:
//
//	Ready → Pulling → Done   the receiver reads it
//	Ready → Void             the sender takes it back: the packet is lost
//	Pulling → Void           the same, after a long wait: the payload read is void
const (
	Ready uint64 = iota + 1
	Pulling
	Done
	Void
)

// Claim begins to read the payload. False says that the sender took it back,
// and the packet counts as lost. Settle must follow. For a payload that is the
// receiver's own both do nothing.
func (p *Packet) Claim() bool {
	if p.Pull == nil || p.Pull.CompareAndSwap(Ready, Pulling) {
		return true
	}
	p.Pull, p.Payload = nil, nil
	return false
}

// Settle ends what Claim began, once. False says that the sender did not wait:
// the packet counts as lost.
func (p *Packet) Settle() bool {
	w := p.Pull
	p.Pull = nil
	return w == nil || w.CompareAndSwap(Pulling, Done)
}
