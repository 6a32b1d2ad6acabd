package wire_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// A datagram follows another if it differs in the PSN alone, and in an AckReq
// that it lacks.
func TestFollows(t *testing.T) {
	packet := func(edit func(*wire.Datagram, *wire.Packet)) *wire.Datagram {
		p := wire.Packet{BTH: wire.BTH{Opcode: wire.RCWriteMiddle, MigReq: true, PKey: wire.DefaultPKey, DestQPN: 5, Selective: true, PSN: wire.MaxPSN}}
		p.Payload = make([]byte, 8)
		d := wire.Datagram{Peer: netip.MustParseAddrPort("10.0.0.1:4791")}
		edit(&d, &p)
		if d.Head == nil {
			d.Head = p.Append(nil)
		}
		return &d
	}
	next := func(edit func(*wire.Datagram, *wire.Packet)) *wire.Datagram {
		return packet(func(d *wire.Datagram, p *wire.Packet) {
			p.PSN = 0
			edit(d, p)
		})
	}
	same := func(*wire.Datagram, *wire.Packet) {}
	asks := func(_ *wire.Datagram, p *wire.Packet) { p.AckReq = true }
	apart := func(d *wire.Datagram, p *wire.Packet) { d.Head, d.Payload = p.AppendHeaders(nil), make([]byte, 8) }
	short := func(d *wire.Datagram, p *wire.Packet) { d.Head = p.AppendHeaders(nil)[:wire.BTHLen-1] }

	require.True(t, next(same).Follows(packet(same)))
	require.True(t, next(same).Follows(packet(asks)))
	require.False(t, packet(same).Follows(packet(same)), "the same PSN")
	require.False(t, next(apart).Follows(packet(apart)))
	last := packet(same)
	last.Payload = make([]byte, 8)
	require.False(t, next(same).Follows(last), "there is more of the last one")
	require.False(t, next(short).Follows(packet(short)))
	for name, edit := range map[string]func(*wire.Datagram, *wire.Packet){
		"AckReq":      asks,
		"opcode":      func(_ *wire.Datagram, p *wire.Packet) { p.Opcode = wire.RCWriteLast },
		"queue pair":  func(_ *wire.Datagram, p *wire.Packet) { p.DestQPN = 6 },
		"pad":         func(_ *wire.Datagram, p *wire.Packet) { p.Pad = 3 },
		"FECN":        func(_ *wire.Datagram, p *wire.Packet) { p.FECN = true },
		"Selective":   func(_ *wire.Datagram, p *wire.Packet) { p.Selective = false },
		"private MTU": func(_ *wire.Datagram, p *wire.Packet) { p.PrivateMTU = 9 },
		"PSN":         func(_ *wire.Datagram, p *wire.Packet) { p.PSN = 1 },
		"length":      func(_ *wire.Datagram, p *wire.Packet) { p.Payload = p.Payload[4:] },
		"peer":        func(d *wire.Datagram, _ *wire.Packet) { d.Peer = netip.MustParseAddrPort("10.0.0.1:4792") },
		"group":       func(d *wire.Datagram, _ *wire.Packet) { d.Group = netip.MustParseAddr("ff02::1") },
		"near":        func(d *wire.Datagram, _ *wire.Packet) { d.Near = true },
		"marked":      func(d *wire.Datagram, _ *wire.Packet) { d.Marked = true },
		"crowded":     func(d *wire.Datagram, _ *wire.Packet) { d.Crowded = true },
		"apart":       apart,
	} {
		require.False(t, next(edit).Follows(packet(same)), name)
	}
}
