package core

// ImmediateBits are the low bits of an immediate, which carry credit; the
// others are zero.
const ImmediateBits = 30

const immediateMask = 1<<ImmediateBits - 1

// Producer keeps the sender's account of the peer's ring.
//
// Invariant: freed <= next <= freed + Size. The peer has consumed all before
// freed; chunks lie from there to next.
type Producer struct {
	layout Layout
	next   uint64 // position behind the last chunk
	freed  uint64 // position up to which the peer has told that it consumed
	bytes  uint64 // payload bytes put, for FIN
}

// Room is how many bytes may be charged behind the last chunk.
func (p *Producer) Room() uint64 { return p.freed + p.layout.Size - p.next }

// Fits reports whether the peer's ring has room for a chunk of n bytes, the
// skip before it included.
func (p *Producer) Fits(n uint64) bool {
	_, end := p.layout.Place(p.next, n)
	return end <= p.freed+p.layout.Size
}

// Put places a chunk of n bytes and returns its offset in the peer's ring.
// Preconditions: Fits(n), n >= 1.
func (p *Producer) Put(n uint64) (offset uint64) {
	start, end := p.layout.Place(p.next, n)
	p.next = end
	p.bytes += n
	return p.layout.Offset(start)
}

// Credit takes in the immediate of a chunk of the peer's: how many quanta of
// its ring it has consumed, mod 2^30. At most MaxQuanta are outstanding, so
// that the number is the next one with these low bits.
func (p *Producer) Credit(imm uint32) error {
	if imm > immediateMask {
		return breach("an immediate of %#08x; its two high bits are zero", imm)
	}
	known := uint32(p.freed / p.layout.Quantum)
	more := uint64((imm-known)&immediateMask) * p.layout.Quantum
	return p.credit(more)
}

// CreditTo takes in the position of a control message.
func (p *Producer) CreditTo(consumed uint64) error {
	if consumed%p.layout.Quantum != 0 || consumed < p.freed {
		return breach("a credit to position %d after one to %d, in quanta of %d", consumed, p.freed, p.layout.Quantum)
	}
	return p.credit(consumed - p.freed)
}

func (p *Producer) credit(more uint64) error {
	if more > p.next-p.freed {
		return breach("a credit for %d bytes; %d are outstanding", more, p.next-p.freed)
	}
	p.freed += more
	return nil
}
