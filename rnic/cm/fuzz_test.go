package cm_test

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/wiretest"
)

// recorded returns the management datagrams of a recording.
func recorded(t testing.TB, name string) (list [][]byte) {
	t.Helper()
	frames, err := wiretest.ReadFile("../../tests/testdata/" + name + ".pcap")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range frames {
		var p wire.Packet
		if p.Parse(f.UDP[:len(f.UDP)-wire.ICRCLen]) == nil && p.DestQPN == wire.GSIQPN {
			list = append(list, append([]byte(nil), p.Payload...))
		}
	}
	return list
}

// FuzzReceive gives any datagrams to a manager that has a connection in each
// state. Each input is datagrams one behind another; the identifiers in those
// that begin with a small number are replaced by real ones. Nothing may break,
// and everything must come to an end.
func FuzzReceive(f *testing.F) {
	var whole []byte
	for _, m := range recorded(f, "rxe-6.1-cm") {
		f.Add(m)
		whole = append(whole, m...)
	}
	f.Add(whole)
	for _, attribute := range []byte{0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18} {
		for id := byte(0); id < 12; id++ {
			h := wire.CMHeader(1, wire.CMAttribute(attribute))
			m := append(h.Append(nil), make([]byte, wire.CMLen)...)
			m[wire.MADHeaderLen+3], m[wire.MADHeaderLen+7] = id+1, id
			f.Add(m)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		w := newWorld(t)
		a, peer := w.host("a", cm.Config{MaxConns: 64}), w.host("b", cm.Config{})
		ids := everyState(t, w, a, peer)
		for len(b) > 0 {
			n := min(len(b), wire.MADLen)
			m := append([]byte(nil), b[:n]...)
			b = b[n:]
			for _, at := range []int{wire.MADHeaderLen, wire.MADHeaderLen + 4} {
				if len(m) < at+4 {
					break
				}
				if i := binary.BigEndian.Uint32(m[at:]); i < uint32(len(ids)) {
					binary.BigEndian.PutUint32(m[at:], uint32(ids[i]))
				}
			}
			a.m.Receive(w.now, peer.addr, m)
			a.m.Receive(w.now, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 9}), 50000), m)
			drain(a)
			w.now += cm.Time(cm.Millisecond)
			a.m.HandleTimeout(w.now)
		}
		finish(t, w, a)
	})
}

// everyState makes connections of host a in every state, and returns both
// sides' identifiers.
func everyState(t testing.TB, w *world, a, b *host) (ids []wire.CommID) {
	var requests []wire.CommID
	w.told = func(h *host, e cm.Event) {
		ids = append(ids, e.Conn)
		if e.Kind == cm.ConnectRequest || e.Kind == cm.SIDRRequest {
			requests = append(requests, e.Conn)
		}
	}
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range []*host{a, b} {
		_, err := h.m.Listen(wire.TCPService(7471), netip.Addr{}, 100)
		check(err)
		_, err = h.m.Listen(wire.UDPService(7471), netip.Addr{}, 100)
		check(err)
	}
	connect := func(from, to *host) wire.CommID {
		id, err := from.m.Connect(w.now, from.params(to, 7471, ""))
		check(err)
		ids = append(ids, id)
		from.settle()
		w.advance(hop)
		return id
	}
	accept := func(h *host) wire.CommID {
		id := requests[len(requests)-1]
		check(h.m.Accept(w.now, id, h.acceptParams("")))
		h.settle()
		w.advance(hop)
		return id
	}
	resolve := func(from, to *host) {
		id, err := from.m.Resolve(w.now, from.question(to, 7471, ""))
		check(err)
		ids = append(ids, id)
		from.settle()
		w.advance(hop)
	}
	resolve(a, b) // SIDR_REQ_SENT
	resolve(b, a) // SIDR_REQ_RCVD
	resolve(b, a) // answered
	check(a.m.Answer(w.now, requests[len(requests)-1], &cm.AnswerParams{QPN: 7}))
	drain(a)
	connect(a, b)       // REQ_SENT
	connect(b, a)       // REQ_RCVD
	connect(b, a)       // REP_SENT
	accept(a)           //
	up := connect(a, b) // ESTABLISHED
	accept(b)           //
	check(a.m.Confirm(up))
	a.settle()
	connect(a, b) // REP_RCVD
	accept(b)
	down := connect(a, b) // DREQ_SENT
	accept(b)
	check(a.m.Confirm(down))
	a.settle()
	w.advance(hop)
	check(a.m.Disconnect(w.now, down))
	drain(a)
	refused := connect(b, a) // TIMEWAIT
	_ = refused
	check(a.m.Reject(w.now, requests[len(requests)-1], wire.RejConsumer, nil))
	drain(a)
	return ids
}

// drain takes out the host's datagrams and events, and drops them.
func drain(h *host) (sent []cm.Datagram, events []cm.Event) {
	for {
		d, ok := h.m.Transmit()
		if !ok {
			break
		}
		sent = append(sent, d)
	}
	for {
		e, ok := h.m.Event()
		if !ok {
			return sent, events
		}
		events = append(events, e)
	}
}

// finish destroys the host's connections and lets time pass: nothing may be
// left.
func finish(t testing.TB, w *world, h *host) {
	known := map[wire.CommID]bool{}
	for i := 0; ; i++ {
		if all, lingering := h.m.Len(); all > 64+lingering {
			t.Fatalf("%d connections, %d linger", all, lingering)
		}
		for _, id := range h.m.Conns() {
			if !known[id] {
				known[id] = true
				_ = h.m.Destroy(w.now, id)
			}
		}
		drain(h)
		at, ok := h.m.NextTimeout()
		if !ok {
			break
		}
		if i > 100_000 || at < w.now-cm.Time(cm.Second) {
			t.Fatalf("it does not end: %d at %d", at, w.now)
		}
		w.now = max(w.now, at)
		h.m.HandleTimeout(w.now)
	}
	if all, _ := h.m.Len(); all != 0 {
		t.Fatalf("%d connections are left", all)
	}
}
