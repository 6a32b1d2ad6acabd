package wire

import "encoding/binary"

// REQPrivateLen is the length of a REQ's private data. Of the RDMA IP CM
// service the first [IPCMLen] bytes are an [IPCM] and the rest is the
// program's.
const REQPrivateLen = 92

// REQ is ConnectRequest, which asks for a connection (IBA 12.6.5). Responder
// resources and initiator depth are the sender's own.
type REQ struct {
	LocalCommID        CommID
	ServiceID          ServiceID
	LocalCAGUID        uint64
	LocalQKey          uint32
	LocalQPN           QPN
	ResponderResources uint8
	LocalEECN          QPN // end-to-end context, of reliable datagrams only
	InitiatorDepth     uint8
	RemoteEECN         QPN
	RemoteTimeout      CMTimeout // within which the receiver shall answer
	TransportService   uint8     // 2 bits: ServiceCodeRC, 1 for UC, 2 for RD
	FlowControl        bool      // end-to-end credits are given
	StartingPSN        PSN
	LocalTimeout       CMTimeout // within which the sender answers
	RetryCount         uint8     // 3 bits: for the receiver's queue pair
	PKey               PKey
	MTU                uint8 // 4 bits: 1 … 5 for 256 … 4096 bytes
	RDCExists          bool
	RNRRetryCount      uint8 // 3 bits
	MaxCMRetries       uint8 // 4 bits
	SRQ                bool
	ExtendedTransport  uint8 // 3 bits
	Primary, Alternate CMPath
	Private            [REQPrivateLen]byte
}

// ServiceCodeRC is the transport service type of a REQ for a reliable
// connection.
const ServiceCodeRC uint8 = 0

// Parse reads the CMLen bytes behind the MAD's header. The error is ErrShort or
// nil.
func (m *REQ) Parse(b []byte) error {
	if len(b) < CMLen {
		return ErrShort
	}
	word := func(at int) uint32 { return binary.BigEndian.Uint32(b[at:]) }
	m.LocalCommID = CommID(word(0))
	m.ServiceID = ServiceID(binary.BigEndian.Uint64(b[8:]))
	m.LocalCAGUID = binary.BigEndian.Uint64(b[16:])
	m.LocalQKey = word(28)
	m.LocalQPN, m.ResponderResources = QPN(word(32)>>8), b[35]
	m.LocalEECN, m.InitiatorDepth = QPN(word(36)>>8), b[39]
	m.RemoteEECN = QPN(word(40) >> 8)
	m.RemoteTimeout, m.TransportService, m.FlowControl = CMTimeout(b[43]>>3), b[43]>>1&3, b[43]&1 != 0
	m.StartingPSN = PSN(word(44) >> 8)
	m.LocalTimeout, m.RetryCount = CMTimeout(b[47]>>3), b[47]&7
	m.PKey = PKey(binary.BigEndian.Uint16(b[48:]))
	m.MTU, m.RDCExists, m.RNRRetryCount = b[50]>>4, b[50]&8 != 0, b[50]&7
	m.MaxCMRetries, m.SRQ, m.ExtendedTransport = b[51]>>4, b[51]&8 != 0, b[51]&7
	m.Primary.parse(b[52:])
	m.Alternate.parse(b[52+pathLen:])
	m.Private = [REQPrivateLen]byte(b[52+2*pathLen:])
	return nil
}

// Append appends the message's CMLen bytes to b.
func (m *REQ) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(m.LocalCommID))
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint64(b, uint64(m.ServiceID))
	b = binary.BigEndian.AppendUint64(b, m.LocalCAGUID)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, m.LocalQKey)
	b = append24(b, uint32(m.LocalQPN), m.ResponderResources)
	b = append24(b, uint32(m.LocalEECN), m.InitiatorDepth)
	b = append24(b, uint32(m.RemoteEECN), uint8(m.RemoteTimeout)<<3|m.TransportService&3<<1|byte(bit(m.FlowControl, 0)))
	b = append24(b, uint32(m.StartingPSN), uint8(m.LocalTimeout)<<3|m.RetryCount&7)
	b = binary.BigEndian.AppendUint16(b, uint16(m.PKey))
	b = append(b, m.MTU<<4|byte(bit(m.RDCExists, 3))|m.RNRRetryCount&7, m.MaxCMRetries<<4|byte(bit(m.SRQ, 3))|m.ExtendedTransport&7)
	b = m.Primary.append(b)
	b = m.Alternate.append(b)
	return append(b, m.Private[:]...)
}

// append24 appends the low 24 bits of v, and a byte.
func append24(b []byte, v uint32, low uint8) []byte {
	return binary.BigEndian.AppendUint32(b, v<<8|uint32(low))
}

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

// REPPrivateLen is the length of a REP's private data.
const REPPrivateLen = 196

// REP is ConnectReply, which accepts a connection (IBA 12.6.8). Responder
// resources and initiator depth are the sender's own.
type REP struct {
	CommIDs
	LocalQKey          uint32
	LocalQPN           QPN
	LocalEECN          QPN
	StartingPSN        PSN
	ResponderResources uint8
	InitiatorDepth     uint8
	TargetAckDelay     uint8 // 5 bits: 4.096 µs times two to its power
	Failover           uint8 // 2 bits: the fate of the alternate path
	FlowControl        bool
	RNRRetryCount      uint8 // 3 bits
	SRQ                bool
	LocalCAGUID        uint64
	Private            [REPPrivateLen]byte
}

// Parse reads the CMLen bytes behind the MAD's header. The error is ErrShort or
// nil.
func (m *REP) Parse(b []byte) error {
	if len(b) < CMLen {
		return ErrShort
	}
	word := func(at int) uint32 { return binary.BigEndian.Uint32(b[at:]) }
	_ = m.CommIDs.Parse(b)
	m.LocalQKey = word(8)
	m.LocalQPN = QPN(word(12) >> 8)
	m.LocalEECN = QPN(word(16) >> 8)
	m.StartingPSN = PSN(word(20) >> 8)
	m.ResponderResources, m.InitiatorDepth = b[24], b[25]
	m.TargetAckDelay, m.Failover, m.FlowControl = b[26]>>3, b[26]>>1&3, b[26]&1 != 0
	m.RNRRetryCount, m.SRQ = b[27]>>5, b[27]&0x10 != 0
	m.LocalCAGUID = binary.BigEndian.Uint64(b[28:])
	m.Private = [REPPrivateLen]byte(b[36:])
	return nil
}

// Append appends the message's CMLen bytes to b.
func (m *REP) Append(b []byte) []byte {
	b = m.CommIDs.append(b)
	b = binary.BigEndian.AppendUint32(b, m.LocalQKey)
	b = append24(b, uint32(m.LocalQPN), 0)
	b = append24(b, uint32(m.LocalEECN), 0)
	b = append24(b, uint32(m.StartingPSN), 0)
	b = append(b, m.ResponderResources, m.InitiatorDepth,
		m.TargetAckDelay<<3|m.Failover&3<<1|byte(bit(m.FlowControl, 0)), m.RNRRetryCount<<5|byte(bit(m.SRQ, 4)))
	b = binary.BigEndian.AppendUint64(b, m.LocalCAGUID)
	return append(b, m.Private[:]...)
}

// RTUPrivateLen is the length of an RTU's private data.
const RTUPrivateLen = 224

// RTU is ReadyToUse: the REP came, data may flow (IBA 12.6.9).
type RTU struct {
	CommIDs
	Private [RTUPrivateLen]byte
}

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
