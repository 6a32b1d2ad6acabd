package flow

import (
	"net/netip"
	"slices"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
)

// asked names a request for a connection: its sender, and its identifier.
type asked struct {
	from netip.Addr
	id   wire.CommID
}

// request holds its contents: the queue pair, and the destination.
type request struct {
	qpn wire.QPN
	to  netip.AddrPort
}

// connecting learns from the connection manager which queue pairs belong
// together: a REQ names one, the REP to it the other.
func (t *Tracker) connecting(p *dissect.Packet) {
	if len(t.asked) > maxWays || len(t.partners) > 2*maxWays {
		clear(t.asked)
		clear(t.partners)
	}
	switch m := p.MAD.CM.(type) {
	case *wire.REQ:
		t.asked[asked{p.Src.Addr(), m.LocalCommID}] = request{m.LocalQPN, p.Dst}
	case *wire.REP:
		r, ok := t.asked[asked{p.Dst.Addr(), m.RemoteCommID}]
		if !ok || r.to.Addr() != p.Src.Addr() {
			return
		}
		there := key{src: p.Dst.Addr(), dst: r.to, to: m.LocalQPN}
		back := key{src: p.Src.Addr(), dst: p.Dst, to: r.qpn}
		t.partners[there], t.partners[back] = r.qpn, m.LocalQPN
	case *wire.REJ:
		t.remark(Rejected, "the connection is refused: "+m.Reason.String())
	}
}

// joinKnown joins w with its way back, where both queue pairs are known.
func (t *Tracker) joinKnown(w *way) {
	if w.service == wire.ServiceUD {
		for _, v := range t.between[[2]netip.Addr{w.key.dst.Addr(), w.key.src}] {
			if v != w && v.key.from == w.key.to && v.key.to == w.key.from && v.key.from != 0 {
				t.join(v, w)
				return
			}
		}
		return
	}
	for _, v := range t.between[[2]netip.Addr{w.key.dst.Addr(), w.key.src}] {
		if q, ok := t.partners[v.key]; ok && v != w && q == w.key.to && w.pair.A.may(v.key.to) {
			t.join(v, w)
			return
		}
	}
}

// pairUp finds the way whose requests w answers with psn: one without a way
// back, between the same addresses, that waits for it. Of several the one with
// the same source port is taken (rdma_rxe gives both directions one), then the
// last that sent.
func (t *Tracker) pairUp(w *way, psn wire.PSN) {
	var best *way
	for _, v := range t.between[[2]netip.Addr{w.key.dst.Addr(), w.key.src}] {
		if v.service != w.service || len(v.sent) == 0 || !v.waits(psn) {
			continue
		}
		if !w.pair.A.may(v.key.to) || !v.pair.A.may(w.key.to) {
			continue
		}
		if best == nil || better(v, best, w) {
			best = v
		}
	}
	if best != nil {
		t.join(best, w)
	}
}

func better(v, best, w *way) bool {
	if same := v.srcPort == w.srcPort; same != (best.srcPort == w.srcPort) {
		return same
	}
	return v.sent[len(v.sent)-1].at.After(best.sent[len(best.sent)-1].at)
}

// waits reports whether a request that psn may answer has no answer yet.
func (w *way) waits(psn wire.PSN) bool {
	return slices.ContainsFunc(w.sent, func(s sent) bool { return psn.In(s.psn, s.n) })
}

// join makes w the way back of v: they are one pair from now on, that of v.
func (t *Tracker) join(v, w *way) {
	t.drop(v)
	t.drop(w)
	v.back, w.back = w, v
	p := v.pair
	if v == w { // a queue pair that is connected to itself
		p.A = End{v.key.src, &v.key.to}
		return
	}
	other := w.pair
	p.A.QPN = &w.key.to
	p.BA = other.AB
	w.sum = &p.BA
	p.Packets += other.Packets
	if other.First.Before(p.First) {
		p.First = other.First
	}
	if other.Last.After(p.Last) {
		p.Last = other.Last
	}
	w.pair = p
	if i := slices.Index(t.pairs, other); i >= 0 {
		t.pairs = slices.Delete(t.pairs, i, i+1)
	}
}
