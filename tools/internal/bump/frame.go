package bump

import (
	"encoding/binary"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Lengths in bytes, and other facts of a frame's headers.
const (
	ethernetLen = 14
	ip4Len      = 20 // without options
	ip6Len      = 40
	udpLen      = 8

	typeIP4     = 0x0800
	typeIP6     = 0x86dd
	protocolUDP = 17

	udpChecksum = 6 // its offset in the UDP header
)

// carried reports whether a frame is IP to one receiver.
func carried(frame []byte) bool {
	return isIP(frame) && frame[0]&1 == 0
}

// isIP reports whether a frame has an IP header's length.
func isIP(frame []byte) bool {
	if len(frame) < ethernetLen {
		return false
	}
	switch binary.BigEndian.Uint16(frame[12:]) {
	case typeIP4:
		return len(frame) >= ethernetLen+ip4Len
	case typeIP6:
		return len(frame) >= ethernetLen+ip6Len
	}
	return false
}

// transport returns where a carried frame's transport header begins, where the
// packet ends (a short frame is padded), and whether it is a whole UDP
// datagram.
func transport(frame []byte) (at, end int, udp bool) {
	ip := frame[ethernetLen:]
	var protocol byte
	var whole bool
	if binary.BigEndian.Uint16(frame[12:]) == typeIP4 {
		at = ethernetLen + int(ip[0]&15)*4
		end = ethernetLen + int(binary.BigEndian.Uint16(ip[2:]))
		protocol, whole = ip[9], binary.BigEndian.Uint16(ip[6:])&0x3fff == 0
	} else {
		at = ethernetLen + ip6Len
		end = at + int(binary.BigEndian.Uint16(ip[4:]))
		protocol, whole = ip[6], true
	}
	at, end = min(at, len(frame)), min(end, len(frame))
	return at, end, protocol == protocolUDP && whole && end-at >= udpLen
}

// flip inverts a bit of a frame's transport payload, of which random says
// which, and for every second UDP datagram corrects the checksum. It reports
// whether it did.
func flip(frame []byte, random uint64) (disguised bool) {
	at, end, udp := transport(frame)
	payload := at
	if udp {
		payload += udpLen
	}
	if payload >= end {
		payload = at // nothing but headers
	}
	if payload >= end {
		return false
	}
	disguise := udp && random&1 != 0 && payload > at
	bit := random >> 1 % uint64(8*(end-payload))
	i := payload + int(bit/8)
	before := word(frame[at:end], i-at)
	frame[i] ^= 1 << (bit % 8)
	if !disguise {
		return false
	}
	field := frame[at+udpChecksum:]
	if sum := binary.BigEndian.Uint16(field); sum != 0 { // 0: none was computed
		// RFC 1624, section 3, equation 3.
		next := wire.Fold(uint64(^sum) + uint64(^before) + uint64(word(frame[at:end], i-at)))
		binary.BigEndian.PutUint16(field, orOnes(^next))
	}
	return true
}

// word is the 16-bit word of b in which byte i lies, padded with zero.
func word(b []byte, i int) uint16 {
	i &^= 1
	if i+1 == len(b) {
		return uint16(b[i]) << 8
	}
	return binary.BigEndian.Uint16(b[i:])
}

// finish computes a checksum that the kernel left to a network card: over b,
// stored at offset, where the pseudo header's sum lies.
func finish(b []byte, offset int) {
	binary.BigEndian.PutUint16(b[offset:], orOnes(^wire.Fold(wire.Sum(0, b))))
}

// orOnes returns the checksum that UDP sends: ones for zero, which means none;
// for TCP both are zero.
func orOnes(sum uint16) uint16 {
	if sum == 0 {
		return 0xffff
	}
	return sum
}
