package rnic

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/link"
)

// unscheduled is a link whose waiters do not run: the packets are there.
type unscheduled struct {
	link.Link
	over chan struct{}
}

func (u *unscheduled) Wait() error {
	<-u.over
	return u.Link.Wait()
}

func (u *unscheduled) Sleep(time.Duration, bool) error { return u.Wait() }

// TestHearBeforeTimeout: an acknowledgement that waits in the link counts
// before the timeout that its receiver slept over.
func TestHearBeforeTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &unscheduled{over: make(chan struct{})}
		a, b := newPair(t, pairOptions{tap: func(l link.Link) link.Link {
			u.Link = l
			return u
		}})
		a.qp.post(write(a, b, 1, 0, 0, 8))
		a.qp.send.waitStatus(1, abi.WCSuccess)
		require.Zero(t, a.counter(t, "retransmit_timeouts"))
		require.Zero(t, a.counter(t, "retransmitted_pkts"))
		close(u.over)
	})
}

// TestPeerThatDoesNotRun: a near peer that has not taken what was sent is given
// four times the time of one that has, and nothing is sent again.
func TestPeerThatDoesNotRun(t *testing.T) {
	const patience = 8 * 67108864 * time.Nanosecond // Timeout 14, RetryCnt 7
	for name, c := range map[string]struct {
		sent, taken uint64
		after       time.Duration
		again       bool
	}{
		"taken":     {96, 96, patience, true},
		"not taken": {96, 88, 4 * patience, false},
		"no way":    {0, 0, patience, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				with := defaults()
				with.timeout, with.retry = 14, 7
				own, peer, way := besideSilent(t, with)
				way.sent.Store(c.sent)
				way.taken.Store(c.taken)
				own.qp.post(write(own, peer, 1, 0, 0, 8))
				start := time.Now()
				own.qp.send.waitStatus(1, abi.WCRetryExcErr)
				require.InDelta(t, c.after, time.Since(start), float64(67*time.Millisecond))
				require.Equal(t, c.again, own.counter(t, "retransmitted_pkts") > 0)
			})
		})
	}
}
