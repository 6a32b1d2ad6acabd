package cm_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/wiretest"
)

// liar is one of 65,536 addresses.
func liar(n int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, byte(n >> 8), byte(n)}), wire.Port)
}

// A flood of 1,000 REQs a second for 30 s, each from another made-up address,
// against a program that accepts all: an honest client connects within a second
// throughout, no more datagrams leave for the made-up addresses than came from
// them, but for the documented few, and 10 s later all is given back.
func TestFlood(t *testing.T) {
	w, a, b, _ := pair(t, cm.Config{})
	const rate, seconds = 1000, 30
	most, connected := 0, 0
	asked := map[wire.CommID]cm.Time{}
	program := w.told
	w.told = func(h *host, e cm.Event) {
		program(h, e)
		switch {
		case h == a && e.Kind != cm.ConnectResponse:
			t.Fatalf("the honest client is told %v", e.Kind)
		case h == a:
			require.Less(t, w.now-asked[e.Conn], cm.Time(cm.Second))
			connected++
		case e.Kind == cm.Unreachable:
			require.NoError(t, h.m.Destroy(w.now, e.Conn))
		}
	}
	for n := range rate * seconds {
		b.m.Receive(w.now, liar(n), wiretest.Request(liar(n).Addr(), b.addr.Addr(), 1, n))
		b.settle()
		if n%100 == 0 {
			asked[a.connect(t, b)] = w.now
		}
		w.advance(cm.Second / rate)
		all, _ := b.m.Len()
		most = max(most, all)
	}
	w.advance(10 * cm.Second)
	const beyond = 64 // see maxCredit
	came := int(b.m.Counters().Received)
	require.LessOrEqual(t, w.stray+connected, came+beyond, "answers")
	require.Greater(t, w.stray, rate*seconds*9/10, "the program accepted all")
	require.Equal(t, rate*seconds/100, connected)
	all, lingering := b.m.Len()
	t.Logf("%d datagrams came, %d left; at most %d connections, %d lingering at the end", came, w.stray+connected, most, lingering)
	require.Equal(t, connected, all-lingering, "only honest connections are left")
	require.Less(t, most, 5*rate, "a REP lives for 4 s")
}

// A listener's requests without an answer are bounded, and those of an address
// by a share of them: a host that keeps asking keeps no other out.
func TestRequestsAreBounded(t *testing.T) {
	w := newWorld(t)
	a, b := w.host("a", cm.Config{}), w.host("b", cm.Config{MaxRequests: 40})
	must.Get(b.m.Listen(wire.TCPService(1), netip.Addr{}, 1000))(t)
	var got []cm.Event
	w.told = func(_ *host, e cm.Event) {
		if e.Kind == cm.ConnectRequest {
			got = append(got, e)
			require.NoError(t, b.m.Take(e.Conn)) // read, not answered
		}
	}
	next := 0
	ask := func(from netip.AddrPort, n int) int {
		before := len(got)
		for range n {
			next++
			b.m.Receive(w.now, from, wiretest.Request(from.Addr(), b.addr.Addr(), 1, next))
			b.settle()
		}
		return len(got) - before
	}
	require.Equal(t, 30, ask(liar(1), 50), "three quarters")
	require.EqualValues(t, 20, b.m.Counters().DropBacklog)
	a.connect(t, b)
	w.advance(2 * hop)
	require.Len(t, got, 31, "another address")
	require.Equal(t, 9, ask(liar(2), 50), "all of them")
	require.Zero(t, ask(liar(3), 50))

	// Each end of a request makes room.
	require.NoError(t, b.m.Accept(w.now, got[0].Conn, b.acceptParams("")))
	require.NoError(t, b.m.Reject(w.now, got[1].Conn, wire.RejConsumer, nil))
	require.NoError(t, b.m.Destroy(w.now, got[2].Conn))
	b.m.Forget(got[3].Conn)
	require.Equal(t, 4, ask(liar(1), 50))
	for i := range 10 {
		require.NoError(t, b.m.Destroy(w.now, got[4+i].Conn))
	}
	require.Equal(t, 10, ask(liar(6), 50))
	require.Zero(t, ask(liar(1), 50))

	// A share is never nothing.
	c := w.host("c", cm.Config{MaxRequests: 2})
	must.Get(c.m.Listen(wire.TCPService(1), netip.Addr{}, 1000))(t)
	c.m.Receive(w.now, liar(1), wiretest.Request(liar(1).Addr(), c.addr.Addr(), 1, 1))
	c.m.Receive(w.now, liar(1), wiretest.Request(liar(1).Addr(), c.addr.Addr(), 1, 2))
	c.m.Receive(w.now, liar(2), wiretest.Request(liar(2).Addr(), c.addr.Addr(), 1, 3))
	require.EqualValues(t, 2, c.m.Counters().RequestsRcvd)
}
