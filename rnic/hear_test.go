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
