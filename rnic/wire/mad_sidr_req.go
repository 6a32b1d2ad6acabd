package wire

import "encoding/binary"

// SIDRREQPrivateLen is the length of a SIDRREQ's private data. An [IPCM] at its
// beginning leaves a program 180 bytes.
const SIDRREQPrivateLen = 216

// SIDRREQ is ServiceIDResReq, which asks for the queue pair that serves
// datagrams of a service (IBA 12.11.1).
type SIDRREQ struct {
	RequestID CommID // the answer carries it too
	PKey      uint16
	// Reserved is zero. The soft RNIC's connection manager tells its UDP port
	// here if that is not 4791; others do not look.
	Reserved  uint16
	ServiceID ServiceID
	Private   [SIDRREQPrivateLen]byte
}

// Length returns [CMLen].
func (*SIDRREQ) Length() int { return CMLen }

// Parse reads the CMLen bytes behind the MAD's header. The error is ErrShort or
// nil.
func (m *SIDRREQ) Parse(b []byte) error {
	if len(b) < CMLen {
		return ErrShort
	}
	m.RequestID = CommID(binary.BigEndian.Uint32(b))
	m.PKey = binary.BigEndian.Uint16(b[4:])
	m.Reserved = binary.BigEndian.Uint16(b[6:])
	m.ServiceID = ServiceID(binary.BigEndian.Uint64(b[8:]))
	m.Private = [SIDRREQPrivateLen]byte(b[16:])
	return nil
}

// Append appends the message's CMLen bytes to b.
func (m *SIDRREQ) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(m.RequestID))
	b = binary.BigEndian.AppendUint16(b, m.PKey)
	b = binary.BigEndian.AppendUint16(b, m.Reserved)
	b = binary.BigEndian.AppendUint64(b, uint64(m.ServiceID))
	return append(b, m.Private[:]...)
}
