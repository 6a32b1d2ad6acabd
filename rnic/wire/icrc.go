package wire

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"net/netip"

	"github.com/rdmashim/rdmashim/rnic/crc"
)

// ICRCLen is the length of the invariant CRC, the last bytes of every packet.
const ICRCLen = 4

const (
	udpHeaderLen = 8
	ip4HeaderLen = 20
	ip6HeaderLen = 40
	maskedLRHLen = 8 // stands in for the local route header that RoCE lacks
	protocolUDP  = 17
	ip4FlagDF    = 0x40
)

// Flow holds the facts of one direction between two UDP ports that the
// invariant CRC covers: addresses, ports and the Don't Fragment bit. It is a
// value of a few words, never changes, and may be used by many goroutines. The
// zero Flow is not usable.
//
// The CRC (IBA 7.8.1, A17) is that of Ethernet, over eight bytes of ones, the
// IP and UDP headers with the fields that change on the way as ones (IPv4: type
// of service, time to live and checksum; IPv6: traffic class, flow label and
// hop limit; the UDP checksum), the BTH with its byte 4 as ones, and all that
// follows. The IP header is taken to have no options and to be no fragment.
type Flow struct {
	base uint32 // CRC register after the headers, all lengths and the identification 0
	v6   bool
}

// NewFlow describes datagrams from src to dst. dontFragment is the DF bit of
// IPv4 that they carry: set for RoCEv2 of Linux and for sockets with
// IP_PMTUDISC_DO. IPv4 addresses may be given in their IPv6-mapped form; zones
// do not matter. The addresses must be valid and of one family.
func NewFlow(src, dst netip.AddrPort, dontFragment bool) (Flow, error) {
	s, d := src.Addr().Unmap(), dst.Addr().Unmap()
	if !s.IsValid() || !d.IsValid() {
		return Flow{}, errors.New("wire: flow from " + src.String() + " to " + dst.String() + ": both need an address")
	}
	if s.Is4() != d.Is4() {
		return Flow{}, errors.New("wire: flow from " + src.String() + " to " + dst.String() + ": one is IPv4, the other IPv6")
	}
	buf := make([]byte, 0, maskedLRHLen+ip6HeaderLen+udpHeaderLen)
	buf = binary.BigEndian.AppendUint64(buf, 1<<64-1)
	if s.Is4() {
		flags := byte(0)
		if dontFragment {
			flags = ip4FlagDF
		}
		buf = append(buf, 0x45, 0xff, 0, 0, 0, 0, flags, 0, 0xff, protocolUDP, 0xff, 0xff)
	} else {
		buf = append(buf, 0x6f, 0xff, 0xff, 0xff, 0, 0, protocolUDP, 0xff)
	}
	buf = append(append(buf, s.AsSlice()...), d.AsSlice()...)
	buf = binary.BigEndian.AppendUint16(buf, src.Port())
	buf = binary.BigEndian.AppendUint16(buf, dst.Port())
	buf = append(buf, 0, 0, 0xff, 0xff)
	return Flow{base: ^crc32.ChecksumIEEE(buf), v6: !s.Is4()}, nil
}

// ICRC returns the invariant CRC of a datagram whose payload is head, then the
// segments, then the CRC. head begins with the BTH and holds all of it;
// segments (payload, pad) may be of any number and length. Nothing is copied or
// changed. id is the IPv4 identification with which the datagram will leave;
// IPv6 has none and ignores it. A head shorter than a BTH gives a CRC of no
// meaning.
func (f Flow) ICRC(id uint16, head []byte, segments ...[]byte) uint32 {
	n := len(head)
	for _, s := range segments {
		n += len(s)
	}
	sum := f.start(n, id, head)
	for _, s := range segments {
		if len(s) != 0 {
			sum = crc.Update(sum, s)
		}
	}
	return sum
}

// ICRCOfSum is ICRC for n bytes of payload, without pad, whose sum is known.
func (f Flow) ICRCOfSum(id uint16, head []byte, payload crc.Sum, n int) uint32 {
	return crc.Join(f.start(len(head)+n, id, head), payload, n)
}

// AppendICRC appends a CRC in its order on the wire, which is little-endian.
func AppendICRC(b []byte, icrc uint32) []byte { return binary.LittleEndian.AppendUint32(b, icrc) }

// Check reports whether b, the payload of a datagram with its ICRC, has the CRC
// that belongs to the identification id.
func (f Flow) Check(b []byte, id uint16) bool {
	n := len(b) - ICRCLen
	return n >= BTHLen && f.start(n, id, b[:n]) == binary.LittleEndian.Uint32(b[n:])
}

// MaxSolvable is the length of the longest datagram, in bytes of UDP payload,
// in which no single-bit error looks like an identification.
const MaxSolvable = 26744

// Verify reports whether b, the payload of a datagram with its ICRC, has the
// CRC that belongs to any identification, and returns that; guess is tried
// first. A receiving UDP socket does not show the identification, so this is
// the check for one; over IPv6, which has none, the CRC must be equal. Any
// identification weakens the detection of random errors from 2^-32 to 2^-16,
// though every single-bit error is still found in packets of up to MaxSolvable
// bytes; a receiver that knows which identifications its peer uses should
// compare the id.
func (f Flow) Verify(b []byte, guess uint16) (id uint16, ok bool) {
	n := len(b) - ICRCLen
	if n < BTHLen {
		return 0, false
	}
	diff := f.start(n, guess, b[:n]) ^ binary.LittleEndian.Uint32(b[n:])
	switch {
	case f.v6:
		return 0, diff == 0
	case diff == 0:
		return guess, true
	}
	// The CRC is linear: the rest is the difference of the identifications.
	id, ok = SolveID(diff, n)
	return id ^ guess, ok
}

// start returns the CRC over the headers and head of a datagram with n bytes
// before the ICRC. The fields that vary are XORed into the flow's register: the
// CRC is linear, and the distance from each to the end of the UDP header fixed.
func (f Flow) start(n int, id uint16, head []byte) uint32 {
	udp := uint16(udpHeaderLen + n + ICRCLen)
	r := f.base ^ crc.Table[3][udp>>8] ^ crc.Table[2][udp&0xff]
	if f.v6 {
		r ^= ip6Length[0][udp>>8] ^ ip6Length[1][udp&0xff]
	} else {
		total := udp + ip4HeaderLen
		r ^= ip4Length[0][total>>8] ^ ip4Length[1][total&0xff]
		if id != 0 {
			r ^= ip4ID[0][id>>8] ^ ip4ID[1][id&0xff]
		}
	}
	if len(head) < BTHLen {
		return crc.Update(^r, head)
	}
	return crc.Update(^maskedBTH(r, (*[BTHLen]byte)(head)), head[BTHLen:])
}

// maskedBTH moves the register over a BTH whose byte 4 is taken as ones. It
// does not use crc.Update, through which a masked copy would escape to the
// heap.
func maskedBTH(r uint32, b *[BTHLen]byte) uint32 {
	r ^= binary.LittleEndian.Uint32(b[:])
	r = crc.Table[7][r&0xff] ^ crc.Table[6][r>>8&0xff] ^ crc.Table[5][r>>16&0xff] ^ crc.Table[4][r>>24] ^
		crc.Table[3][0xff] ^ crc.Table[2][b[5]] ^ crc.Table[1][b[6]] ^ crc.Table[0][b[7]]
	r ^= binary.LittleEndian.Uint32(b[8:])
	return crc.Table[3][r&0xff] ^ crc.Table[2][r>>8&0xff] ^ crc.Table[1][r>>16&0xff] ^ crc.Table[0][r>>24]
}

// The numbers in the variables below are bytes from the field to the end of the
// UDP header.
var (
	ip4Length = [2]crc.ByteTable{crc.Contribution(25), crc.Contribution(24)}
	ip4ID     = [2]crc.ByteTable{crc.Contribution(idDistance + 1), crc.Contribution(idDistance)}
	ip6Length = [2]crc.ByteTable{crc.Contribution(43), crc.Contribution(42)}
)

// idDistance is the number of bytes between the IPv4 identification and the
// BTH.
const idDistance = 22

// back[0][n] is x^-8n and back[1][n] is x^-8·256n: multiplied with one of each
// the register goes back over up to 65535 zero bytes.
var back = func() (t [2]crc.ByteTable) {
	step := crc.Inverse
	for range 3 {
		step = crc.Mul(step, step)
	}
	for i := range t {
		t[i][0] = crc.One
		for n := 1; n < 256; n++ {
			t[i][n] = crc.Mul(t[i][n-1], step)
		}
		step = crc.Mul(t[i][255], step)
	}
	return t
}()

// SolveID finds the IPv4 identification that makes up the difference between a
// received ICRC and that computed for the identification 0. length is the
// number of bytes from the BTH to the last before the ICRC. ok is false if no
// identification does: the packet is corrupt.
//
// The CRC is linear, so the difference is the identification as a polynomial,
// times x to the number of bits that follow it. Divided by that it must leave
// sixteen bits.
func SolveID(diff uint32, length int) (id uint16, ok bool) {
	if length < 0 || length > 0xffff-idDistance-2 {
		return 0, false
	}
	n := length + idDistance + 2 // behind the register's low half, where the two bytes entered
	r := crc.Mul(crc.Mul(diff, back[0][n&0xff]), back[1][n>>8])
	return uint16(r<<8&0xff00 | r>>8&0xff), r>>16 == 0
}
