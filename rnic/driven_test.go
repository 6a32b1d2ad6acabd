package rnic

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/rnic/link"
)

// muted is a link that loses all that is sent while it is mute.
type muted struct {
	link.Link
	mute atomic.Bool
}

func (m *muted) Send(batch []link.Packet) error {
	if m.mute.Load() {
		return nil
	}
	return m.Link.Send(batch)
}

// await arms until there are n completions, and leaves them there.
func (c *testCQ) await(n int) {
	c.t.Helper()
	ready := func() bool {
		got, err := c.cons.Ready()
		require.NoError(c.t, err)
		return got >= n
	}
	for !ready() {
		require.NoError(c.t, c.cq.Arm(false))
		if !ready() {
			<-c.wake
		}
	}
}

// Assist keeps a program waiting that would poll in vain, until its thread is
// wanted, and no other.
func TestAssistKeepsPollers(t *testing.T) {
	for name, c := range map[string]struct {
		before, left int // messages that have completed, and completions of them that were not taken out
		posts, size  int
		kept         bool
	}{
		"a stream":                {2, 0, 2, manyBytes, true},
		"the first requests":      {0, 0, 2, manyBytes, false},
		"a completion that waits": {2, 1, 2, manyBytes, false},
		"one request":             {2, 0, 1, 2 * manyBytes, false},
		"little under way":        {2, 0, 2, 1000, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l *muted
				a, b := newPair(t, pairOptions{tap: func(under link.Link) link.Link { l = &muted{Link: under}; return l }})
				answers := 0
				post := func(n, size int) (kept bool) {
					rings := func() {
						a.qp.post(slices.Repeat([]*ring.SendWR{write(a, b, 1, 0, 0, size)}, n)...)
					}
					a.Assist(8, func() bool { kept = true; return true }, rings, func() { answers++ })
					return kept
				}
				post(c.before, 1000)
				a.qp.send.await(c.before)
				for range c.before - c.left {
					require.True(t, a.qp.send.take())
				}
				synctest.Wait() // the listener rests, so that posts are sent at once
				l.mute.Store(true)
				require.Equal(t, c.kept, post(c.posts, c.size))
				require.Equal(t, 2, answers)
				if c.left > 0 { // and the next one, once that was taken out
					require.True(t, a.qp.send.take())
					<-time.After(time.Millisecond) // a doorbell by itself
					require.True(t, post(1, 1000))
				}
			})
		})
	}
}
