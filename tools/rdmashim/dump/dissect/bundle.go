package dissect

import (
	"encoding/binary"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// The length of a packet from BTH to ICRC.
const (
	minPacket = wire.BTHLen + wire.ICRCLen
	maxPacket = 4096 + wire.BTHLen + wire.AtomicETHLen + wire.DETHLen + wire.ICRCLen
)

// bundle is a datagram that holds several packets, all of one length but the
// last. Systems hand such datagrams down (GSO) and up (GRO), and a capture on
// the machine itself sees them so. Their parts' right ICRCs tell them from a
// damaged packet.
type bundle struct {
	f     frame
	size  int // of each packet
	at    int // of the next one in the datagram
	count uint16
	buf   []byte // of carve

	common int // size of the last bundle
}

// begin takes f in and reports whether it is a bundle.
func (b *bundle) begin(f *frame) bool {
	n := f.length
	if n < 2*minPacket || len(f.data) < n || f.odd {
		return false
	}
	flow, err := wire.NewFlow(f.src, f.dst, f.df)
	if err != nil || flow.Check(f.data, f.id) {
		return false
	}
	size := b.find(flow, f)
	if size == 0 {
		return false
	}
	b.f, b.size, b.at, b.count, b.common = *f, size, 0, 0, size
	return true
}

// find returns the length of the packets in f, and 0 if none is plausible: that
// of which the first packet is right, or the second where the first was
// damaged.
func (b *bundle) find(flow wire.Flow, f *frame) int {
	for part := range 2 {
		fits := func(size int) bool {
			from := part * size
			if size < minPacket || size > maxPacket || size >= f.length || from+minPacket > f.length {
				return false
			}
			return flow.Check(f.data[from:min(from+size, f.length)], f.id+uint16(part))
		}
		if fits(b.common) {
			return b.common
		}
		header := wire.Opcode(f.data[0]).HeaderLen()
		for mtu := 4096; mtu >= 256; mtu /= 2 {
			if size := header + mtu + wire.ICRCLen; header != 0 && fits(size) {
				return size
			}
		}
		for size := minPacket; size < min(f.length, maxPacket+1); size += 4 {
			if fits(size) {
				return size
			}
		}
	}
	return 0
}

// next returns the next packet's frame, as if it had been captured alone.
func (b *bundle) next() (f frame, ok bool) {
	if b.at >= b.f.length || b.size == 0 {
		return frame{}, false
	}
	f = b.f
	n := min(b.size, b.f.length-b.at)
	f.data, f.length = b.f.data[b.at:b.at+n], n
	if f.src.Addr().Is4() {
		f.id += b.count // the place in the bundle (inet_gso_segment)
	}
	b.at += n
	b.count++
	return f, true
}

// carve returns the frame that f had been in, had it been captured alone;
// record is the one that it is in.
func (b *bundle) carve(record []byte, f *frame) []byte {
	b.buf = append(b.buf[:0], record[:f.udp+udpLen]...)
	b.buf = append(b.buf, f.data...)
	ip, udp := b.buf[f.ip:], b.buf[f.udp:]
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
	clear(udp[6:8])
	if f.src.Addr().Is4() {
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
		binary.BigEndian.PutUint16(ip[4:], f.id)
		clear(ip[10:12])
		binary.BigEndian.PutUint16(ip[10:], ^wire.Fold(wire.Sum(0, ip[:f.udp-f.ip])))
		return b.buf
	}
	binary.BigEndian.PutUint16(ip[4:], uint16(len(udp)))
	c := ^wire.Fold(wire.Sum(wire.Sum(protocolUDP+uint64(len(udp)), ip[8:40]), udp))
	if c == 0 {
		c = 0xffff // 0 is no checksum (RFC 8200, 8.1)
	}
	binary.BigEndian.PutUint16(udp[6:], c)
	return b.buf
}
