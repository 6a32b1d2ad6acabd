package cm_test

import (
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
)

// TestUndelivered: a message that comes back ends the attempt behind it, and
// nothing that a stranger could make up ends anything.
func TestUndelivered(t *testing.T) {
	w, a, b := twoHosts(t)
	var events []cm.Event
	w.told = func(_ *host, e cm.Event) { events = append(events, e) }
	var last flight
	copies := 0
	w.seen = func(f *flight) { last = *f; copies++ }
	w.fate = func(*flight) []cm.Duration { return nil }
	returned := func(to netip.AddrPort, mad []byte, why syscall.Errno) []cm.Event {
		events = nil
		a.m.Undelivered(w.now, to, mad, why)
		a.settle()
		return events
	}
	// A port is closed for a moment when one device follows another.
	refused := func(mad []byte) {
		for _, pause := range []cm.Duration{20, 40} {
			sent := copies
			require.Empty(t, returned(b.addr, mad, syscall.ECONNREFUSED))
			w.advance(pause * cm.Millisecond)
			require.Equal(t, sent+1, copies)
		}
	}
	connect := func() wire.CommID {
		id := must.Get(a.m.Connect(w.now, a.params(b, 1, "")))(t)
		a.settle()
		return id
	}

	id := connect()
	mad := last.mad
	for name, change := range map[string]func(mad *[wire.MADLen]byte, to *netip.AddrPort){
		"another transaction": func(mad *[wire.MADLen]byte, _ *netip.AddrPort) { mad[8] ^= 1 },
		"another identifier":  func(mad *[wire.MADLen]byte, _ *netip.AddrPort) { mad[wire.MADHeaderLen] ^= 1 },
		"another message":     func(mad *[wire.MADLen]byte, _ *netip.AddrPort) { mad[17] = byte(wire.AttrSIDRREQ) },
		"another class":       func(mad *[wire.MADLen]byte, _ *netip.AddrPort) { mad[1] ^= 1 },
		"another port":        func(_ *[wire.MADLen]byte, to *netip.AddrPort) { *to = netip.AddrPortFrom(to.Addr(), 1) },
		"another address":     func(_ *[wire.MADLen]byte, to *netip.AddrPort) { *to = a.addr },
	} {
		forged, to := mad, b.addr
		change(&forged, &to)
		require.Empty(t, returned(to, forged[:], syscall.ECONNREFUSED), name)
	}
	for n := range cm.QuoteLen {
		require.Empty(t, returned(b.addr, mad[:n], syscall.ECONNREFUSED))
	}
	require.Equal(t, cm.ReqSent, a.m.State(id))

	refused(mad[:cm.QuoteLen])
	got := returned(b.addr, mad[:cm.QuoteLen], syscall.ECONNREFUSED)
	require.Equal(t, []cm.Event{{Kind: cm.Rejected, Conn: id, Errno: syscall.ECONNREFUSED}}, got)
	require.Empty(t, returned(b.addr, mad[:], syscall.ECONNREFUSED), "once")
	_, timer := a.m.NextTimeout()
	require.False(t, timer)
	require.NoError(t, a.m.Destroy(w.now, id))

	id = connect()
	mad = last.mad
	require.Equal(t, []cm.Event{{Kind: cm.Unreachable, Conn: id, Errno: syscall.EHOSTUNREACH}}, returned(b.addr, mad[:], syscall.EHOSTUNREACH))
	require.NoError(t, a.m.Destroy(w.now, id))

	// A packet filter that drops a part of the packets is asked three times.
	id = connect()
	mad = last.mad
	require.Empty(t, returned(b.addr, mad[:], syscall.EPERM))
	w.advance(300 * cm.Millisecond)
	require.Empty(t, returned(b.addr, mad[:], syscall.EPERM))
	w.advance(500 * cm.Millisecond)
	require.Equal(t, []cm.Event{{Kind: cm.Unreachable, Conn: id, Errno: syscall.EPERM}}, returned(b.addr, mad[:], syscall.EPERM))
	require.NoError(t, a.m.Destroy(w.now, id))

	// A question for datagrams' queue pair.
	id = must.Get(a.m.Resolve(w.now, a.question(b, 1, "")))(t)
	a.settle()
	mad = last.mad
	refused(mad[:])
	require.Equal(t, []cm.Event{{Kind: cm.Unreachable, Conn: id, Errno: syscall.ECONNREFUSED}}, returned(b.addr, mad[:], syscall.ECONNREFUSED))
	require.NoError(t, a.m.Destroy(w.now, id))
	all, _ := a.m.Len()
	require.Zero(t, all)
}

// TestUndeliveredLate: a copy of the REQ that comes back ends neither a
// connection nor an attempt whose program was answered.
func TestUndeliveredLate(t *testing.T) {
	w, a, b := twoHosts(t)
	var req flight
	w.seen = func(f *flight) {
		if f.from == a && req.from == nil {
			req = *f
		}
	}
	var asked wire.CommID
	w.told = func(_ *host, e cm.Event) {
		switch e.Kind {
		case cm.ConnectRequest:
			asked = e.Conn
		case cm.ConnectResponse:
			a.m.Undelivered(w.now, b.addr, req.mad[:], syscall.ECONNREFUSED)
			require.NoError(t, a.m.Confirm(e.Conn))
		case cm.Connected:
		default:
			t.Errorf("%v", e.Kind)
		}
	}
	must.Get(b.m.Listen(wire.TCPService(1), netip.Addr{}, 1))(t)
	id := must.Get(a.m.Connect(w.now, a.params(b, 1, "")))(t)
	a.settle()
	w.advance(hop)
	require.NoError(t, b.m.Accept(w.now, asked, b.acceptParams("")))
	b.settle()
	w.advance(5 * hop)
	require.Equal(t, cm.Established, a.m.State(id))
	a.m.Undelivered(w.now, b.addr, req.mad[:], syscall.ECONNREFUSED)
	require.Equal(t, cm.Established, a.m.State(id))
	require.Zero(t, a.m.Counters().Undelivered)
}
