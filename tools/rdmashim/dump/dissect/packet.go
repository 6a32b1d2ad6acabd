package dissect

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"time"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Packet is a RoCEv2 packet of a capture.
type Packet struct {
	Number    int // of its record in the file, from 1
	Time      time.Time
	Interface string    // pcapng: the interface's name, if it has one
	Direction Direction // pcapng: as the capture says
	VLANs     []uint16  // outer first

	Src, Dst     netip.AddrPort
	TrafficClass uint8  // IPv4: type of service
	HopLimit     uint8  // IPv4: time to live
	ID           uint16 // IPv4 identification
	DF           bool   // IPv4 Don't Fragment
	Length       int    // bytes of UDP payload: BTH to ICRC

	// Wire is the packet taken apart. Its payload is the recorded part of it,
	// and lives until the next packet is read. After an Err only the BTH may
	// have been read.
	Wire       wire.Packet
	PayloadLen int   // bytes of payload on the wire, without pad; 0 after an Err
	Err        error // nil, or why the packet has no meaning; HasBTH tells how far it was read
	HasBTH     bool

	ICRC      ICRC
	ICRCValue uint32 // as received; 0 when ICRC is Cut

	MAD *MAD // of a datagram to QP1

	// Record is the frame that holds the packet and no other, with the headers
	// below it, as a file takes it. Its data lives until the next packet is
	// read.
	Record Record
}

// Direction is a packet's, seen from the interface where it was captured.
type Direction uint8

const (
	Unknown Direction = iota
	Inbound
	Outbound
)

// String returns "in", "out", or "" for an unknown direction.
func (d Direction) String() string { return [...]string{"", "in", "out"}[d%3] }

// ICRC is the outcome of the check of the invariant CRC.
type ICRC uint8

const (
	Cut       ICRC = iota // the end of the packet was not recorded
	OK                    // it belongs to the packet
	Bad                   // it does not
	Unchecked             // the IP header is none that RoCEv2 allows: options, fragments
)

// String returns the word that 'rdmashim dump' prints.
func (c ICRC) String() string { return [...]string{"cut", "ok", "bad", "unchecked"}[c%4] }

// fill takes the datagram of f apart.
func (p *Packet) fill(f *frame) {
	p.VLANs, p.Src, p.Dst = f.vlans, f.src, f.dst
	p.TrafficClass, p.HopLimit, p.ID, p.DF, p.Length = f.class, f.hops, f.id, f.df, f.length
	p.checkICRC(f)
	p.parse(f)
	if p.Err == nil && p.Wire.Opcode.Operation() == wire.OpSend && p.Wire.Opcode.Service() == wire.ServiceUD && p.Wire.DestQPN == wire.GSIQPN {
		p.MAD = parseMAD(p.Wire.Payload)
	}
}

func (p *Packet) checkICRC(f *frame) {
	n := len(f.data)
	if n < f.length || n < wire.ICRCLen {
		p.ICRC = Cut
		return
	}
	p.ICRCValue = binary.LittleEndian.Uint32(f.data[n-wire.ICRCLen:])
	flow, err := wire.NewFlow(f.src, f.dst, f.df)
	switch {
	case err != nil || f.odd:
		p.ICRC = Unchecked
	case flow.Check(f.data, f.id):
		p.ICRC = OK
	default:
		p.ICRC = Bad
	}
}

// parse reads headers and payload. Bytes of the packet that the record does not
// hold are taken as zeros, so that the headers that are there can be read.
func (p *Packet) parse(f *frame) {
	p.HasBTH = len(f.data) >= wire.BTHLen
	if f.length < wire.ICRCLen {
		p.Err = wire.ErrShort
		return
	}
	b := f.data
	if len(b) < f.length {
		b = append(make([]byte, 0, f.length), b...)[:f.length]
	}
	if p.Err = p.Wire.Parse(b[:f.length-wire.ICRCLen]); p.Err != nil {
		return
	}
	header := p.Wire.Opcode.HeaderLen()
	if len(f.data) < header {
		p.Err = wire.ErrShort
		return
	}
	p.PayloadLen = len(p.Wire.Payload)
	p.Wire.Payload = p.Wire.Payload[:min(p.PayloadLen, len(f.data)-header)]
}

// Reason is the text of a Packet's Err without the name of the package that
// found it.
func Reason(err error) string { return strings.TrimPrefix(err.Error(), "wire: ") }
