package rnic

import (
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/rnic/drive"
	"github.com/rdmashim/rdmashim/rnic/link"
)

// troubled is a link that can break.
type troubled struct {
	link.Link
	broken atomic.Bool
}

var errCut = errors.New("cable cut")

func (l *troubled) Recv(batch []link.Packet) (int, error) {
	if l.broken.Load() {
		return 0, errCut
	}
	return l.Link.Recv(batch)
}

// cut lets a Wait that blocks return, so that the change is seen.
func (l *troubled) cut() {
	l.broken.Store(true)
	l.Interrupt()
}

// troubledPair is a pair whose first device's link is troubled.
func troubledPair(t testing.TB) (a, b *testDevice, l *troubled) {
	a, b = newPair(t, pairOptions{tap: func(inner link.Link) link.Link {
		l = &troubled{Link: inner}
		return l
	}})
	return a, b, l
}

// A link that breaks ends the work requests of a program that polls. The
// listener, which deals with it, is away because of that program.
func TestLinkLostWhilePolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, l := troubledPair(t)
		pollUntilParked(a, b)
		a.qp.postRecv(5)
		l.cut()
		var wc ring.WC
		for ok := false; !ok; wc, ok = a.qp.recv.poll() {
			require.NoError(t, t.Context().Err())
			for range 64 {
				a.Progress()
			}
			time.Sleep(10 * time.Microsecond) // the bubble's clock goes on
			require.Less(t, time.Since(a.start), time.Second, "virtual time")
		}
		require.Equal(t, abi.WCWRFlushErr, wc.Status)
		a.Close()
		b.Close()
	})
}

// A program that waits all the time does not wait in vain either: the listener,
// in whose place it wants to work, has gone.
func TestLinkLostWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, l := troubledPair(t)
		w := &waiter{d: a, cq: a.qp.send}
		w.writes(t, b, 100)
		time.Sleep(10 * drive.PollPause) // of the bubble's clock: the listener is back
		a.qp.postRecv(5)
		require.NoError(t, a.qp.recv.cq.Arm(false))
		l.cut()
		synctest.Wait()
		events, _ := a.qp.recv.counts()
		require.Equal(t, 1, events)
		err := w.wait(t.Context())
		require.ErrorIs(t, err, syscall.EIO)
		require.ErrorContains(t, err, errCut.Error())
		a.Close()
		b.Close()
	})
}
