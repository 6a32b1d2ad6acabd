package wire

import "encoding/binary"

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
	Failover           uint8 // 2 bits: what became of the alternate path
	FlowControl        bool
	RNRRetryCount      uint8 // 3 bits
	SRQ                bool
	LocalCAGUID        uint64
	Private            [REPPrivateLen]byte
}

// Length returns [CMLen].
func (*REP) Length() int { return CMLen }

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
