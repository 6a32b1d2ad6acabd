package rnic

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/rnic/link"
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
		listener, worker, led := a.woken.listener.Load(), a.woken.worker.Load(), w.led
		w.writes(t, b, 500)
		require.Equal(t, listener, a.woken.listener.Load())
		require.Equal(t, worker, a.woken.worker.Load())
		require.GreaterOrEqual(t, w.led-led, 500)
		after, _ := a.qp.send.counts()
		require.Equal(t, events, after, "an event would wake another goroutine too")

		// It does something else now, and its peer writes.
		b.qp.post(write(b, a, 9, 0, 0, 64<<10))
		start := time.Now()
		b.qp.send.waitStatus(9, abi.WCSuccess)
		require.LessOrEqual(t, time.Since(start), 2*pollPause, "virtual time")

		// It waits for long, and neither of them does anything meanwhile.
		w.writes(t, b, 100)
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		var hour atomic.Uint64
		time.AfterFunc(time.Hour, func() { hour.Store(a.woken.listener.Load()) })
		require.ErrorIs(t, w.wait(ctx), context.DeadlineExceeded)
		require.Equal(t, hour.Load(), a.woken.listener.Load())
		a.Close()
		b.Close()
	})
}

// Events besides packets that end a Lead.
func TestLeadEnds(t *testing.T) {
	for name, links := range map[string]func(testing.TB) [2]link.Link{
		"sim": simLinks,
		"udp": func(t testing.TB) [2]link.Link { return udpLinks(t, "127.0.0.1") },
	} {
		leading := func(t *testing.T, ctx context.Context) (a *testDevice, w *waiter, ended chan bool) {
			a, b := connected(t, links(t), 1<<20, abi.MTU4096, qpOptions{})
			w = &waiter{d: a, cq: a.qp.send}
			for w.led < 16 {
				w.writes(t, b, 10)
			}
			news := a.News() // all was taken
			ended = make(chan bool)
			go func() {
				did := false
				// A moment may pass between the writes and this on a busy
				// machine.
				for !did && ctx.Err() == nil && w.wakes.Load() == 0 && !a.down.Load() {
					a.waiters.last.Store(int64(a.now()))
					a.waiters.rival.Store(0)
					did = a.Lead(ctx, news, &w.wakes, 0)
				}
				ended <- did
			}()
			require.Eventually(t, func() bool { return a.own.owner() == waiting }, patience, time.Millisecond)
			return a, w, ended
		}
		t.Run(name+"/its context", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			_, _, ended := leading(t, ctx)
			cancel()
			require.True(t, <-ended)
		})
		t.Run(name+"/a wake", func(t *testing.T) {
			a, w, ended := leading(t, t.Context())
			w.wakes.Add(1)
			a.Rouse()
			require.True(t, <-ended)
		})
		t.Run(name+"/a completion of somebody else's", func(t *testing.T) {
			a, _, ended := leading(t, t.Context())
			// It fails at once: its memory is none.
			a.qp.post(&ring.SendWR{ID: 3, Opcode: abi.WRRDMAWrite, Flags: abi.SendSignaled, SGE: []ring.SGE{{Addr: 1, Length: 8, LKey: 1}}})
			require.True(t, <-ended)
			wc, ok := a.qp.send.poll()
			require.True(t, ok)
			require.Equal(t, abi.WCLocProtErr, wc.Status)
		})
		t.Run(name+"/Close", func(t *testing.T) {
			a, _, ended := leading(t, t.Context())
			a.Close()
			require.False(t, <-ended)
		})
		t.Run(name+"/a rival", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			a, w, ended := leading(t, ctx)
			require.False(t, a.Lead(t.Context(), a.News(), &w.wakes, 0))
			cancel() // it tries again until then
			<-ended
		})
	}
}

// Many programs wait on one device, each for its own completions: the leader
// and the programs that wait for events all get on.
func TestManyWaiters(t *testing.T) {
	for name, links := range map[string][2]link.Link{"sim": simLinks(t), "udp": udpLinks(t, "127.0.0.1")} {
		t.Run(name, func(t *testing.T) {
			a, b := connected(t, links, 1<<20, abi.MTU4096, qpOptions{})
			at := defaults()
			at.timeout = 20
			var all sync.WaitGroup
			for i := range 4 {
				x, y := newQP(t, a.Device, a.pd, qpOptions{}), newQP(t, b.Device, b.pd, qpOptions{})
				x.connectTo(y, at)
				y.connectTo(x, at)
				all.Go(func() {
					w := &waiter{d: &testDevice{Device: a.Device, pd: a.pd, mem: a.mem, qp: x}, cq: x.send}
					w.writes(t, b, 500*(i+1)) // the last is alone in the end
				})
			}
			all.Wait()
		})
	}
}

// A program that arms its queue after a pause has the listener: a packet is not
// left until the listener stops expecting the program to lead.
func TestLateWaitHasTheListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newPair(t, pairOptions{})
		w := &waiter{d: a, cq: a.qp.send}
		w.writes(t, b, 100)
		time.Sleep(prompt + pollPause/4)
		at, led := time.Now(), w.led
		w.writes(t, b, 1)
		require.Equal(t, led, w.led, "it was late")
		require.Less(t, time.Since(at), pollPause/4)
		a.Close()
		b.Close()
	})
}

// A program that leads lets the Go scheduler in, more often than the runtime
// preempts a goroutine.
func TestLeaderCedes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newPair(t, pairOptions{faults: link.Faults{Delay: 100 * time.Microsecond}})
		w := &waiter{d: a, cq: a.qp.send}
		w.writes(t, b, 100)
		led, seen, began := w.led, map[int64]bool{}, a.now()
		for range 200 {
			w.writes(t, b, 1)
			seen[a.waiters.ceded.Load()] = true
		}
		require.GreaterOrEqual(t, w.led-led, 200)
		require.GreaterOrEqual(t, len(seen), int(time.Duration(a.now()-began)/(2*cedeEvery)))
		require.Greater(t, time.Duration(a.now()-began), 4*cedeEvery)
	})
}

// TestLeaderLetsOthersRun: of two goroutines on one processor, the one that
// waits for completions lets the other run each time that it has woken it.
func TestLeaderLetsOthersRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, func(t *testing.T) {
		a, b := newPair(t, pairOptions{faults: link.Faults{Delay: 100 * time.Microsecond}})
		w := &waiter{d: a, cq: a.qp.send}
		w.writes(t, b, 100)
		a.cede()
		for range 3 * crowdFew {
			a.cede() // nobody is ready
		}
		late := 0
		for range 100 {
			var ran atomic.Bool
			go ran.Store(true)
			for !ran.Load() {
				a.cede()
				late++
			}
		}
		require.Less(t, late, 100+2*crowdEvery)
	})
}
