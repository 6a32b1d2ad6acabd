package wire

// MRAPrivateLen is the length of an MRA's private data.
const MRAPrivateLen = 222

// MRA is MsgRcptAck: a message came, its answer will take longer than usual
// (IBA 12.6.6).
type MRA struct {
	CommIDs
	About   CMAbout   // 2 bits
	Timeout CMTimeout // of the answer, from now
	Private [MRAPrivateLen]byte
}

// Length returns [CMLen].
func (*MRA) Length() int { return CMLen }

// Parse reads the CMLen bytes behind the MAD's header. The error is ErrShort or
// nil.
func (m *MRA) Parse(b []byte) error {
	if len(b) < CMLen {
		return ErrShort
	}
	_ = m.CommIDs.Parse(b)
	m.About = CMAbout(b[8] >> 6)
	m.Timeout = CMTimeout(b[9] >> 3)
	m.Private = [MRAPrivateLen]byte(b[10:])
	return nil
}

// Append appends the message's CMLen bytes to b.
func (m *MRA) Append(b []byte) []byte {
	b = m.CommIDs.append(b)
	b = append(b, byte(m.About)<<6, byte(m.Timeout)<<3)
	return append(b, m.Private[:]...)
}
