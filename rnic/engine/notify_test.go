package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/engine/path"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// newMarked makes a pair whose packets all meet a queue, or only those of a,
// and the controllers of its two paths.
func newMarked(t *testing.T, stash, answers bool) (*network, *[2]fixed) {
	var paths [2]fixed
	n := newPair(t, cfg{edit: func(side int, c *Config) {
		paths[side].window = 80 << 10
		c.Paths = path.NewSet(0, paths[side].control)
		if stash {
			c.Stash = NewStash()
		}
	}})
	n.filter = func(from *host, p *wire.Packet) (int, Time) {
		p.FECN = from == n.a || answers
		return 1, 0
	}
	return n, &paths
}

// A soft device tells of a mark by BECN in its answer, and the requester's path
// notes it.
func TestMarkOfSoftDevice(t *testing.T) {
	n, paths := newMarked(t, true, false)
	n.complete(n.a, n.write(1, 64))
	n.complete(n.a, n.write(2, 64))
	requireSuccess(t, n.a.wcs, 1, 2)
	require.Len(t, n.b.sent, 2)
	for _, p := range n.b.sent {
		require.True(t, p.BECN)
		require.Equal(t, wire.RCAck, p.Opcode)
	}
	require.EqualValues(t, 2, n.b.qp.Counters().Marked)
	require.EqualValues(t, 2, n.a.qp.Counters().NoticesRcvd)
	require.NotZero(t, paths[0].marks)
	require.Zero(t, paths[1].marks)
}

// Any other peer is sent CNPs, not more than one in noticeGap, and obeys them.
func TestMarkOfOtherPeer(t *testing.T) {
	n, paths := newMarked(t, false, false)
	for id := range uint64(3) {
		n.complete(n.a, n.write(id, 2048))
	}
	requireSuccess(t, n.a.wcs, 0, 1, 2)
	var at []int
	for i, p := range n.b.sent {
		require.Equal(t, p.Opcode == wire.CNP, p.BECN)
		if p.Opcode == wire.CNP {
			require.Equal(t, n.a.qp.cfg.QPN, p.DestQPN)
			require.False(t, p.AckReq)
			at = append(at, i)
		}
	}
	require.NotEmpty(t, at)
	require.LessOrEqual(t, len(at), 3, "of six packets")
	require.EqualValues(t, len(at), n.b.qp.Counters().NoticesSent)
	require.EqualValues(t, len(at), n.a.qp.Counters().NoticesRcvd)
	require.NotZero(t, paths[0].marks)
}

// A requester notes a mark on its own path when answers to READs meet a queue:
// it asked for too much.
func TestMarkOfAnswers(t *testing.T) {
	n, paths := newMarked(t, true, true)
	n.filter = func(from *host, p *wire.Packet) (int, Time) {
		p.FECN = from == n.b
		return 1, 0
	}
	for id := range uint64(2) {
		n.complete(n.a, n.read(id, 4096))
	}
	requireSuccess(t, n.a.wcs, 0, 1)
	require.EqualValues(t, 8, n.a.qp.Counters().Marked)
	require.NotZero(t, paths[0].marks)
	for _, p := range n.a.sent {
		require.False(t, p.BECN, "nobody looks at it in a request")
	}
}
