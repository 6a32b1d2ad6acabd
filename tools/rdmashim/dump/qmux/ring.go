package qmux

import (
	"fmt"
	"net/netip"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
	"github.com/rdmashim/rdmashim/uapi/msgring/core"
)

// ringKey names a direction of a queue pair.
type ringKey struct {
	src, dst netip.Addr
	to       wire.QPN
}

// ringAsked names a request for a connection, and ringRequest is its contents.
type ringAsked struct {
	from netip.Addr
	id   wire.CommID
}

type ringRequest struct {
	qpn wire.QPN
	psn wire.PSN
	to  netip.Addr
}

// Packet takes a RoCEv2 packet. The WRITEs of a ring's sender, in the order of
// their PSNs, are its stream, whatever place in the ring they go to.
func (t *Tracker) Packet(p *dissect.Packet) {
	if p.Err != nil || p.ICRC == dissect.Bad {
		return
	}
	t.last = p.Time
	if p.MAD != nil {
		t.connecting(p)
		return
	}
	op := p.Wire.Opcode
	d := t.rings[ringKey{p.Src.Addr(), p.Dst.Addr(), p.Wire.DestQPN}]
	if d == nil || !op.IsRequest() || len(p.Wire.Payload) < p.PayloadLen {
		return
	}
	at := d.queue.position(int(p.Wire.PSN.Sub(wire.PSN(d.queue.next & psnMask))))
	x := piece{at: at, end: at + 1}
	var m core.Control
	switch {
	case op.Operation() == wire.OpWrite:
		x.data = p.Wire.Payload
	case m.Parse(p.Wire.Payload) != nil:
	case m.Type == core.FIN:
		x.event = ended
	case m.Type == core.RESET:
		x.event = broken
	}
	d.put(t.last, x)
}

// psnMask is the bits of a PSN.
const psnMask = 1<<24 - 1

// connecting learns the queue pairs of a ring of bytes from the hellos in a REQ
// and the REP to it. Each names the PSN that the other side begins with.
func (t *Tracker) connecting(p *dissect.Packet) {
	var hello core.Hello
	switch m := p.MAD.CM.(type) {
	case *wire.REQ:
		if p.MAD.IPCM == nil || hello.Parse(p.MAD.Private, false) != nil || hello.Mode != core.Bytes {
			return
		}
		if len(t.asked) >= maxDirections {
			clear(t.asked)
		}
		t.asked[ringAsked{p.Src.Addr(), m.LocalCommID}] = ringRequest{m.LocalQPN, m.StartingPSN, p.Dst.Addr()}
	case *wire.REP:
		key := ringAsked{p.Dst.Addr(), m.RemoteCommID}
		r, ok := t.asked[key]
		if !ok || r.to != p.Src.Addr() || hello.Parse(p.MAD.Private, true) != nil {
			return
		}
		delete(t.asked, key) // the REP may come again
		there, back := ringEnd(p.Dst.Addr(), r.qpn), ringEnd(p.Src.Addr(), m.LocalQPN)
		t.ring(ringKey{p.Dst.Addr(), p.Src.Addr(), m.LocalQPN}, m.StartingPSN, there, back)
		t.ring(ringKey{p.Src.Addr(), p.Dst.Addr(), r.qpn}, r.psn, back, there)
	}
}

func ringEnd(addr netip.Addr, qpn wire.QPN) string { return fmt.Sprintf("%v qpn %v", addr, qpn) }

// ring begins a direction, which ends another that had the queue pair before.
func (t *Tracker) ring(key ringKey, first wire.PSN, src, dst string) {
	if old := t.rings[key]; old != nil {
		old.close(t.last)
		old.over = true
	}
	if d := t.direction(base|uint64(first), "rdma", src, dst); d != nil {
		t.rings[key] = d
	}
}
