package rnic

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/drive"
)

// waiter is a program that waits as kshim/verbs does: it looks at its queue,
// leads, and else arms and waits for the event.
type waiter struct {
	d     *testDevice
	cq    *testCQ
	wakes atomic.Uint32
	led   int // how often it led
}

func (w *waiter) wait(ctx context.Context) error {
	for {
		news, seen := w.d.News(), w.wakes.Load()
		if w.cq.take() {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if w.d.Lead(ctx, news, &w.wakes, seen) {
			w.led++
			continue
		}
		if err := w.cq.cq.Arm(false); err != nil {
			return err
		}
		if w.cq.take() {
			return nil
		}
		select {
		case <-w.cq.wake:
		case <-ctx.Done():
		}
	}
}

// writes are n WRITEs, one after the other.
func (w *waiter) writes(t testing.TB, b *testDevice, n int) {
	wr := write(w.d, b, 1, 0, 0, 64)
	for range n {
		w.d.qp.postRaw(wr)
		require.NoError(t, w.wait(t.Context()))
	}
}

// A program that waits again and again is woken by the packet: neither the
// listener nor the worker runs for it. When it stops, the device goes on
// without it.
func TestWaitingWakesNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newPair(t, pairOptions{})
		w := &waiter{d: a, cq: a.qp.send}
		w.writes(t, b, 100)
		events, _ := a.qp.send.counts()
		listener, worker, led := a.drive.Wakeups(), a.worked.Load(), w.led
		w.writes(t, b, 500)
		require.Equal(t, listener, a.drive.Wakeups())
		require.Equal(t, worker, a.worked.Load())
		require.GreaterOrEqual(t, w.led-led, 500)
		after, _ := a.qp.send.counts()
		require.Equal(t, events, after, "an event would wake another goroutine too")

		// It does something else now, and its peer writes.
		b.qp.post(write(b, a, 9, 0, 0, 64<<10))
		start := time.Now()
		b.qp.send.waitStatus(9, abi.WCSuccess)
		require.LessOrEqual(t, time.Since(start), 2*drive.PollPause, "virtual time")
	})
}
