package capture

import (
	"encoding/binary"
	"net/netip"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

const (
	ip4Len, ip6Len, udpLen = 20, 40, 8

	protocolUDP  = 17
	hopLimit     = 64
	dontFragment = 0x4000
)

// frameLen is the length of an IP packet from src to dst with n bytes of UDP
// payload, and 0 if there is no such packet: the addresses are of two families,
// or the length does not fit.
func frameLen(src, dst netip.Addr, n int) int {
	if src.Is4() != dst.Is4() || !src.IsValid() || !dst.IsValid() || n > 0xffff-ip4Len-udpLen {
		return 0
	}
	if src.Is4() {
		return ip4Len + udpLen + n
	}
	return ip6Len + udpLen + n
}

// appendFrame appends an IP packet whose UDP payload is the three parts.
// Preconditions: frameLen is not 0 for it; IPv4 addresses are not mapped.
func appendFrame(b []byte, src, dst netip.AddrPort, id uint16, head, payload, tail []byte) []byte {
	start := len(b)
	length := udpLen + len(head) + len(payload) + len(tail)
	v4 := src.Addr().Is4()
	if v4 {
		b = append(b, 0x45, 0)
		b = binary.BigEndian.AppendUint16(b, uint16(ip4Len+length))
		b = binary.BigEndian.AppendUint16(b, id)
		b = binary.BigEndian.AppendUint16(b, dontFragment)
		b = append(b, hopLimit, protocolUDP, 0, 0)
		s, d := src.Addr().As4(), dst.Addr().As4()
		b = append(append(b, s[:]...), d[:]...)
		binary.BigEndian.PutUint16(b[start+10:], ^wire.Fold(wire.Sum(0, b[start:])))
	} else {
		b = append(b, 0x60, 0, 0, 0)
		b = binary.BigEndian.AppendUint16(b, uint16(length))
		b = append(b, protocolUDP, hopLimit)
		s, d := src.Addr().As16(), dst.Addr().As16()
		b = append(append(b, s[:]...), d[:]...)
	}
	udp := len(b)
	b = binary.BigEndian.AppendUint16(b, src.Port())
	b = binary.BigEndian.AppendUint16(b, dst.Port())
	b = binary.BigEndian.AppendUint16(b, uint16(length))
	b = append(b, 0, 0)
	b = append(append(append(b, head...), payload...), tail...)
	if !v4 {
		binary.BigEndian.PutUint16(b[udp+6:], checksum6(b[udp-32:udp], b[udp:]))
	}
	return b
}

// checksum6 is the UDP checksum over IPv6 (RFC 8200, 8.1): of the addresses,
// the length, the protocol and the datagram, whose checksum field is 0.
func checksum6(addrs, udp []byte) uint16 {
	c := ^wire.Fold(wire.Sum(wire.Sum(uint64(len(udp))+protocolUDP, addrs), udp))
	if c == 0 {
		c = 0xffff
	}
	return c
}
