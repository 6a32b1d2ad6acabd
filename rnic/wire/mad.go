package wire

import (
	"encoding/binary"
	"fmt"
)

const (
	// MADLen is the length of a management datagram, always.
	MADLen = 256
	// MADHeaderLen is the length of a [MAD], with which it begins.
	MADHeaderLen = 24
	// CMLen is the length of a communication management message: what the
	// header leaves of the datagram.
	CMLen = MADLen - MADHeaderLen

	// GSIQKey is the Q_Key of all datagrams between general services queue
	// pairs (IBA 10.2.4).
	GSIQKey = 0x80010000
)

// Values of a MAD's fields (IBA 13.4.3, 16.7.1).
const (
	MADBaseVersion = 1
	ClassCM        = 7 // communication management
	ClassVersionCM = 2
	MethodSend     = 3 // no answer is implied; communication management knows no other
)

// MAD is the header that all management datagrams share (IBA 13.4.3).
type MAD struct {
	BaseVersion   uint8
	Class         uint8
	ClassVersion  uint8
	Method        uint8
	Status        uint16
	ClassSpecific uint16
	TID           uint64 // transaction: a message's answer carries it too
	Attribute     CMAttribute
	Modifier      uint32
}

// Length returns [MADHeaderLen].
func (*MAD) Length() int { return MADHeaderLen }

// Parse reads the first MADHeaderLen bytes of b. The error is ErrShort or nil:
// what the values mean is the class's affair.
func (h *MAD) Parse(b []byte) error {
	if len(b) < MADHeaderLen {
		return ErrShort
	}
	h.BaseVersion, h.Class, h.ClassVersion, h.Method = b[0], b[1], b[2], b[3]
	h.Status = binary.BigEndian.Uint16(b[4:])
	h.ClassSpecific = binary.BigEndian.Uint16(b[6:])
	h.TID = binary.BigEndian.Uint64(b[8:])
	h.Attribute = CMAttribute(binary.BigEndian.Uint16(b[16:]))
	h.Modifier = binary.BigEndian.Uint32(b[20:])
	return nil
}

// Append appends the header's MADHeaderLen bytes to b.
func (h *MAD) Append(b []byte) []byte {
	b = append(b, h.BaseVersion, h.Class, h.ClassVersion, h.Method)
	b = binary.BigEndian.AppendUint16(b, h.Status)
	b = binary.BigEndian.AppendUint16(b, h.ClassSpecific)
	b = binary.BigEndian.AppendUint64(b, h.TID)
	b = binary.BigEndian.AppendUint16(b, uint16(h.Attribute))
	b = append(b, 0, 0)
	return binary.BigEndian.AppendUint32(b, h.Modifier)
}

// IsCM reports whether the datagram is a message of the communication manager
// in the version that is spoken here.
func (h *MAD) IsCM() bool {
	return h.BaseVersion == MADBaseVersion && h.Class == ClassCM && h.ClassVersion == ClassVersionCM && h.Method == MethodSend
}

// CMHeader returns the header of a communication management message.
func CMHeader(tid uint64, a CMAttribute) MAD {
	return MAD{BaseVersion: MADBaseVersion, Class: ClassCM, ClassVersion: ClassVersionCM, Method: MethodSend, TID: tid, Attribute: a}
}

// CMAttribute is the attribute of a management datagram; in those of the
// communication manager it says which message follows (IBA 16.7.3).
type CMAttribute uint16

const (
	AttrREQ     CMAttribute = 0x10
	AttrMRA     CMAttribute = 0x11
	AttrREJ     CMAttribute = 0x12
	AttrREP     CMAttribute = 0x13
	AttrRTU     CMAttribute = 0x14
	AttrDREQ    CMAttribute = 0x15
	AttrDREP    CMAttribute = 0x16
	AttrSIDRREQ CMAttribute = 0x17
	AttrSIDRREP CMAttribute = 0x18
	AttrLAP     CMAttribute = 0x19
	AttrAPR     CMAttribute = 0x1a
)

var cmAttributeNames = map[CMAttribute]string{
	0x01:        "ClassPortInfo",
	AttrREQ:     "ConnectRequest",
	AttrMRA:     "MsgRcptAck",
	AttrREJ:     "ConnectReject",
	AttrREP:     "ConnectReply",
	AttrRTU:     "ReadyToUse",
	AttrDREQ:    "DisconnectRequest",
	AttrDREP:    "DisconnectReply",
	AttrSIDRREQ: "ServiceIDResReq",
	AttrSIDRREP: "ServiceIDResReqResp",
	AttrLAP:     "LoadAlternatePath",
	AttrAPR:     "AlternatePathResponse",
}

// String returns the name in the specification, or the number.
func (a CMAttribute) String() string {
	if name := cmAttributeNames[a]; name != "" {
		return name
	}
	return fmt.Sprintf("attribute 0x%04x", uint16(a))
}
