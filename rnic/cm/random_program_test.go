package cm_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// event gives an event to the programs, which act on it.
func (r *randomWorld) event(h *host, e cm.Event) {
	if e.Kind == cm.ConnectRequest {
		r.request(h, e)
		return
	}
	s := r.sides[h][e.Conn]
	if s == nil {
		r.fault("%s: %v for connection %v, which it does not have", h.name, e.Kind, e.Conn)
		return
	}
	y := r.of[s]
	r.trace("%s: try %d %v %v", h.name, y.n, e.Kind, e.Reason)
	if s.destroyed {
		r.fault("%s: try %d: %v after destroy", h.name, y.n, e.Kind)
	}
	s.told[e.Kind]++
	if s.told[e.Kind] > 1 {
		r.fault("%s: try %d: %v twice", h.name, y.n, e.Kind)
	}
	if s.down && e.Kind != cm.TimeWaitExit && e.Kind != cm.Disconnected {
		r.fault("%s: try %d: %v after the end", h.name, y.n, e.Kind)
	}
	switch e.Kind {
	case cm.ConnectResponse:
		r.response(s, y, e)
	case cm.Connected:
		s.up = true
		if !y.active.confirmed {
			r.fault("try %d: %s is connected, the active program did not confirm", y.n, h.name)
		}
		r.live(s)
	case cm.Rejected:
		r.refused(s, y, e)
	case cm.Unreachable:
		r.unreachable(s, y)
	case cm.Disconnected:
		s.down = true
	}
}

// request takes a peer's request for a connection.
func (r *randomWorld) request(h *host, e cm.Event) {
	n := number(e.Private)
	if n == 0 || len(e.Private) != wire.REQUserLen {
		r.fault("%s: request with private data %q", h.name, e.Private)
		return
	}
	y := r.try(n)
	r.trace("%s: request of try %d", h.name, n)
	for _, s := range y.passive {
		if s.gone() {
			continue
		}
		// A second request is a new one only after the first was refused, and
		// no REQ has come for longer than its REJ is remembered.
		if !s.refused() || r.w.now < s.before {
			r.fault("%s: try %d comes as a second request", h.name, n)
		}
	}
	s := r.side(h, e.Conn, y)
	y.passive = append(y.passive, s)
	s.attr = e.Attr
	p := y.params
	port, _ := e.Service.TCPPort()
	if e.Attr.RemoteQPN != p.QPN || e.Attr.MTU != p.MTU || e.Attr.MaxDestRdAtomic != p.MaxRdAtomic || e.Attr.MaxRdAtomic != p.MaxDestRdAtomic ||
		e.Attr.RetryCount != p.RetryCount || e.Attr.RNRRetryCount != p.RNRRetryCount || e.Src != p.Src || e.Dst != p.Dst || port != y.port ||
		e.Attr.Peer != y.active.h.addr {
		r.fault("%s: try %d asked for %+v and is told %+v", h.name, n, p, e)
	}
	r.w.later(r.think(), func() { r.decide(s, y) })
	if r.rnd.IntN(2) == 0 {
		r.call(s, "take", func() error { return h.m.Take(e.Conn) })
	}
}

func (r *randomWorld) try(n int) *try {
	for _, y := range r.tries {
		if y.n == n {
			return y
		}
	}
	panic("no such try")
}

// decide is the passive program's answer.
func (r *randomWorld) decide(s *side, y *try) {
	if s.gone() || s.destroyed || s.told[cm.Rejected] > 0 {
		return
	}
	switch r.rnd.IntN(8) {
	case 0:
		s.rejected, s.reason, s.private, s.since = true, wire.RejConsumer, fmt.Sprintf("no %d.", y.n), r.w.now
		r.call(s, "reject", func() error { return s.h.m.Reject(r.w.now, s.id, s.reason, []byte(s.private)) })
	case 1:
		s.rejected, s.reason, s.since = true, wire.RejConsumer, r.w.now
		r.destroy(s)
	default:
		s.accepted = s.h.acceptParams(fmt.Sprintf("yes %d.", y.n))
		r.call(s, "accept", func() error { return s.h.m.Accept(r.w.now, s.id, s.accepted) })
	}
}

// response: the active program learns that it was accepted.
func (r *randomWorld) response(s *side, y *try, e cm.Event) {
	r.first(s, y, "response")
	p := r.accepter(y, e.Attr.RemoteQPN)
	if p == nil {
		r.fault("try %d: a response that nobody gave", y.n)
		return
	}
	a := p.accepted
	own, err := p.h.m.Attr(p.id)
	if !p.gone() && err == nil && (own.SQPSN != e.Attr.RQPSN || own.RQPSN != e.Attr.SQPSN) {
		r.fault("try %d: PSNs %v %v and %v %v", y.n, own.SQPSN, own.RQPSN, e.Attr.SQPSN, e.Attr.RQPSN)
	}
	if e.Attr.MaxDestRdAtomic != a.MaxRdAtomic || e.Attr.MaxRdAtomic != a.MaxDestRdAtomic || e.Attr.RNRRetryCount != a.RNRRetryCount ||
		string(e.Private[:len(a.Private)]) != string(a.Private) || len(e.Private) != wire.REPPrivateLen || e.Attr.Peer != p.h.addr {
		r.fault("try %d: accepted with %+v, told %+v", y.n, a, e)
	}
	r.w.later(r.think(), func() {
		if s.gone() || s.destroyed || s.told[cm.Rejected] > 0 || s.down {
			return
		}
		switch r.rnd.IntN(12) {
		case 0:
			s.rejected, s.reason, s.private, s.since = true, wire.RejConsumer, fmt.Sprintf("never %d.", y.n), r.w.now
			r.call(s, "reject", func() error { return s.h.m.Reject(r.w.now, s.id, s.reason, []byte(s.private)) })
		case 1:
			s.rejected, s.reason, s.since = true, wire.RejConsumer, r.w.now
			r.destroy(s)
		default:
			s.confirmed, s.up = true, true
			r.call(s, "confirm", func() error { return s.h.m.Confirm(s.id) })
			r.Connected++
			r.live(s)
		}
	})
}

// accepter returns the side that accepted with a queue pair.
func (r *randomWorld) accepter(y *try, qpn wire.QPN) *side {
	for _, p := range y.passive {
		if p.accepted != nil && p.accepted.QPN == qpn {
			return p
		}
	}
	return nil
}

// live is a program's use of a connection: some programs end it, some let it
// be.
func (r *randomWorld) live(s *side) {
	r.w.later(r.think()+r.think(), func() {
		if s.gone() || s.destroyed || s.down || s.told[cm.Rejected] > 0 {
			return
		}
		switch r.rnd.IntN(8) {
		case 0, 1:
			s.asked = true
			r.call(s, "disconnect", func() error { return s.h.m.Disconnect(r.w.now, s.id) })
		case 2:
			s.asked = true
			r.destroy(s)
		}
	})
}

// first notes the end of a Connect.
func (r *randomWorld) first(s *side, y *try, outcome string) {
	if s != y.active || s.outcome != "" {
		return
	}
	s.outcome, y.ended = outcome, r.w.now
}

// refused takes a REJ. It must be one that a side sent.
func (r *randomWorld) refused(s *side, y *try, e cm.Event) {
	if s == y.active && s.outcome == "" {
		r.Rejected++
	}
	r.first(s, y, "rejected")
	s.since = r.w.now
	switch e.Reason {
	case wire.RejInvalidServiceID:
		if y.port != 3 {
			r.fault("try %d: refused with %v, and there is a listener", y.n, e.Reason)
		}
	case wire.RejConsumer:
		for _, p := range append(y.passive, y.active) {
			if p != s && p.rejected && p.private == strings.TrimRight(string(e.Private), "\x00") {
				return
			}
		}
		r.fault("try %d: rejected with %q, which nobody said", y.n, strings.TrimRight(string(e.Private), "\x00"))
	case wire.RejTimeout:
		ok := y.active.destroyed || y.active.told[cm.Unreachable] > 0
		for _, p := range y.passive {
			ok = ok || p.told[cm.Unreachable] > 0
		}
		if !ok {
			r.fault("try %d: refused for a timeout that nobody had", y.n)
		}
	case wire.RejInvalidCommID:
		if !r.restarted && !y.active.destroyed && !y.active.rejected && y.active.told[cm.Unreachable]+y.active.told[cm.Rejected] == 0 {
			r.fault("try %d: refused for a connection that is there", y.n)
		}
	case wire.RejStaleConn:
		r.Stale++
		if !r.restarted {
			r.fault("try %d: refused as stale, and no host began anew", y.n)
		}
	default:
		r.fault("try %d: refused with %v", y.n, e.Reason)
	}
}

// unreachable: the peer was given up.
func (r *randomWorld) unreachable(s *side, y *try) {
	r.Unreachable++
	r.first(s, y, "unreachable")
	s.since = r.w.now
	if r.mild() && !r.restarted && s == y.active {
		r.fault("try %d: given up on a network that loses little", y.n)
	}
}

// settled holds the conditions that must be true when all is quiet.
func (r *randomWorld) settled() {
	silence := r.cfg.Silence()
	// Each think of the passive program may be followed by an MRA, and the last
	// by the loss of all that comes.
	bound := silence + maxThink + cm.Duration(wire.CMTimeout(20).Nanoseconds()) + silence
	for _, y := range r.tries {
		a := y.active
		if !a.gone() && a.outcome == "" {
			r.fault("try %d: nothing came of it", y.n)
		}
		if took := cm.Duration(y.ended - y.began); y.ended != 0 && took > bound {
			r.fault("try %d took %v, the bound is %v", y.n, time.Duration(took), time.Duration(bound))
		}
		var up *side
		for _, p := range y.passive {
			if p.gone() || p.destroyed {
				continue
			}
			if p.h.m.State(p.id) == cm.Established {
				if up != nil {
					r.fault("try %d is connected twice", y.n)
				}
				up = p
			}
		}
		r.agree(y, up)
	}
	for _, h := range r.w.hosts {
		r.distinct(h)
	}
}

// distinct holds that no two connections of a host believe to have the same
// queue pair of a peer.
func (r *randomWorld) distinct(h *host) {
	seen := map[string]int{}
	for _, s := range r.sides[h] {
		if s.destroyed || h.m.State(s.id) != cm.Established {
			continue
		}
		a, err := h.m.Attr(s.id)
		if err != nil {
			r.fault("%s: %v", h.name, err)
		}
		key := fmt.Sprint(a.Peer, a.RemoteQPN)
		if other, ok := seen[key]; ok {
			r.fault("%s: tries %d and %d have the same queue pair at %s", h.name, other, r.of[s].n, key)
		}
		seen[key] = r.of[s].n
	}
}

// mild reports whether the network loses so little that everything comes
// through.
func (r *randomWorld) mild() bool { return r.loss <= 0.05 && r.cutTo == 0 }

// agree holds that both ends of a try believe in it, or neither does.
func (r *randomWorld) agree(y *try, up *side) {
	a := y.active
	alive := !a.gone() && !a.destroyed && a.h.m.State(a.id) == cm.Established
	if alive == (up != nil) {
		return
	}
	ended := a.asked || a.destroyed || a.told[cm.Unreachable] > 0
	gone := a.gone()
	for _, p := range y.passive {
		ended = ended || p.asked || p.destroyed || p.told[cm.Unreachable] > 0
		gone = gone || p.gone()
	}
	// A side whose peer began anew cannot know before it says something; and a
	// network that loses every DREQ, or every REP and REJ, keeps a side in the
	// dark.
	if gone {
		return
	}
	if !r.mild() && ended {
		r.OneSided++
		return
	}
	r.fault("try %d: the active side is %v, the passive %v", y.n, alive, up != nil)
}
