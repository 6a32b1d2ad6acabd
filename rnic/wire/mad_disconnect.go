package wire

import "encoding/binary"

// DREQPrivateLen is the length of a DREQ's private data.
const DREQPrivateLen = 220

// DREQ is DisconnectRequest, which ends a connection (IBA 12.6.10).
type DREQ struct {
	CommIDs
	RemoteQPN QPN // the receiver's queue pair
	Private   [DREQPrivateLen]byte
}

// Parse reads the CMLen bytes behind the MAD's header. The error is ErrShort or
// nil.
func (m *DREQ) Parse(b []byte) error {
	if len(b) < CMLen {
		return ErrShort
	}
	_ = m.CommIDs.Parse(b)
	m.RemoteQPN = QPN(binary.BigEndian.Uint32(b[8:]) >> 8)
	m.Private = [DREQPrivateLen]byte(b[12:])
	return nil
}

// Append appends the message's CMLen bytes to b.
func (m *DREQ) Append(b []byte) []byte {
	b = append24(m.CommIDs.append(b), uint32(m.RemoteQPN), 0)
	return append(b, m.Private[:]...)
}

// DREPPrivateLen is the length of a DREP's private data.
const DREPPrivateLen = RTUPrivateLen

// DREP is DisconnectReply, the answer to a DREQ (IBA 12.6.11). It looks like an
// RTU.
type DREP RTU

// Parse reads the CMLen bytes behind the MAD's header. The error is ErrShort or
// nil.
func (m *DREP) Parse(b []byte) error { return (*RTU)(m).Parse(b) }

// Append appends the message's CMLen bytes to b.
func (m *DREP) Append(b []byte) []byte { return (*RTU)(m).Append(b) }
