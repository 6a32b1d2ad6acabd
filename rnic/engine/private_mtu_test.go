package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine/path"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// jumboRoom is the UDP payload of Ethernet's jumbo frames, and jumbo the
// private MTU that fits.
const jumboRoom, jumbo = 9000 - 28, 8936

// newPrivatePair makes a pair with a path MTU of 1024 and room for private
// ones; both repeat selectively but for side goesBack. The first one's device
// has a Stash, and paths then; nil: it has no other queue pair.
func newPrivatePair(t *testing.T, roomA, roomB, goesBack int, m *Stash) *network {
	return newPair(t, cfg{
		edit: func(side int, c *Config) {
			if side != goesBack {
				c.Stash = NewStash()
			}
			if side == 0 && m != nil {
				c.Stash, c.Paths = m, path.NewSet(0, nil)
			}
		},
		attr: func(side int, a *Attr) { a.Room = []int{roomA, roomB}[side] },
	})
}

// payloads lists the payloads of a host's WRITE packets or READ responses that
// have an effect.
func payloads(ps []wire.Packet) (l []int) {
	for _, p := range ps {
		if p.Opcode.HasPayload() && !p.TriesMTU() {
			l = append(l, len(p.Payload))
		}
	}
	return l
}

// tries lists the private MTUs that were tried.
func tries(ps []wire.Packet) (l []int) {
	for _, p := range ps {
		if p.TriesMTU() {
			l = append(l, p.PrivateMTU.Bytes())
		}
	}
	return l
}

// The first message has packets of the path MTU, and one packet more shows that
// the path carries longer ones, which later messages and READs have: the
// longest that both ends take.
func TestPrivateMTU(t *testing.T) {
	for _, c := range []struct{ a, b, want int }{
		{jumboRoom, jumboRoom, jumbo},
		{jumboRoom, 1472, 1432},
		{1472, jumboRoom, 1432},
		{1060, jumboRoom, 1024},
		{0, jumboRoom, 1024},
	} {
		n := newPrivatePair(t, c.a, c.b, 2, nil)
		n.complete(n.a, n.write(1, 3000))
		require.Equal(t, []int{1024, 1024, 952}, payloads(n.a.sent))
		require.LessOrEqual(t, len(tries(n.a.sent)), 1)
		n.a.sent, n.b.sent = nil, nil

		const long = 2*jumbo + 100
		fill(n.a.mem, 5)
		n.complete(n.a, n.write(2, long))
		require.Equal(t, n.a.mem[:long], n.b.mem[:long])
		n.complete(n.a, n.read(3, long))
		requireSuccess(t, n.a.wcs, 1, 2, 3)
		var want []int
		for left := long; left > 0; left -= c.want {
			want = append(want, min(left, c.want))
		}
		require.Equal(t, want, payloads(n.a.sent))
		require.Equal(t, want, payloads(n.b.sent))
		require.Equal(t, c.want, n.a.qp.Gauges().MTU)
		require.Zero(t, n.a.qp.Counters().RetransmittedPkts)
	}
}

// Batches hold fewer packets when they are long, answers and requests halve
// them, and none is longer than its room.
func TestPrivateMTUInBatches(t *testing.T) {
	n := newPrivatePair(t, wire.MaxPrivateMTU+36, wire.MaxPrivateMTU+36, 2, nil)
	n.complete(n.a, n.write(1, 3000))
	n.batch = NewBatch(16)
	fill(n.a.mem, 9)
	for id := uint64(2); id < 10; id += 2 {
		n.post(n.a, n.write(id, regionLen/2))
		n.post(n.a, n.read(id+1, regionLen/2))
	}
	n.run(0)
	requireSuccess(t, n.a.wcs, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	require.Equal(t, n.a.mem[:regionLen/2], n.b.mem[:regionLen/2])
	require.Equal(t, n.a.mem[:regionLen/2], n.a.mem[regionLen/2:])
	require.Contains(t, payloads(n.b.sent), wire.MaxPrivateMTU)

	b := NewBatch(4)
	for i := range 4 {
		require.False(t, b.Full())
		length := []int{4096, wire.MaxPrivateMTU}[i/3]
		b.add(n.a.addr, &wire.Packet{}, b.payload(0, length))
	}
	require.True(t, b.Full())
}

// A private MTU that one queue pair has proven counts for the others on its
// path.
func TestPrivateMTUIsShared(t *testing.T) {
	m := NewStash()
	first := newPrivatePair(t, jumboRoom, jumboRoom, 2, m)
	first.complete(first.a, first.write(1, 3000))
	n := newPrivatePair(t, jumboRoom, jumboRoom, 2, m)
	n.post(n.a, n.write(1, 3000)) // it does not know yet what the peer takes
	n.run(0)
	n.complete(n.a, n.write(2, 3000))
	require.Equal(t, []int{1024, 1024, 952, 3000}, payloads(n.a.sent))
	require.Empty(t, tries(n.a.sent))
	require.Equal(t, onPath(n.a.qp, "packet"), jumbo+packetCost)
}

// On a path that loses long packets without a word, messages go on at the path
// MTU while shorter ones are tried, and at last the longest that passes is
// used.
func TestPrivateMTUThatDoesNotPass(t *testing.T) {
	for _, c := range []struct{ carries, want int }{{2000, 1976}, {1300, 1280}, {1030, 1024}} {
		n := newPrivatePair(t, jumboRoom, jumboRoom, 2, nil)
		n.filter = func(_ *host, p *wire.Packet) (int, Time) {
			if len(p.Payload) > c.carries {
				return 0, 0
			}
			return 1, 0
		}
		for id := range 100 {
			n.complete(n.a, n.write(uint64(id), 5000))
			n.now += 20 * Time(Millisecond)
		}
		require.Len(t, n.a.wcs, 100)
		for _, w := range n.a.wcs {
			require.Equal(t, abi.WCSuccess, w.Status)
		}
		got := n.a.qp.Gauges().MTU
		require.LessOrEqual(t, got, c.want)
		require.GreaterOrEqual(t, 10*got, 8*c.want)
		require.LessOrEqual(t, len(tries(n.a.sent)), 32*privateTries)
		require.Zero(t, n.a.qp.Counters().Timeouts, "messages do not wait for tries")
	}
}

// A peer that breaks its word is refused: a private MTU that was not offered,
// one that changes within a message, packets of another length.
func TestPrivateMTUIsChecked(t *testing.T) {
	offered := wire.FitPrivateMTU(jumboRoom)
	for name, spoil := range map[string]func(*wire.Packet){
		"not offered":          func(p *wire.Packet) { p.PrivateMTU = offered + 1 },
		"changes":              func(p *wire.Packet) { p.PrivateMTU = offered - 1 },
		"none":                 func(p *wire.Packet) { p.PrivateMTU = 0 },
		"shorter":              func(p *wire.Packet) { p.Payload = p.Payload[:jumbo-4] },
		"not of a soft device": func(p *wire.Packet) { p.Selective = false },
	} {
		n := newPrivatePair(t, jumboRoom, jumboRoom, 2, nil)
		n.complete(n.a, n.write(1, 3000))
		n.post(n.a, n.write(2, 3*jumbo))
		n.pump(n.a)
		for _, f := range n.fly {
			var p wire.Packet
			require.NoError(t, p.Parse(f.data))
			if p.Opcode.Position() == wire.Middle {
				spoil(&p)
			}
			n.b.qp.Receive(n.now, n.a.addr.Addr(), &p)
		}
		require.Equal(t, abi.QPSErr, n.b.qp.State(), name)
		require.EqualValues(t, 1, n.b.qp.Counters().NAKInvSent, name)
	}
	for _, m := range []wire.PrivateMTU{offered + 1, 31} {
		n := newPrivatePair(t, jumboRoom, jumboRoom, 2, nil)
		n.post(n.a, n.read(1, 3000))
		n.filter = func(_ *host, p *wire.Packet) (int, Time) { return 0, 0 }
		n.pump(n.a)
		p := n.a.sent[0]
		p.PrivateMTU = m
		n.b.qp.Receive(n.now, n.a.addr.Addr(), &p)
		require.Equal(t, abi.QPSErr, n.b.qp.State())
	}
}

// On a path that becomes narrower a queue pair gives up, and the next one on it
// finds the MTU that passes now.
func TestPrivateMTUThatPassesNoMore(t *testing.T) {
	m := NewStash()
	n := newPrivatePair(t, jumboRoom, jumboRoom, 2, m)
	for id := range 2 {
		n.complete(n.a, n.write(uint64(id), 5000))
	}
	require.Contains(t, payloads(n.a.sent), 5000)
	narrow := func(_ *host, p *wire.Packet) (int, Time) {
		if len(p.Payload) > 1200 {
			return 0, 0
		}
		return 1, 0
	}
	n.filter = narrow
	n.complete(n.a, n.write(2, 5000))
	require.Equal(t, abi.WCRetryExcErr, n.a.wcs[2].Status)

	next := newPrivatePair(t, jumboRoom, jumboRoom, 2, m)
	next.filter = narrow
	next.complete(next.a, next.write(1, 5000))
	next.complete(next.a, next.write(2, 5000))
	requireSuccess(t, next.a.wcs, 1, 2)
}
