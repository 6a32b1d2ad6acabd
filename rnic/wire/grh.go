package wire

import (
	"encoding/binary"
	"net/netip"
)

// GRHLen is the length of the global route header that stands before the
// payload in the receive buffer of an unreliable datagram, whatever the IP
// version.
const GRHLen = 40

// GRH is the IP header of an unreliable datagram as a receive buffer shows it
// (IBA 8.3, A17). Over IPv6 it is the IPv6 header. Over IPv4 it is 20 bytes of
// no meaning, here zero, then the IPv4 header: FlowLabel has no place in it.
type GRH struct {
	Src, Dst     netip.Addr // both IPv4, or both IPv6
	TrafficClass uint8      // type of service, over IPv4
	FlowLabel    uint32     // 20 bits
	PayloadLen   uint16     // bytes behind the IP header
	NextHeader   uint8      // 17: UDP
	HopLimit     uint8      // time to live, over IPv4
}

// Append appends the header's GRHLen bytes to b. The IPv4 form has the
// identification 0, Don't Fragment set, and a valid checksum; it is chosen when
// both addresses are IPv4, mapped or not.
func (h *GRH) Append(b []byte) []byte {
	src, dst := h.Src.Unmap(), h.Dst.Unmap()
	if src.Is4() && dst.Is4() {
		return h.append4(b, src.As4(), dst.As4())
	}
	b = binary.BigEndian.AppendUint32(b, 6<<28|uint32(h.TrafficClass)<<20|h.FlowLabel&0xfffff)
	b = binary.BigEndian.AppendUint16(b, h.PayloadLen)
	b = append(b, h.NextHeader, h.HopLimit)
	b = append16(b, h.Src)
	return append16(b, h.Dst)
}

func (h *GRH) append4(b []byte, src, dst [4]byte) []byte {
	b = append(append(b, zeros[:]...), zeros[:GRHLen-ip4HeaderLen-len(zeros)]...)
	start := len(b)
	b = append(b, 0x45, h.TrafficClass)
	b = binary.BigEndian.AppendUint16(b, h.PayloadLen+ip4HeaderLen)
	b = append(b, 0, 0, ip4FlagDF, 0, h.HopLimit, h.NextHeader, 0, 0)
	b = append(append(b, src[:]...), dst[:]...)
	binary.BigEndian.PutUint16(b[start+10:], ^Fold(Sum(0, b[start:])))
	return b
}

// append16 appends an address in 16 bytes, zeros for the zero Addr.
func append16(b []byte, a netip.Addr) []byte {
	var raw [16]byte
	if a.IsValid() {
		raw = a.As16()
	}
	return append(b, raw[:]...)
}
