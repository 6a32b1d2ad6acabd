package rnic

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// troubled is a link that can break, or bring rubbish without end.
type troubled struct {
	link.Link
	broken, flooded atomic.Bool
}

var errCut = errors.New("cable cut")

func (l *troubled) Recv(batch []link.Packet) (int, error) {
	if l.broken.Load() {
		return 0, errCut
	}
	n, err := l.Link.Recv(batch)
	if n == 0 && err == nil && l.flooded.Load() {
		batch[0], n = link.Packet{Head: []byte{1}}, 1
	}
	return n, err
}

// set lets a Wait that blocks return, so that the change is seen.
func (l *troubled) set(what *atomic.Bool, to bool) {
	what.Store(to)
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
		l.set(&l.broken, true)
		var wc ring.WC
		for ok := false; !ok; wc, ok = a.qp.recv.poll() {
			require.NoError(t, t.Context().Err())
			for range 2 * spinning {
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
		time.Sleep(10 * pollPause) // of the bubble's clock: the listener is back
		a.qp.postRecv(5)
		require.NoError(t, a.qp.recv.cq.Arm(false))
		l.set(&l.broken, true)
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

// A program that wants to lead waits for the listener to leave the link,
// which it does not while packets come. Every condition that ends a Lead
// ends that wait too.
func TestLeadBehindABusyListener(t *testing.T) {
	for name, end := range map[string]func(a *testDevice, w *waiter, cancel func()){
		"its context": func(_ *testDevice, _ *waiter, cancel func()) { cancel() },
		"a wake":      func(a *testDevice, w *waiter, _ func()) { w.wakes.Add(1); a.Rouse() },
		"a completion": func(a *testDevice, _ *waiter, _ func()) {
			a.qp.post(&ring.SendWR{ID: 3, Opcode: abi.WRRDMAWrite, Flags: abi.SendSignaled, SGE: []ring.SGE{{Addr: 1, Length: 8, LKey: 1}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, _, l := troubledPair(t)
			l.set(&l.flooded, true)
			defer l.set(&l.flooded, false) // else Close would wait
			require.Eventually(t, func() bool { return a.counter(t, "drop_malformed") > 0 }, patience, time.Millisecond)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			w := &waiter{d: a, cq: a.qp.send}
			ended := make(chan bool, 1)
			go func() {
				a.waiters.last.Store(int64(a.now()) + int64(time.Hour))
				a.waiters.rival.Store(0)
				ended <- a.Lead(ctx, a.News(), &w.wakes, 0)
			}()
			require.Eventually(t, func() bool { return a.own.owner() == claimed }, patience, time.Millisecond)
			end(a, w, cancel)
			select {
			case did := <-ended:
				require.True(t, did)
			case <-time.After(patience):
				require.FailNow(t, "it waits for the listener")
			}
		})
	}
}

// Two programs wait in turn. One finds nothing, and a completion comes for it;
// the other leads and has it, before the first one does.
func TestLeadHandsOverNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newPair(t, pairOptions{})
		w := &waiter{d: a, cq: a.qp.send}
		w.writes(t, b, 100)
		var news [2]uint32
		for i := range news {
			news[i] = a.News()
			require.False(t, w.cq.take())
		}
		a.qp.post(write(a, b, 1, 0, 0, 8))
		require.True(t, a.Lead(t.Context(), news[1], &w.wakes, 0))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		require.True(t, a.Lead(ctx, news[0], &w.wakes, 0))
		require.Less(t, time.Since(start), prompt)
		a.Close()
		b.Close()
	})
}

// holding is a link whose batches take room of a peer until the next Recv.
type holding struct {
	link.Link
	holds, slept atomic.Bool // slept: a Wait while it held
}

func (l *holding) Recv(batch []link.Packet) (int, error) {
	n, err := l.Link.Recv(batch)
	l.holds.Store(n > 0)
	return n, err
}

func (l *holding) Wait() error {
	if l.holds.Load() {
		l.slept.Store(true)
	}
	return l.Link.Wait()
}

func (l *holding) Holds() bool               { return l.holds.Load() }
func (*holding) Meet(netip.AddrPort) uint64  { return 0 }
func (*holding) Lease([]byte) *wire.Lease    { return nil }
func (*holding) Recall(*wire.Lease)          {}
func (*holding) Reaches(uint64) bool         { return false }
func (*holding) Hears(uint64) bool           { return false }
func (*holding) SetGone(func(device uint64)) {}

// A leader that does not spin, because others want the processor, does not
// sleep on the room that it holds of a near peer: the peer could not send.
func TestLeaderHoldsNothingAsleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l *holding
		a, b := newPair(t, pairOptions{tap: func(inner link.Link) link.Link {
			l = &holding{Link: inner}
			return l
		}})
		w := &waiter{d: a, cq: a.qp.send}
		for range 100 {
			a.contention.left.Store(1 << 20)
			w.writes(t, b, 1)
		}
		require.Greater(t, w.led, 10)
		require.False(t, l.slept.Load())
		a.Close()
		b.Close()
	})
}
