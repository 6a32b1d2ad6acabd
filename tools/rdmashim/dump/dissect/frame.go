package dissect

import (
	"encoding/binary"
	"net/netip"
)

// Link types of capture files (tcpdump.org/linktypes.html).
const (
	linkNull     = 0
	linkEthernet = 1
	linkRawBSD   = 12 // DLT_RAW, as it is written on most systems
	linkRawOpen  = 14 // DLT_RAW of OpenBSD
	linkRaw      = 101
	linkLoop     = 108
	linkSLL      = 113
	linkIPv4     = 228
	linkIPv6     = 229
	linkSLL2     = 276
)

const (
	etherIPv4 = 0x0800
	etherIPv6 = 0x86dd
	etherVLAN = 0x8100
	etherQinQ = 0x88a8
	etherOld  = 0x9100 // the type of stacked tags before 0x88a8

	maxTags = 8

	protocolUDP    = 17
	udpLen         = 8
	dontFragment   = 0x4000
	fragmentOffset = 0x1fff
)

// frame holds the fields of the headers below the RoCEv2 packet.
type frame struct {
	vlans    []uint16
	src, dst netip.AddrPort
	class    uint8
	hops     uint8
	id       uint16
	df       bool
	odd      bool   // IPv4 options or flags that the ICRC is not defined for
	length   int    // bytes of UDP payload, as the headers say
	data     []byte // of these, what the record holds

	ip, udp int // where in the record the two headers begin
}

// parse finds the UDP datagram in a record. ok is false where there is none, or
// not the beginning of one.
func (f *frame) parse(linkType int, b []byte) (ok bool) {
	kind, rest := f.network(linkType, b)
	if len(rest) == 0 || kind == 0 || kind != etherOf(rest[0]) {
		return false
	}
	return f.datagram(b, len(b)-len(rest))
}

// network cuts the link layer's header off and returns the EtherType of what is
// left.
func (f *frame) network(linkType int, b []byte) (kind uint16, rest []byte) {
	at, skip := -1, 0 // where the EtherType is, and the length of the header
	switch linkType {
	case linkEthernet:
		at, skip = 12, 14
	case linkSLL:
		at, skip = 14, 16
	case linkSLL2:
		at, skip = 0, 20
	case linkNull, linkLoop: // the address family, whose numbers differ
		skip = 4
	case linkRaw, linkRawBSD, linkRawOpen, linkIPv4, linkIPv6:
	default:
		return 0, nil
	}
	if len(b) <= skip {
		return 0, nil
	}
	if at < 0 {
		return etherOf(b[skip]), b[skip:]
	}
	kind, rest = binary.BigEndian.Uint16(b[at:]), b[skip:]
	for kind == etherVLAN || kind == etherQinQ || kind == etherOld {
		if len(rest) < 4 || len(f.vlans) == maxTags {
			return 0, nil
		}
		f.vlans = append(f.vlans, binary.BigEndian.Uint16(rest)&0xfff)
		kind, rest = binary.BigEndian.Uint16(rest[2:]), rest[4:]
	}
	return kind, rest
}

// etherOf is the EtherType of an IP packet that begins with b.
func etherOf(b byte) uint16 {
	switch b >> 4 {
	case 4:
		return etherIPv4
	case 6:
		return etherIPv6
	}
	return 0
}

func (f *frame) parse4(b []byte) bool {
	if len(b) < 20 {
		return false
	}
	header, total := int(b[0]&0xf)*4, int(binary.BigEndian.Uint16(b[2:]))
	flags := binary.BigEndian.Uint16(b[6:])
	if header < 20 || len(b) < header || total < header || b[9] != protocolUDP || flags&fragmentOffset != 0 {
		return false
	}
	f.class, f.hops = b[1], b[8]
	f.id, f.df = binary.BigEndian.Uint16(b[4:]), flags&dontFragment != 0
	f.odd = header != 20 || flags&^dontFragment != 0
	f.udp = f.ip + header
	src, dst := netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20]))
	return f.parseUDP(b[header:min(total, len(b))], total-header, src, dst)
}

func (f *frame) parse6(b []byte) bool {
	if len(b) < 40 {
		return false
	}
	n := int(binary.BigEndian.Uint16(b[4:]))
	payload := b[40:min(40+n, len(b))]
	protocol, rest, first := skipExtensions(b[6], payload)
	if protocol != protocolUDP || !first {
		return false
	}
	extensions := len(payload) - len(rest)
	f.class, f.hops, f.odd = b[0]<<4|b[1]>>4, b[7], extensions > 0
	f.udp = f.ip + 40 + extensions
	src, dst := netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40]))
	return f.parseUDP(rest, n-extensions, src, dst)
}

// parseUDP takes the IP payload, of which b is there and n bytes were sent.
func (f *frame) parseUDP(b []byte, n int, src, dst netip.Addr) bool {
	if len(b) < udpLen {
		return false
	}
	length := int(binary.BigEndian.Uint16(b[4:]))
	if length < udpLen {
		return false
	}
	f.src = netip.AddrPortFrom(src, binary.BigEndian.Uint16(b))
	f.dst = netip.AddrPortFrom(dst, binary.BigEndian.Uint16(b[2:]))
	f.odd = f.odd || length != n
	f.length = length - udpLen
	f.data = b[udpLen:min(length, len(b))]
	return true
}
