package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/engine/path"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// A queue pair keeps fewer than reach packets, a device stashBlocks, and all
// of them go with their queue pair.
func TestStashBounds(t *testing.T) {
	m := NewStash()
	var p wire.Packet
	p.Payload = make([]byte, 64)
	pairs := make([]stash, 10)
	for i := range pairs {
		first := firstSeq(wire.PSN(i))
		for s := first + 1; s < first+2*span; s++ {
			require.Equal(t, s < first+span && m.Len() < stashBlocks || pairs[i].at(s) != nil, pairs[i].put(m, nil, first, span, s, &p))
		}
		require.Less(t, pairs[i].n, span)
		require.LessOrEqual(t, m.Len(), stashBlocks)
	}
	require.Equal(t, stashBlocks, m.Len())
	for s := firstSeq(0) + 1; s < firstSeq(0)+span; s++ {
		require.Equal(t, s, pairs[0].at(s).seq, "the ring grew")
	}
	for i := range pairs {
		pairs[i].clear()
	}
	require.Zero(t, m.Len())
	require.LessOrEqual(t, len(m.spare), spareBlocks)
}

// A peer's address keeps half of what a device may, and leaves room for others,
// also while its queue pairs come and go.
func TestStashShares(t *testing.T) {
	m := NewStash()
	fill := func(of *neighbour) (pairs []stash) {
		pairs = make([]stash, 3)
		for i := range pairs {
			first := firstSeq(0)
			for s := first + 1; s < first+span; s++ {
				pairs[i].put(m, of, first, span, s, &wire.Packet{})
			}
		}
		return pairs
	}
	var greedy, other neighbour
	pairs := fill(&greedy)
	require.Equal(t, stashBlocks/2, greedy.kept)
	others := fill(&other)
	require.Equal(t, stashBlocks/4, other.kept)
	for i := range pairs {
		pairs[i].clear()
	}
	require.Zero(t, greedy.kept)
	require.Equal(t, other.kept, m.Len())
	for i := range others {
		others[i].clear()
	}
	require.Zero(t, other.kept)
	require.Zero(t, m.Len())
}

// The packet that came first stays, and one before the first missing goes.
func TestStashOrder(t *testing.T) {
	m, x := NewStash(), stash{}
	const first = seq(1 << 32)
	put := func(s seq, b byte) bool { return x.put(m, nil, first, span, s, &wire.Packet{Payload: []byte{b}}) }
	require.True(t, put(first+1, 1))
	require.True(t, put(first+3, 3))
	require.True(t, put(first+3, 9))
	require.False(t, put(first+span, 0))
	require.Nil(t, x.take(first+2))
	h := x.take(first + 3)
	require.Equal(t, []byte{3}, h.p.Payload)
	m.release(h)
	x.drop(first + 2)
	require.Zero(t, x.n)
	require.Zero(t, m.Len())
}

// Parts of an answer that are on their way are not sent twice.
func TestRepeats(t *testing.T) {
	var u repeats
	r := replay{first: 10, end: 20, cur: 14, stop: 20}
	require.True(t, u.add(&r, 15, 17))
	require.Empty(t, u.list)
	require.False(t, u.add(&r, 12, 20), "all that remains, and more: as if it had not begun")
	require.True(t, u.add(&r, 11, 13))
	require.Equal(t, []repeat{{11, 13, false}}, u.list)
	r.cur = r.stop
	for range 2 * maxRepeats {
		require.True(t, u.add(&r, 18, 19))
	}
	require.Len(t, u.list, maxRepeats)
	require.True(t, u.last.alone, "what was asked for in vain leaves as datagrams of their own")
}

// Packets whose repeats are lost, too, leave the flight: a window that has
// shrunk below the cost in flight repairs them by the window, not one a round
// trip.
func TestLostRepeatsLeaveRoom(t *testing.T) {
	for _, op := range []string{"WRITE", "READ"} {
		n := newPair(t, cfg{edit: func(_ int, c *Config) {
			c.Stash = NewStash()
			c.Tuning.InitialWindow = 400 << 10
		}})
		sent := map[wire.PSN]int{}
		n.filter = func(from *host, p *wire.Packet) (int, Time) {
			if p.Opcode.HasPayload() && len(p.Payload) == 1024 {
				if sent[p.PSN]++; p.PSN >= 10 && p.PSN < 210 && sent[p.PSN] <= 2+int(p.PSN%8) {
					return 0, 0
				}
			}
			return 1, Time(5 * Millisecond)
		}
		start := n.now
		if op == "READ" {
			n.post(n.a, n.read(1, 300<<10))
		} else {
			n.post(n.a, n.write(1, 300<<10))
		}
		n.run(0)
		requireSuccess(t, n.a.wcs, 1)
		require.Less(t, n.now-start, 800*Time(Millisecond), op)
	}
}

// On a long path that has lost packets a READ request leaves twice: a lost one
// stops nothing, and the copy of one that arrived is not answered.
func TestReadsLeaveTwice(t *testing.T) {
	n := newPair(t, cfg{edit: func(_ int, c *Config) { c.Stash, c.Paths = NewStash(), path.NewSet(0, nil) }})
	asked, answers, lose := map[wire.PSN]int{}, 0, false
	n.filter = func(from *host, p *wire.Packet) (int, Time) {
		if p.Opcode.IsReadRequest() {
			if asked[p.PSN]++; lose && asked[p.PSN] == 1 {
				return 0, 0
			}
		} else if p.Opcode.Operation() == wire.OpReadResponse {
			if answers++; answers == 3 {
				return 0, 0
			}
		}
		return 1, Time(5 * Millisecond)
	}
	n.complete(n.a, n.read(1, 8<<10))
	asked, answers, lose = map[wire.PSN]int{}, 10, true
	n.complete(n.a, n.read(2, 8<<10), n.read(3, 8<<10))
	lose = false
	n.complete(n.a, n.read(4, 8<<10))
	requireSuccess(t, n.a.wcs, 1, 2, 3, 4)
	require.Len(t, asked, 3)
	for _, times := range asked {
		require.Equal(t, 2, times)
	}
	require.Equal(t, 10+3*8, answers)
	require.Zero(t, n.b.qp.Counters().NAKSeqSent)
}
