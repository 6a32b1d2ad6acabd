package wire

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

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
