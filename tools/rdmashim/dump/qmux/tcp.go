package qmux

import (
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
)

// tcpKey names a direction of a TCP connection.
type tcpKey struct{ src, dst netip.AddrPort }

// base keeps positions of sequence numbers away from 0, so that one before the
// first is not behind all.
const base = 1 << 32

// Other takes a record that holds no RoCEv2 packet, and finds the TCP segment
// in it if there is one.
func (t *Tracker) Other(rec *dissect.Record) {
	packet := gopacket.NewPacket(rec.Data, layers.LinkType(rec.LinkType), gopacket.DecodeOptions{NoCopy: true})
	segment, ok := packet.TransportLayer().(*layers.TCP)
	if !ok {
		return
	}
	flow := packet.NetworkLayer().NetworkFlow()
	src, _ := netip.AddrFromSlice(flow.Src().Raw())
	dst, _ := netip.AddrFromSlice(flow.Dst().Raw())
	t.last = rec.Time
	t.segment(tcpKey{netip.AddrPortFrom(src, uint16(segment.SrcPort)), netip.AddrPortFrom(dst, uint16(segment.DstPort))}, segment)
}

// segment takes a segment. A SYN with another number begins the direction anew;
// a direction whose SYN is not in the capture begins with its first bytes.
func (t *Tracker) segment(key tcpKey, s *layers.TCP) {
	d := t.tcp[key]
	first := s.Seq
	if s.SYN {
		first++
	}
	switch {
	case s.SYN && (d == nil || d.first != first):
		d = t.begin(key, first)
	case d == nil && len(s.Payload) > 0:
		if d = t.begin(key, first); d != nil {
			d.middle = true
		}
	}
	if d == nil {
		return
	}
	at := d.queue.position(d.distance(first))
	end := at + uint64(len(s.Payload))
	if len(s.Payload) > 0 {
		d.put(t.last, piece{at: at, end: end, data: s.Payload})
	}
	switch {
	case s.RST:
		d.ends(t.last, broken)
	case s.FIN:
		d.put(t.last, piece{at: end, end: end + 1, event: ended})
	}
}

// begin begins a direction whose first byte has a sequence number.
func (t *Tracker) begin(key tcpKey, first uint32) *direction {
	if old := t.tcp[key]; old != nil {
		old.close(t.last)
		old.over = true
	}
	d := t.direction(base|uint64(first), "tcp", key.src.String(), key.dst.String())
	if d != nil {
		d.first = first
		t.tcp[key] = d
	}
	return d
}

// distance is how far behind the next byte a sequence number lies, in bytes.
func (d *direction) distance(seq uint32) int { return int(int32(seq - uint32(d.queue.next))) }
