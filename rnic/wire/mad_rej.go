package wire

import "encoding/binary"

const (
	// REJPrivateLen is the length of a REJ's private data.
	REJPrivateLen = 148
	// REJInfoLen is the room for a REJ's additional information.
	REJInfoLen = 72
)

// REJ is ConnectReject, which ends an attempt to connect (IBA 12.6.7).
type REJ struct {
	CommIDs
	About   CMAbout // 2 bits
	InfoLen uint8   // 7 bits: bytes of Info that count
	Reason  RejectReason
	Info    [REJInfoLen]byte // its meaning depends on Reason (IBA 12.6.7.2)
	Private [REJPrivateLen]byte
}

// Length returns [CMLen].
func (*REJ) Length() int { return CMLen }

// Parse reads the CMLen bytes behind the MAD's header. The error is ErrShort or
// nil; InfoLen may lie.
func (m *REJ) Parse(b []byte) error {
	if len(b) < CMLen {
		return ErrShort
	}
	_ = m.CommIDs.Parse(b)
	m.About = CMAbout(b[8] >> 6)
	m.InfoLen = b[9] >> 1
	m.Reason = RejectReason(binary.BigEndian.Uint16(b[10:]))
	m.Info = [REJInfoLen]byte(b[12:])
	m.Private = [REJPrivateLen]byte(b[12+REJInfoLen:])
	return nil
}

// Append appends the message's CMLen bytes to b.
func (m *REJ) Append(b []byte) []byte {
	b = m.CommIDs.append(b)
	b = append(b, byte(m.About)<<6, m.InfoLen<<1)
	b = binary.BigEndian.AppendUint16(b, uint16(m.Reason))
	b = append(b, m.Info[:]...)
	return append(b, m.Private[:]...)
}
