package dissect

import (
	"encoding/binary"
	"fmt"
)

// madHeaderLen is the length of the header that all management datagrams share.
const madHeaderLen = 24

// classCM is the management class of the communication manager.
const classCM = 7

// MAD is the common header of a management datagram (IBA 13.4.3).
type MAD struct {
	Class       uint8 // 7: communication management
	Method      uint8
	Status      uint16
	Transaction uint64
	Attribute   uint16
}

// cmMessages are the attributes of the communication manager (IBA 12.6).
var cmMessages = map[uint16]string{
	0x01: "ClassPortInfo",
	0x10: "ConnectRequest",
	0x11: "MsgRcptAck",
	0x12: "ConnectReject",
	0x13: "ConnectReply",
	0x14: "ReadyToUse",
	0x15: "DisconnectRequest",
	0x16: "DisconnectReply",
	0x17: "ServiceIDResReq",
	0x18: "ServiceIDResReqResp",
	0x19: "LoadAlternatePath",
	0x1a: "AlternatePathResponse",
}

// parseMAD reads the header of a datagram, nil if it is too short for one.
func parseMAD(b []byte) *MAD {
	if len(b) < madHeaderLen {
		return nil
	}
	return &MAD{
		Class:       b[1],
		Method:      b[3],
		Status:      binary.BigEndian.Uint16(b[4:]),
		Transaction: binary.BigEndian.Uint64(b[8:]),
		Attribute:   binary.BigEndian.Uint16(b[16:]),
	}
}

// Name returns the message's name in the specification, such as "CM
// ConnectRequest", or its numbers.
func (m *MAD) Name() string {
	if name := cmMessages[m.Attribute]; m.Class == classCM && name != "" {
		return "CM " + name
	}
	return fmt.Sprintf("class 0x%02x attribute 0x%04x", m.Class, m.Attribute)
}
