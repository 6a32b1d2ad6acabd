package wire

// DREPPrivateLen is the length of a DREP's private data.
const DREPPrivateLen = 224

// DREP is DisconnectReply, the answer to a DREQ (IBA 12.6.11).
type DREP struct {
	CommIDs
	Private [DREPPrivateLen]byte
}

// Length returns [CMLen].
func (*DREP) Length() int { return CMLen }

// Parse reads the CMLen bytes behind the MAD's header. The error is ErrShort or
// nil.
func (m *DREP) Parse(b []byte) error {
	if len(b) < CMLen {
		return ErrShort
	}
	_ = m.CommIDs.Parse(b)
	m.Private = [DREPPrivateLen]byte(b[idsLen:])
	return nil
}

// Append appends the message's CMLen bytes to b.
func (m *DREP) Append(b []byte) []byte { return append(m.CommIDs.append(b), m.Private[:]...) }
