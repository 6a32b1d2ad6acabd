package wire

// RTUPrivateLen is the length of an RTU's private data.
const RTUPrivateLen = 224

// RTU is ReadyToUse: the REP came, data may flow (IBA 12.6.9).
type RTU struct {
	CommIDs
	Private [RTUPrivateLen]byte
}

// Length returns [CMLen].
func (*RTU) Length() int { return CMLen }

// Parse reads the CMLen bytes behind the MAD's header. The error is ErrShort or
// nil.
func (m *RTU) Parse(b []byte) error {
	if len(b) < CMLen {
		return ErrShort
	}
	_ = m.CommIDs.Parse(b)
	m.Private = [RTUPrivateLen]byte(b[idsLen:])
	return nil
}

// Append appends the message's CMLen bytes to b.
func (m *RTU) Append(b []byte) []byte { return append(m.CommIDs.append(b), m.Private[:]...) }
