package wire

import "sync/atomic"

// CNPLen is the length of the reserved bytes, zero, that a congestion
// notification has in place of extended headers (IBA A17).
const CNPLen = 16

// Packet is a packet taken apart. Only the extended headers that the opcode
// carries count; [Packet.Parse] clears the others and [Packet.AppendHeaders]
// does not look at them. A Packet may be used again and again.
type Packet struct {
	BTH
	DETH         DETH
	FETH         FETH
	RETH         RETH
	AtomicETH    AtomicETH
	AETH         AETH
	AtomicAckETH AtomicAckETH
	ImmDt        ImmDt
	IETH         IETH
	Payload      []byte // without pad

	// Pull is the state of a Payload that lies where the sender has it, which
	// is read between Claim and Settle; nil for others.
	Pull *atomic.Uint64
}

// Parse takes apart b, the payload of a UDP datagram without the trailing ICRC.
// Payload becomes a part of b (its capacity ends where the pad begins), so it
// lives as long as b does. An error is an [Error]: ErrShort, ErrVersion,
// ErrOpcode or ErrPad, found in this order; the Packet is then not to be used.
//
// Whether a payload is allowed, and how long it must be, depends on the
// connection: that is the responder's and the completer's check, with
// [Opcode.HasPayload].
func (p *Packet) Parse(b []byte) error {
	n, err := p.parseHeaders(b)
	if err != nil {
		return err
	}
	if len(b)%4 != 0 || int(p.Pad) > len(b)-n {
		return ErrPad
	}
	end := len(b) - int(p.Pad)
	p.Payload = b[n:end:end]
	return nil
}

// ParseApart is Parse for a payload, without pad, that does not lie behind its
// headers.
func (p *Packet) ParseApart(head, payload []byte) error {
	n, err := p.parseHeaders(head)
	if err != nil {
		return err
	}
	if len(head) != n || p.Pad != PadLen(len(payload)) {
		return ErrPad
	}
	p.Payload = payload
	return nil
}

// parseHeaders reads the headers at the beginning of b, n bytes.
func (p *Packet) parseHeaders(b []byte) (n int, err error) {
	*p = Packet{}
	if err := p.BTH.Parse(b); err != nil {
		return 0, err
	}
	if p.TVer != 0 {
		return 0, ErrVersion
	}
	if n = p.Opcode.HeaderLen(); n == 0 {
		return 0, ErrOpcode
	}
	if len(b) < n {
		return 0, ErrShort
	}
	p.parseExtended(b[BTHLen:n])
	return n, nil
}

// parseExtended reads the opcode's extended headers, which b begins with.
func (p *Packet) parseExtended(b []byte) {
	h := p.Opcode.Headers()
	if h&HasDETH != 0 {
		b = p.DETH.parse(b)
	}
	if h&HasFETH != 0 {
		b = p.FETH.parse(b)
	}
	if h&HasRETH != 0 {
		b = p.RETH.parse(b)
	}
	if h&HasAtomicETH != 0 {
		b = p.AtomicETH.parse(b)
	}
	if h&HasAETH != 0 {
		b = p.AETH.parse(b)
	}
	if h&HasAtomicAckETH != 0 {
		b = p.AtomicAckETH.parse(b)
	}
	if h&HasImmDt != 0 {
		b = p.ImmDt.parse(b)
	}
	if h&HasIETH != 0 {
		p.IETH.parse(b)
	}
}

// AppendHeaders appends the BTH as it stands in p, pad count included, and the
// extended headers that its opcode carries: Opcode.HeaderLen() bytes. Payload,
// pad and ICRC are the caller's. An unknown opcode gets a BTH alone.
func (p *Packet) AppendHeaders(b []byte) []byte {
	b = p.BTH.Append(b)
	h := p.Opcode.Headers()
	if h&HasDETH != 0 {
		b = p.DETH.append(b)
	}
	if h&HasFETH != 0 {
		b = p.FETH.append(b)
	}
	if h&HasRETH != 0 {
		b = p.RETH.append(b)
	}
	if h&HasAtomicETH != 0 {
		b = p.AtomicETH.append(b)
	}
	if h&HasAETH != 0 {
		b = p.AETH.append(b)
	}
	if h&HasAtomicAckETH != 0 {
		b = p.AtomicAckETH.append(b)
	}
	if h&HasImmDt != 0 {
		b = p.ImmDt.append(b)
	}
	if h&HasIETH != 0 {
		b = p.IETH.append(b)
	}
	if h&HasCNP != 0 {
		b = append(b, zeros[:]...)
	}
	return b
}

// Append appends the whole packet without ICRC: headers, payload and as many
// zero bytes as Pad says.
func (p *Packet) Append(b []byte) []byte {
	b = append(p.AppendHeaders(b), p.Payload...)
	return append(b, zeros[:p.Pad&3]...)
}

// Length returns the number of bytes that [Packet.Append] appends.
func (p *Packet) Length() int { return p.Opcode.HeaderLen() + len(p.Payload) + int(p.Pad&3) }

// PadLen returns the pad count for a payload of n bytes: 0 … 3.
func PadLen(n int) uint8 { return uint8(-n & 3) }

var zeros [CNPLen]byte

// Pad returns n zero bytes, 0 … 3, to send behind a payload. They are shared:
// no caller may write to them.
func Pad(n uint8) []byte { return zeros[: n&3 : n&3] }
