package engine

import (
	"encoding/binary"
	"net/netip"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Datagram holds the header fields of one unreliable datagram. It serves the
// general services queue pair, which makes and takes single datagrams without a
// queue pair of this package.
type Datagram struct {
	Peer      netip.AddrPort // where it goes
	DestQPN   wire.QPN
	SrcQPN    wire.QPN
	QKey      uint32
	PSN       wire.PSN
	Solicited bool
	HasImm    bool
	Imm       [4]byte // as on the wire
}

// AddDatagram appends a datagram, of which payload is copied: at most 4096
// bytes. The batch is not full.
func (b *Batch) AddDatagram(d *Datagram, payload []byte) {
	room := b.payload(len(payload))
	copy(room, payload)
	b.addDatagram(d, room)
}

// addDatagram is AddDatagram for a payload that came from b.payload.
func (b *Batch) addDatagram(d *Datagram, payload []byte) {
	p := wire.Packet{
		BTH: wire.BTH{
			Opcode: wire.UDSendOnly, Solicited: d.Solicited, MigReq: true, PKey: wire.DefaultPKey,
			DestQPN: d.DestQPN, PSN: d.PSN,
		},
		DETH: wire.DETH{QKey: d.QKey, SrcQPN: d.SrcQPN},
	}
	if d.HasImm {
		p.Opcode = wire.UDSendOnlyImm
		p.ImmDt.Data = binary.BigEndian.Uint32(d.Imm[:])
	}
	b.add(d.Peer, &p, payload)
}

// Verdict is whether a received packet is a datagram for a queue pair, or why
// not.
type Verdict uint8

const (
	Accepted     Verdict = iota
	WrongService         // another transport service
	WrongPKey            // another partition
	WrongQKey            // another Q_Key
)

// CheckDatagram holds a received packet against a Q_Key (IBA 9.6.1 and 9.8.3):
// transport service, P_Key, Q_Key. A refused packet is dropped silently.
func CheckDatagram(p *wire.Packet, qkey uint32) Verdict {
	switch {
	case p.Opcode.Service() != wire.ServiceUD:
		return WrongService
	case !p.PKey.Match(wire.DefaultPKey):
		return WrongPKey
	case p.DETH.QKey != qkey:
		return WrongQKey
	}
	return Accepted
}

// controlledQKey marks Q_Keys that not every program may use.
const controlledQKey = 1 << 31

// qkeyToSend returns the Q_Key of a datagram whose work request names one: with
// the highest bit set it stands for the queue pair's own (IBA 10.2.5).
func qkeyToSend(named, own uint32) uint32 {
	if named&controlledQKey != 0 {
		return own
	}
	return named
}

// hopLimit is the assumed hop limit of a received datagram: a link does not
// tell.
const hopLimit = 64

// routeHeader appends the 40 bytes that stand before the payload of p in a
// receive buffer (IBA 8.3, A17). Of the IP header the link tells the addresses
// only: traffic class and flow label are 0.
func routeHeader(b []byte, from, to netip.Addr, p *wire.Packet) []byte {
	const udpHeader, ipProtocolUDP = 8, 17
	g := wire.GRH{
		Src: wire.Bare(from), Dst: wire.Bare(to), HopLimit: hopLimit, NextHeader: ipProtocolUDP,
		PayloadLen: uint16(udpHeader + p.Length() + wire.ICRCLen),
	}
	return g.Append(b)
}
