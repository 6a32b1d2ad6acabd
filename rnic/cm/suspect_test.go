package cm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/wiretest"
)

// forgery is a REQ in a host's name with numbers of its connections.
func (h *host) forgery(to *host, id wire.CommID, qpn wire.QPN) []byte {
	return wiretest.RequestOf(h.addr.Addr(), to.addr.Addr(), 1, h.cfg.CAGUID, id, qpn)
}

// A REQ that names the queue pair or the identifier of a living peer's
// connection ends nothing and is not answered, however often it comes, and
// makes this side ask the peer four times in 5 s at most. Of a dead peer's
// connection nothing is left 2 s after the REQ, also when packets of its former
// life still come late.
func TestForgedStale(t *testing.T) {
	for name, forge := range map[string]func(a, b *host, id wire.CommID, qpn wire.QPN) []byte{
		"queue pair": func(a, b *host, _ wire.CommID, qpn wire.QPN) []byte { return a.forgery(b, 12345, qpn) },
		"identifier": func(a, b *host, id wire.CommID, _ wire.QPN) []byte { return a.forgery(b, id, 54321) },
	} {
		t.Run(name, func(t *testing.T) {
			w, a, b, passive := pair(t, cm.Config{})
			id := a.connect(t, b)
			w.advance(5 * hop)
			other := (*passive)[0]
			attr := must.Get(b.m.Attr(other))(t)
			req := forge(a, b, id, attr.RemoteQPN)
			asked, sent := 0, 0
			w.probed = func(*host) { asked++ }
			w.seen = func(*flight) { sent++ }

			for range 100 {
				b.m.Receive(w.now, a.addr, req)
				b.settle()
				w.advance(100 * cm.Millisecond)
				require.Equal(t, cm.Established, b.m.State(other))
				require.Equal(t, cm.Established, a.m.State(id))
			}
			require.Zero(t, sent, "messages")
			require.LessOrEqual(t, asked, 3*2, "10 s of REQs")
			require.EqualValues(t, 100-2, b.m.Counters().DropSuspect)

			w.advance(6 * cm.Second)
			a.down = true
			b.heard[other] += 3 // they came before the REQ
			b.m.Receive(w.now, a.addr, req)
			b.settle()
			w.advance(cm.Second)
			require.Equal(t, cm.Established, b.m.State(other), "it is still being asked")
			w.advance(cm.Second)
			require.Equal(t, cm.DreqSent, b.m.State(other))
			require.EqualValues(t, 1, b.m.Counters().Stale)
			require.Positive(t, sent, "the REQ is answered, and the end told")
		})
	}
}

// A queue pair that is not there, or sends nothing, is not asked for long; a
// connection that ends while its peer is asked takes that with it; and late
// answers do nothing.
func TestSuspicionEnds(t *testing.T) {
	w, a, b, passive := pair(t, cm.Config{})
	a.connect(t, b)
	a.connect(t, b)
	w.advance(5 * hop)
	suspect := func(id wire.CommID) cm.Event {
		attr := must.Get(b.m.Attr(id))(t)
		b.m.Receive(w.now, a.addr, a.forgery(b, 999, attr.RemoteQPN))
		e, ok := b.m.Event()
		require.True(t, ok)
		require.Equal(t, []any{cm.Probe, id, attr}, []any{e.Kind, e.Conn, e.Attr})
		return e
	}
	e := suspect((*passive)[0])
	b.m.Gone(w.now, e.Conn)
	require.Equal(t, cm.DreqSent, b.m.State(e.Conn))
	b.m.Gone(w.now, e.Conn)
	require.False(t, b.m.AnswerProbe(w.now, e.Conn, 7))

	e = suspect((*passive)[1])
	require.NoError(t, b.m.Disconnect(w.now, e.Conn))
	b.settle()
	w.advance(10 * cm.Second)
	require.Equal(t, cm.Idle, b.m.State(e.Conn))
	require.False(t, b.m.AnswerProbe(w.now, e.Conn, 7))
	b.m.Gone(w.now, 4711)
	_, waits := b.m.NextTimeout()
	require.False(t, waits)
}

// A REQ in the name of a peer that is being connected does not end that either.
func TestForgedWhileConnecting(t *testing.T) {
	w, a, b, passive := pair(t, cm.Config{})
	id := a.connect(t, b)
	sent := 0
	w.arrives = func(f *flight) {
		sent++
		p := (*passive)
		if f.to == a && f.attribute() == wire.AttrREP { // b waits for the RTU
			attr := must.Get(b.m.Attr(p[0]))(t)
			b.m.Receive(w.now, a.addr, a.forgery(b, 12345, attr.RemoteQPN))
			b.settle()
		}
	}
	w.advance(5 * hop)
	require.Equal(t, 3, sent, "REQ, REP, RTU")
	require.Equal(t, cm.Established, a.m.State(id))
	require.Equal(t, cm.Established, b.m.State((*passive)[0]))
	require.EqualValues(t, 1, b.m.Counters().DropSuspect)
}

// The answer to each question counts, to the last one too.
func TestLateSignOfLife(t *testing.T) {
	for name, answered := range map[string]int{"the first": 1, "the last": 4, "none": 0} {
		t.Run(name, func(t *testing.T) {
			w, a, b, passive := pair(t, cm.Config{})
			id := a.connect(t, b)
			w.advance(5 * hop)
			attr := must.Get(b.m.Attr((*passive)[0]))(t)
			asked := 0
			w.probed = func(*host) {
				asked++
				a.down = asked != answered // then no question reaches it
			}
			b.m.Receive(w.now, a.addr, a.forgery(b, 12345, attr.RemoteQPN))
			b.settle()
			w.advance(1900 * cm.Millisecond)
			require.Equal(t, cm.Established, b.m.State((*passive)[0]))
			w.advance(100 * cm.Millisecond)
			if answered == 0 {
				require.Equal(t, cm.DreqSent, b.m.State((*passive)[0]))
				return
			}
			require.Equal(t, cm.Established, b.m.State((*passive)[0]))
			require.Equal(t, cm.Established, a.m.State(id))
		})
	}
}
