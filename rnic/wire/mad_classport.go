package wire

import "encoding/binary"

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

// Length returns [ClassPortInfoLen].
func (*ClassPortInfo) Length() int { return ClassPortInfoLen }

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
