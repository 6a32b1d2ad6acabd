package drive

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/tests/linktest"
)

// The listener sends acknowledgements as soon as there are no more packets,
// before it spins: no program is about to answer.
func TestListenerAcknowledgesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pair := linktest.Sim(t)
		d := newDevice(t, pair[0], pair[1], 1)
		const n = 100
		for range n {
			d.send(0)
			synctest.Wait()
			require.False(t, d.owes.Load())
		}
		require.EqualValues(t, n, d.prompt.Load())
		d.close()
	})
}

// The listener spins behind a packet that has woken a goroutine of the
// program's, but not before that has run, on one processor.
func TestListenerSpinsBehindTheWoken(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, func(t *testing.T) {
		pair := linktest.Sim(t)
		d := newDevice(t, pair[0], pair[1], 1)
		const rounds = 100
		late, spins := 0, 0
		d.another = func() {
			go func() {
				if d.vain.Load() > 1 {
					late++
				}
			}()
		}
		synctest.Wait()
		for range rounds { // so soon one after the other that it spins
			d.send(len(d.queues))
			synctest.Wait()
			if d.vain.Load() > 2 {
				spins++
			}
		}
		// One in 61 times Go's scheduler takes the goroutine that has just
		// yielded.
		require.Less(t, late, rounds/10)
		require.GreaterOrEqual(t, spins, rounds-1)
		d.close()
	})
}

// Programs that poll for a moment each, as on a busy machine, let the listener
// stand back often: that allocates nothing.
func TestStandingBackAllocatesNothing(t *testing.T) {
	pair := linktest.Sim(t)
	d := &device{}
	d.Init(d, pair[0], make(chan struct{}))
	defer d.End()
	pause := time.NewTimer(PollPause)
	require.Zero(t, testing.AllocsPerRun(20, func() {
		d.polling.polls.Add(spinning)
		d.polling.at.Store(int64(d.now()))
		d.standBack(pause)
		d.Arm()
	}))
}

// A link that breaks is the listener's to deal with, also when it is parked
// because a program polls or leads. The program neither polls nor waits in
// vain.
func TestLinkBreaks(t *testing.T) {
	for name, drives := range map[string]func(t *testing.T, d *device, w *waiter){
		"no program": func(*testing.T, *device, *waiter) {},
		"a program polls": func(t *testing.T, d *device, _ *waiter) {
			for !d.down.Load() {
				for range 2 * spinning {
					d.Progress()
				}
				time.Sleep(10 * time.Microsecond) // the bubble's clock goes on
			}
		},
		"a program waits": func(t *testing.T, _ *device, w *waiter) {
			require.NoError(t, w.wait(t.Context()))
			require.ErrorIs(t, w.wait(t.Context()), errDown)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var l *linktest.Breakable
			bubble(t, func(inner link.Link) link.Link { l = &linktest.Breakable{Link: inner}; return l }, func(t *testing.T, d *device, w *waiter) {
				start := time.Now()
				l.Broken.Store(true)
				l.Interrupt() // a Wait that blocks returns, so that the change is seen
				drives(t, d, w)
				require.ErrorIs(t, <-d.failed, linktest.ErrCut)
				require.Less(t, time.Since(start), 10*PollPause)
			})
		})
	}
}
