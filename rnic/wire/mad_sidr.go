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

const (
	// SIDRREPPrivateLen is the length of a SIDRREP's private data.
	SIDRREPPrivateLen = 136
	// SIDRREPInfoLen is the room for a SIDRREP's additional information.
	SIDRREPInfoLen = 72
)

// SIDRREP is ServiceIDResReqResp, the answer to a SIDRREQ (IBA 12.11.2). Linux
// sends QPN and QKey as zero unless Status is [SIDRValid].
type SIDRREP struct {
	RequestID CommID
	Status    SIDRStatus
	InfoLen   uint8 // bytes of Info that count
	QPN       QPN   // the queue pair to send datagrams to
	ServiceID ServiceID
	QKey      uint32
	Info      [SIDRREPInfoLen]byte // its meaning depends on Status
	Private   [SIDRREPPrivateLen]byte
}

// Parse reads the CMLen bytes behind the MAD's header. The error is ErrShort or
// nil; InfoLen may lie.
func (m *SIDRREP) Parse(b []byte) error {
	if len(b) < CMLen {
		return ErrShort
	}
	m.RequestID = CommID(binary.BigEndian.Uint32(b))
	m.Status, m.InfoLen = SIDRStatus(b[4]), b[5]
	m.QPN = QPN(binary.BigEndian.Uint32(b[8:]) >> 8)
	m.ServiceID = ServiceID(binary.BigEndian.Uint64(b[12:]))
	m.QKey = binary.BigEndian.Uint32(b[20:])
	m.Info = [SIDRREPInfoLen]byte(b[24:])
	m.Private = [SIDRREPPrivateLen]byte(b[24+SIDRREPInfoLen:])
	return nil
}

// Append appends the message's CMLen bytes to b.
func (m *SIDRREP) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(m.RequestID))
	b = append(b, byte(m.Status), m.InfoLen, 0, 0)
	b = append24(b, uint32(m.QPN), 0)
	b = binary.BigEndian.AppendUint64(b, uint64(m.ServiceID))
	b = binary.BigEndian.AppendUint32(b, m.QKey)
	b = append(b, m.Info[:]...)
	return append(b, m.Private[:]...)
}

// SIDRStatus says in a SIDRREP how the request ended (IBA 12.11.2).
type SIDRStatus uint8

const (
	SIDRValid              SIDRStatus = 0
	SIDRUnsupportedService SIDRStatus = 1
	SIDRRejected           SIDRStatus = 2
	SIDRNoQP               SIDRStatus = 3
	SIDRRedirect           SIDRStatus = 4
	SIDRUnsupportedVersion SIDRStatus = 5
)

var sidrText = [...]string{
	SIDRValid:              "QPN and Q_Key are valid",
	SIDRUnsupportedService: "service id is not supported",
	SIDRRejected:           "rejected by the service provider",
	SIDRNoQP:               "no queue pair available",
	SIDRRedirect:           "redirection",
	SIDRUnsupportedVersion: "unsupported class version",
}

// String returns the status in words, or the number.
func (s SIDRStatus) String() string { return name(sidrText[:], s, "status") }
