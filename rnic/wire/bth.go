package wire

import "encoding/binary"

// Port is the UDP destination port of RoCEv2 (IBA A17).
const Port = 4791

// BTHLen is the length of a [BTH].
const BTHLen = 12

// BTH is the base transport header (IBA 9.2), with which every packet begins.
type BTH struct {
	Opcode    Opcode
	Solicited bool  // the receiver of the message shall raise a solicited event
	MigReq    bool  // path migration: migrated; a sender without migration sets it
	Pad       uint8 // 0 … 3 bytes after the payload
	TVer      uint8 // transport header version: 0
	PKey      PKey
	FECN      bool // congestion seen on the way of this packet (IBA A17)
	BECN      bool // congestion seen on the way back; outside the ICRC, as FECN is
	DestQPN   QPN
	AckReq    bool
	Selective bool // the sender repeats selectively, a reserved bit to others; see rnic/engine

	// Between soft devices, as Selective: the private MTU of a request's
	// message, or in an answer the largest that its sender takes; Proven says
	// that packets of that length came.
	PrivateMTU PrivateMTU
	Proven     bool

	PSN PSN
}

// Parse reads the first BTHLen bytes of b. The error is ErrShort or nil: the
// values are checked by [Packet.Parse].
func (h *BTH) Parse(b []byte) error {
	if len(b) < BTHLen {
		return ErrShort
	}
	b = b[:BTHLen]
	qpn := binary.BigEndian.Uint32(b[4:])
	psn := binary.BigEndian.Uint32(b[8:])
	h.Opcode = Opcode(b[0])
	h.Solicited = b[1]&0x80 != 0
	h.MigReq = b[1]&0x40 != 0
	h.Pad = b[1] >> 4 & 3
	h.TVer = b[1] & 0xf
	h.PKey = PKey(binary.BigEndian.Uint16(b[2:]))
	h.FECN = qpn&(1<<31) != 0
	h.BECN = qpn&(1<<30) != 0
	h.DestQPN = QPN(qpn & mask24)
	h.AckReq = psn&(1<<31) != 0
	h.Selective = psn&(1<<30) != 0
	h.Proven = psn&(1<<29) != 0
	h.PrivateMTU = PrivateMTU(psn >> 24 & 31)
	h.PSN = PSN(psn & mask24)
	return nil
}

// Append appends the header's BTHLen bytes to b.
func (h *BTH) Append(b []byte) []byte {
	flags := bit(h.Solicited, 7) | bit(h.MigReq, 6) | uint32(h.Pad&3)<<4 | uint32(h.TVer&0xf)
	b = append(b, byte(h.Opcode), byte(flags))
	b = binary.BigEndian.AppendUint16(b, uint16(h.PKey))
	b = binary.BigEndian.AppendUint32(b, bit(h.FECN, 31)|bit(h.BECN, 30)|uint32(h.DestQPN&mask24))
	private := bit(h.Selective, 30) | bit(h.Proven, 29) | uint32(h.PrivateMTU&31)<<24
	return binary.BigEndian.AppendUint32(b, bit(h.AckReq, 31)|private|uint32(h.PSN&mask24))
}

// NextPSN gives a packet's headers, which begin with the BTH, the PSN behind
// theirs.
func NextPSN(head []byte) {
	b := head[8:BTHLen]
	n := binary.BigEndian.Uint32(b)
	binary.BigEndian.PutUint32(b, n&^mask24|(n+1)&mask24)
}

// bit returns v as bit n.
func bit(v bool, n uint) uint32 {
	if v {
		return 1 << n
	}
	return 0
}
