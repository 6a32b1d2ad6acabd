package wire

import (
	"encoding/binary"
	"fmt"
	"net/netip"
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

// Parse reads the first MADHeaderLen bytes of b. The error is ErrShort or nil:
// the values are left to the class.
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

// CommID is a local communication identifier, by which a communication manager
// knows a connection (IBA 12.9.1). 0 stands for none.
type CommID uint32

// String returns c as 0x with eight digits.
func (c CommID) String() string { return fmt.Sprintf("0x%08x", uint32(c)) }

// CMTimeout is the five-bit code of a time that a communication manager asks to
// be waited: 4.096 µs times two to its power (IBA 12.7.4). Unlike in an
// [AckTimeout], 0 is a time like any other.
type CMTimeout uint8

// Nanoseconds returns the time, 4.096 µs … 8796 s. Bits above the fifth are
// ignored.
func (t CMTimeout) Nanoseconds() int64 { return 4096 << (t & codeMask) }

// ServiceID names the service that a REQ or a SIDRREQ asks for (IBA 12.7.3).
type ServiceID uint64

// ipService is the prefix of the service identifiers of the RDMA IP CM service
// (IBA A11); below it lie the IP protocol and the port.
const ipService ServiceID = 0x0000000001000000

const protocolTCP = 6

// TCPService returns the service identifier of a port in the port space TCP, as
// RDMA_PS_TCP of the RDMA connection manager.
func TCPService(port uint16) ServiceID { return ipService | protocolTCP<<16 | ServiceID(port) }

// UDPService returns the service identifier of a port in the port space UDP, as
// RDMA_PS_UDP of the RDMA connection manager.
func UDPService(port uint16) ServiceID { return ipService | protocolUDP<<16 | ServiceID(port) }

// IP returns protocol and port of an identifier of the RDMA IP CM service; of
// others ok is false.
func (s ServiceID) IP() (protocol uint8, port uint16, ok bool) {
	return uint8(s >> 16), uint16(s), s&^0xffffff == ipService
}

// TCPPort returns the port of an identifier in the port space TCP.
func (s ServiceID) TCPPort() (port uint16, ok bool) {
	protocol, port, ok := s.IP()
	return port, ok && protocol == protocolTCP
}

// UDPPort returns the port of an identifier in the port space UDP.
func (s ServiceID) UDPPort() (port uint16, ok bool) {
	protocol, port, ok := s.IP()
	return port, ok && protocol == protocolUDP
}

// String returns s as 0x with sixteen digits.
func (s ServiceID) String() string { return fmt.Sprintf("0x%016x", uint64(s)) }

// GID is a port's global identifier: of RoCEv2 its IP address, IPv4 as
// ::ffff:a.b.c.d.
type GID [16]byte

// Bare is an address as packets carry it: IPv4 not as IPv6, and without a zone.
func Bare(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// GIDOf returns the GID of an address; zeros for the zero Addr.
func GIDOf(a netip.Addr) (g GID) {
	if a.IsValid() {
		g = a.As16()
	}
	return g
}

// Addr returns the IP address.
func (g GID) Addr() netip.Addr { return netip.AddrFrom16(g).Unmap() }

// PermissiveLID stands in place of a LID where there is none, as on RoCE.
const PermissiveLID = 0xffff

// pathLen is the length of a CMPath.
const pathLen = 44

// CMPath is a path in a REQ, seen from its sender (IBA 12.7).
type CMPath struct {
	LocalLID, RemoteLID uint16
	LocalGID, RemoteGID GID
	FlowLabel           uint32 // 20 bits
	PacketRate          uint8  // 6 bits
	TrafficClass        uint8
	HopLimit            uint8
	SL                  uint8 // 4 bits
	SubnetLocal         bool
	AckTimeout          AckTimeout // the sender's local ACK timeout
}

// parse reads the first pathLen bytes of b.
func (p *CMPath) parse(b []byte) {
	p.LocalLID = binary.BigEndian.Uint16(b)
	p.RemoteLID = binary.BigEndian.Uint16(b[2:])
	p.LocalGID, p.RemoteGID = GID(b[4:20]), GID(b[20:36])
	word := binary.BigEndian.Uint32(b[36:])
	p.FlowLabel, p.PacketRate = word>>12, uint8(word&0x3f)
	p.TrafficClass, p.HopLimit = b[40], b[41]
	p.SL, p.SubnetLocal = b[42]>>4, b[42]&8 != 0
	p.AckTimeout = AckTimeout(b[43] >> 3)
}

func (p *CMPath) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, p.LocalLID)
	b = binary.BigEndian.AppendUint16(b, p.RemoteLID)
	b = append(append(b, p.LocalGID[:]...), p.RemoteGID[:]...)
	b = binary.BigEndian.AppendUint32(b, p.FlowLabel<<12|uint32(p.PacketRate&0x3f))
	return append(b, p.TrafficClass, p.HopLimit, p.SL<<4|byte(bit(p.SubnetLocal, 3)), byte(p.AckTimeout)<<3)
}

// idsLen is the length of the two communication identifiers with which every
// message of a connection but a REQ begins.
const idsLen = 8

// CommIDs are the identifiers of the sender and of the receiver of a message.
type CommIDs struct {
	LocalCommID  CommID
	RemoteCommID CommID
}

// Parse reads the identifiers at the beginning of any message of a connection
// but a REQ. The error is ErrShort or nil.
func (c *CommIDs) Parse(b []byte) error {
	if len(b) < idsLen {
		return ErrShort
	}
	c.LocalCommID = CommID(binary.BigEndian.Uint32(b))
	c.RemoteCommID = CommID(binary.BigEndian.Uint32(b[4:]))
	return nil
}

func (c *CommIDs) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(c.LocalCommID))
	return binary.BigEndian.AppendUint32(b, uint32(c.RemoteCommID))
}

// CMAbout says in an MRA or a REJ which message it is about.
type CMAbout uint8

const (
	AboutREQ   CMAbout = 0
	AboutREP   CMAbout = 1
	AboutOther CMAbout = 2 // MRA: LAP; REJ: none
)

// String returns "REQ", "REP" or "other".
func (a CMAbout) String() string { return [...]string{"REQ", "REP", "other", "other"}[a&3] }
