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

// RejectReason says why a REJ was sent (IBA 12.6.7.2).
type RejectReason uint16

// The reasons that are given or acted on here.
const (
	RejNoResources       RejectReason = 3
	RejTimeout           RejectReason = 4
	RejUnsupported       RejectReason = 5
	RejInvalidCommID     RejectReason = 6
	RejInvalidServiceID  RejectReason = 8
	RejInvalidService    RejectReason = 9
	RejStaleConn         RejectReason = 10
	RejInvalidGID        RejectReason = 12
	RejPortCMRedirect    RejectReason = 24
	RejPortRedirect      RejectReason = 25
	RejInvalidMTU        RejectReason = 26
	RejConsumer          RejectReason = 28
	RejVendorUnsupported RejectReason = 35
)

var rejectText = [...]string{
	1:                    "no queue pair available",
	2:                    "no end-to-end context available",
	RejNoResources:       "no resources available",
	RejTimeout:           "timeout",
	RejUnsupported:       "unsupported request",
	RejInvalidCommID:     "invalid communication id",
	7:                    "invalid communication instance",
	RejInvalidServiceID:  "invalid service id",
	RejInvalidService:    "invalid transport service type",
	RejStaleConn:         "stale connection",
	11:                   "reliable datagram channel does not exist",
	RejInvalidGID:        "primary remote port GID rejected",
	13:                   "primary remote port LID rejected",
	14:                   "invalid primary SL",
	15:                   "invalid primary traffic class",
	16:                   "invalid primary hop limit",
	17:                   "invalid primary packet rate",
	18:                   "alternate remote port GID rejected",
	19:                   "alternate remote port LID rejected",
	20:                   "invalid alternate SL",
	21:                   "invalid alternate traffic class",
	22:                   "invalid alternate hop limit",
	23:                   "invalid alternate packet rate",
	RejPortCMRedirect:    "port and CM redirection",
	RejPortRedirect:      "port redirection",
	RejInvalidMTU:        "invalid path MTU",
	27:                   "insufficient responder resources",
	RejConsumer:          "consumer reject",
	29:                   "RNR retry count rejected",
	30:                   "duplicate local communication id",
	31:                   "unsupported class version",
	32:                   "invalid primary flow label",
	33:                   "invalid alternate flow label",
	RejVendorUnsupported: "vendor option is not supported",
}

// String returns the specification's words, or the number.
func (r RejectReason) String() string { return name(rejectText[:], r, "reason") }

// ClassPortInfoLen is the length of a [ClassPortInfo]: a REJ's information
// holds just one.
const ClassPortInfoLen = REJInfoLen

// ClassPortInfo says where the requests for a class of management go (IBA
// 13.4.8.1). In a REJ for [RejPortCMRedirect] it is the port and the queue pair
// of the communication manager that has the service (IBA 12.6.7.2).
type ClassPortInfo struct {
	BaseVersion, ClassVersion uint8
	CapabilityMask            uint16
	CapabilityMask2           uint32 // 27 bits
	RespTime                  CMTimeout
	RedirectGID               GID
	RedirectTC                uint8
	RedirectSL                uint8  // 4 bits
	RedirectFlow              uint32 // 20 bits
	RedirectLID               uint16
	RedirectPKey              PKey
	RedirectQPN               QPN
	RedirectQKey              uint32
	Trap                      [32]byte // where traps go: the same fields again
}

// Parse reads the first ClassPortInfoLen bytes of b. The error is ErrShort or
// nil.
func (c *ClassPortInfo) Parse(b []byte) error {
	if len(b) < ClassPortInfoLen {
		return ErrShort
	}
	c.BaseVersion, c.ClassVersion, c.CapabilityMask = b[0], b[1], binary.BigEndian.Uint16(b[2:])
	mask := binary.BigEndian.Uint32(b[4:])
	c.CapabilityMask2, c.RespTime = mask>>5, CMTimeout(mask&31)
	c.RedirectGID = GID(b[8:])
	flow := binary.BigEndian.Uint32(b[24:])
	c.RedirectTC, c.RedirectSL, c.RedirectFlow = uint8(flow>>24), uint8(flow>>20&15), flow&(1<<20-1)
	c.RedirectLID, c.RedirectPKey = binary.BigEndian.Uint16(b[28:]), PKey(binary.BigEndian.Uint16(b[30:]))
	c.RedirectQPN = QPN(binary.BigEndian.Uint32(b[32:])) & MulticastQPN
	c.RedirectQKey = binary.BigEndian.Uint32(b[36:])
	c.Trap = [32]byte(b[40:])
	return nil
}

// Append appends the ClassPortInfoLen bytes to b.
func (c *ClassPortInfo) Append(b []byte) []byte {
	b = append(b, c.BaseVersion, c.ClassVersion)
	b = binary.BigEndian.AppendUint16(b, c.CapabilityMask)
	b = binary.BigEndian.AppendUint32(b, c.CapabilityMask2<<5|uint32(c.RespTime)&31)
	b = append(b, c.RedirectGID[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(c.RedirectTC)<<24|uint32(c.RedirectSL&15)<<20|c.RedirectFlow&(1<<20-1))
	b = binary.BigEndian.AppendUint16(b, c.RedirectLID)
	b = binary.BigEndian.AppendUint16(b, uint16(c.RedirectPKey))
	b = binary.BigEndian.AppendUint32(b, uint32(c.RedirectQPN&MulticastQPN))
	b = binary.BigEndian.AppendUint32(b, c.RedirectQKey)
	return append(b, c.Trap[:]...)
}
