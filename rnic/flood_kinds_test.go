package rnic

import (
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// forgery makes a packet for the victim, or gives none.
type forgery struct {
	name     string
	counter  string // that it must add one to
	stranger bool
	passes   bool // the queue pair looks at it
	make     func(f *flood) (link.Packet, bool)
}

// plausible is the packet that could come next, which writes to forbidden
// memory.
func (f *flood) plausible() wire.Packet {
	p := wire.Packet{BTH: f.last, RETH: f.target, Payload: make([]byte, f.target.DMALen)}
	p.Opcode, p.PSN, p.AckReq, p.Pad = wire.RCWriteOnly, f.last.PSN.Add(1), true, 0
	for i := range p.Payload {
		p.Payload[i] = 0xee
	}
	return p
}

func wrong(change func(f *flood, p *wire.Packet)) func(*flood) (link.Packet, bool) {
	return func(f *flood) (link.Packet, bool) {
		p := f.plausible()
		change(f, &p)
		p.Pad = wire.PadLen(len(p.Payload))
		return link.Packet{Head: p.AppendHeaders(nil), Payload: p.Payload}, f.last.DestQPN != 0
	}
}

func wrongBytes(change func(f *flood, p *link.Packet)) func(*flood) (link.Packet, bool) {
	return func(f *flood) (link.Packet, bool) {
		p, ok := wrong(func(*flood, *wire.Packet) {})(f)
		change(f, &p)
		return p, ok
	}
}

// replay repeats an honest packet whose effect took place long ago.
func replay(requests bool) func(f *flood) (link.Packet, bool) {
	return func(f *flood) (link.Packet, bool) {
		for range 20 {
			if len(f.old) == 0 {
				break
			}
			p := clonePacket(&f.old[f.rnd.IntN(len(f.old))])
			if wire.Opcode(p.Head[0]).IsRequest() == requests {
				return p, true
			}
		}
		return link.Packet{}, false
	}
}

// refused are packets that are dropped before a queue pair acts on them.
var refused = []forgery{
	{"another address", "drop_peer", true, false, wrong(func(*flood, *wire.Packet) {})},
	{"another address, response", "drop_peer", true, false, wrong(func(f *flood, p *wire.Packet) {
		p.Opcode, p.Payload, p.PSN = wire.RCAck, nil, wire.PSN(f.rnd.Uint32())&wire.MaxPSN
	})},
	{"another address, replay", "drop_peer", true, false, replay(true)},
	{"partition", "drop_pkey", false, false, wrong(func(_ *flood, p *wire.Packet) { p.PKey = 0x8001 })},
	{"partition of limited members", "drop_pkey", true, false, wrong(func(_ *flood, p *wire.Packet) { p.PKey = 0x0001 })},
	{"no such queue pair", "drop_qpn", false, false, wrong(func(_ *flood, p *wire.Packet) { p.DestQPN ^= 0x800000 })},
	{"multicast", "drop_qpn", true, false, wrong(func(_ *flood, p *wire.Packet) { p.DestQPN = wire.MulticastQPN })},
	{"UC", "drop_service", false, false, wrong(func(_ *flood, p *wire.Packet) { p.Opcode = wire.UCSendOnly })},
	{"UD", "drop_service", false, false, wrong(func(_ *flood, p *wire.Packet) { p.Opcode = wire.UDSendOnly })},
	{"reserved opcode", "drop_opcode", false, false, wrongBytes(func(f *flood, p *link.Packet) { p.Head[0] = byte(0x18 + f.rnd.IntN(4)) })},
	{"reserved transport", "drop_opcode", true, false, wrongBytes(func(_ *flood, p *link.Packet) { p.Head[0] |= 0xe0 })},
	{"transport version", "drop_malformed", false, false, wrongBytes(func(f *flood, p *link.Packet) { p.Head[1] |= byte(1 + f.rnd.IntN(15)) })},
	{"truncated headers", "drop_malformed", false, false, wrongBytes(func(f *flood, p *link.Packet) {
		p.Head, p.Payload = p.Head[:wire.BTHLen+f.rnd.IntN(len(p.Head)-wire.BTHLen)], nil
	})},
	{"pad beyond the payload", "drop_malformed", true, false, wrongBytes(func(_ *flood, p *link.Packet) { p.Head[1] |= 3 << 4; p.Payload = nil })},
	{"ICRC", "drop_icrc", false, false, wrongBytes(func(f *flood, p *link.Packet) { p.Flip = 1 + 96 + f.rnd.Uint32N(200) })},
	{"ICRC of a stranger", "drop_icrc", true, false, wrongBytes(func(f *flood, p *link.Packet) { p.Flip = 1 + 96 + f.rnd.Uint32N(200) })},
}

// disbelieved are packets from the peer's address that its queue pair takes,
// looks at, and does nothing about, or answers.
var disbelieved = []forgery{
	{"replayed request", "duplicates", false, true, replay(true)},
	{"replayed response", "responses", false, true, replay(false)},
	{"another request in the place of an old one", "duplicates", false, true, wrong(func(f *flood, p *wire.Packet) { p.PSN = f.last.PSN.Add(-1 - f.rnd.IntN(1<<22)) })},
	{"an old PSN and a wrong key", "duplicates", false, true, wrong(func(f *flood, p *wire.Packet) {
		p.PSN = f.last.PSN.Add(-5000 - f.rnd.IntN(1<<22))
		p.RETH.RKey ^= 0x5555
	})},
	{"an atomic in the place of an old request", "duplicates", false, true, wrong(func(f *flood, p *wire.Packet) {
		p.Opcode, p.PSN, p.Payload = wire.RCFetchAdd, f.last.PSN.Add(-5000-f.rnd.IntN(1<<22)), nil
		p.AtomicETH = wire.AtomicETH{VA: f.target.VA, RKey: f.target.RKey, SwapAdd: 1}
	})},
	{"a READ of what was not asked for", "duplicates", false, true, wrong(func(f *flood, p *wire.Packet) {
		p.Opcode, p.PSN, p.Payload = wire.RCReadRequest, f.last.PSN.Add(-5000-f.rnd.IntN(1<<22)), nil
	})},
	{"acknowledgement of what was not sent", "responses", false, true, wrong(func(f *flood, p *wire.Packet) {
		p.Opcode, p.Payload, p.PSN = wire.RCAck, nil, f.answered.Add(1<<21+f.rnd.IntN(1<<21))
	})},
	{"NAK of what was not sent", "responses", false, true, wrong(func(f *flood, p *wire.Packet) {
		p.Opcode, p.Payload, p.PSN = wire.RCAck, nil, f.answered.Add(1<<21+f.rnd.IntN(1<<21))
		p.AETH.Syndrome = wire.SyndromeNAK(wire.NAKRemoteAccess)
	})},
}

// ahead are requests beyond the window, which look like the successors of lost
// packets: a responder must ask for those.
var ahead = []forgery{
	{"beyond the window", "gaps", false, true, wrong(func(f *flood, p *wire.Packet) { p.PSN = p.PSN.Add(5000 + f.rnd.IntN(1<<22)) })},
	{"beyond the window with a wrong key", "gaps", false, true, wrong(func(f *flood, p *wire.Packet) {
		p.PSN = p.PSN.Add(5000 + f.rnd.IntN(1<<22))
		p.RETH.RKey ^= 0x5555
	})},
}
