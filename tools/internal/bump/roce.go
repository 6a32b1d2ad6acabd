package bump

import (
	"encoding/binary"
	"net/netip"

	"github.com/rdmashim/rdmashim/rnic/link/rules"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// packet is the place of a RoCEv2 packet in a frame.
type packet struct {
	ip, udp int // offsets of its headers
	end     int // of the byte behind its ICRC
	v6      bool
}

const (
	tagLen        = 4 // of a VLAN
	typeTag       = 0x8100
	typeOuterTag  = 0x88a8
	congested4    = 0x03 // the mark CE in IPv4's second byte
	congested6    = 0x30 // and in IPv6's
	dontFragment4 = 0x40
)

// find finds the RoCEv2 packet of a frame, behind VLAN tags: a UDP datagram to
// port 4791, unfragmented, in an IP packet without options or extensions, as
// the ICRC wants it.
func find(frame []byte) (p packet, ok bool) {
	shift := 0
	for len(frame) >= shift+tagLen+ethernetLen && isTag(binary.BigEndian.Uint16(frame[shift+12:])) {
		shift += tagLen
	}
	f := frame[shift:]
	if !isIP(f) {
		return p, false
	}
	at, end, udp := transport(f)
	p = packet{ethernetLen + shift, at + shift, end + shift, binary.BigEndian.Uint16(f[12:]) == typeIP6}
	options := !p.v6 && at != ethernetLen+ip4Len
	if !udp || options || end-at < udpLen+wire.BTHLen+wire.ICRCLen {
		return p, false
	}
	return p, binary.BigEndian.Uint16(f[at+2:]) == wire.Port && int(binary.BigEndian.Uint16(f[at+4:])) == end-at
}

func isTag(kind uint16) bool { return kind == typeTag || kind == typeOuterTag }

// body is where the BTH begins.
func (p packet) body() int { return p.udp + udpLen }

// addressBytes are the source's address and the destination's.
func (p packet) addressBytes(frame []byte) []byte {
	if p.v6 {
		return frame[p.ip+8 : p.ip+ip6Len]
	}
	return frame[p.ip+12 : p.ip+ip4Len]
}

func (p packet) addresses(frame []byte) (from, to netip.Addr) {
	b := p.addressBytes(frame)
	from, _ = netip.AddrFromSlice(b[:len(b)/2])
	to, _ = netip.AddrFromSlice(b[len(b)/2:])
	return from, to
}

// obey does what rules want to a frame, and returns it.
func (p packet) obey(frame []byte, f *rules.Fate, random uint64) []byte {
	if !f.NAK && !f.Mark && !f.Corrupt {
		return frame
	}
	if f.NAK {
		head := rules.Refuse(frame[p.body():p.end-wire.ICRCLen], f.Syndrome)
		frame = append(frame[:p.body()], head...)
		frame = wire.AppendICRC(frame, p.icrc(frame, head))
		p.end = len(frame)
	}
	if f.Mark { // neither bit is under the ICRC
		copy(frame[p.body():], rules.Mark(frame[p.body():][:wire.BTHLen]))
		if p.v6 {
			frame[p.ip+1] |= congested6
		} else {
			frame[p.ip+1] |= congested4
		}
	}
	if f.Corrupt {
		bits := uint64(8 * (p.end - p.body()))
		bit := random % bits
		if f.Offset >= 0 {
			bit = 8 * uint64(f.Offset) % bits
		}
		frame[p.body()+int(bit/8)] ^= 1 << (bit % 8)
	}
	p.complete(frame)
	return frame
}

// icrc is the ICRC of a packet that is nothing but headers.
func (p packet) icrc(frame, head []byte) uint32 {
	from, to := p.addresses(frame)
	ports := frame[p.udp:]
	id, whole := uint16(0), false
	if !p.v6 {
		id, whole = binary.BigEndian.Uint16(frame[p.ip+4:]), frame[p.ip+6]&dontFragment4 != 0
	}
	flow, _ := wire.NewFlow(netip.AddrPortFrom(from, binary.BigEndian.Uint16(ports)), netip.AddrPortFrom(to, wire.Port), whole)
	return flow.ICRC(id, head)
}

// complete writes the lengths and checksums of a packet as it is now, so that
// the ICRC alone tells what was done to it. A UDP checksum of 0 stays.
func (p packet) complete(frame []byte) {
	ip, udp := frame[p.ip:p.udp], frame[p.udp:p.end]
	if p.v6 {
		binary.BigEndian.PutUint16(ip[4:], uint16(len(udp)))
	} else {
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)+len(udp)))
		binary.BigEndian.PutUint16(ip[10:], 0)
		binary.BigEndian.PutUint16(ip[10:], ^wire.Fold(wire.Sum(0, ip)))
	}
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
	if field := udp[udpChecksum:]; binary.BigEndian.Uint16(field) != 0 {
		binary.BigEndian.PutUint16(field, wire.Fold(pseudo(udp, p.addressBytes(frame))))
		finish(udp, udpChecksum)
	}
}

// pseudo is the sum of the header that UDP's checksum covers besides.
func pseudo(udp, addresses []byte) uint64 {
	return wire.Sum(protocolUDP+uint64(len(udp)), addresses)
}

// cut calls each with a frame for each packet of one that was left to hardware
// to cut (UDP_SEGMENT), into size bytes of payload. The frame is each's until
// it returns.
func (p packet) cut(frame []byte, size int, each func([]byte)) {
	payload := frame[p.body():p.end]
	buf := make([]byte, 0, p.body()+size)
	for i := 0; len(payload) > 0; i++ {
		n := min(size, len(payload))
		f := append(append(buf, frame[:p.body()]...), payload[:n]...)
		payload = payload[n:]
		if id := f[p.ip+4:]; !p.v6 {
			binary.BigEndian.PutUint16(id, binary.BigEndian.Uint16(id)+uint16(i))
		}
		binary.BigEndian.PutUint16(f[p.udp+udpChecksum:], 1) // it has one
		packet{p.ip, p.udp, len(f), p.v6}.complete(f)
		each(f)
	}
}
