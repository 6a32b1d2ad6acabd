package drive

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/tests/linktest"
)

// pollUntilParked polls until the listener leaves the link to the program, in a
// bubble, where time stands still meanwhile.
func (d *device) pollUntilParked() {
	for d.own.owner() != away {
		for range 2 * spinning {
			d.Progress()
		}
		d.send(0)
		synctest.Wait()
	}
}

// While a program polls, the listener is parked. It comes back when the program
// polls no more, and at once when it arms a queue.
func TestPollingParksTheListener(t *testing.T) {
	bubble(t, nil, func(t *testing.T, d *device, _ *waiter) {
		d.pollUntilParked()
		wakeups := d.Wakeups()
		for range 500 {
			d.send(0)
			require.True(t, d.Progress())
			d.Progress() // acknowledges
		}
		synctest.Wait()
		require.Equal(t, wakeups, d.Wakeups())

		time.Sleep(10 * PollPause)
		synctest.Wait()
		require.Equal(t, listening, d.own.owner())
		for d.take(0) {
		}
		d.send(0)
		synctest.Wait()
		require.True(t, d.take(0), "the listener is back")

		d.pollUntilParked()
		require.NoError(t, d.arm(0))
		synctest.Wait()
		require.Equal(t, listening, d.own.owner())
	})
}

// Where time stands still, in a bubble, the cost of a yield cannot be seen:
// there the program yields to no other processes, which may take milliseconds
// each time. Elsewhere it does.
func TestPollingInABubbleYieldsInTheProcess(t *testing.T) {
	pollFor := func(d *device) {
		for range 10 * yieldEvery {
			d.Progress()
		}
	}
	if runtime.GOMAXPROCS(0) > 1 {
		pair := linktest.Sim(t)
		d := newDevice(t, pair[0], pair[1], 1)
		pollFor(d)
		require.False(t, d.contention.still.Load())
	}
	if runtime.GOOS != "linux" {
		return // there it is the same call
	}
	bubble(t, nil, func(t *testing.T, d *device, _ *waiter) {
		pollFor(d)
		require.True(t, d.contention.still.Load())
	})
}

// A program that polls in vain on the in-memory network lets the other
// goroutines go on where there is one processor: its peer is one of them.
func TestPollingGivesWayToThePeer(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	pair := linktest.Sim(t)
	d := newDevice(t, pair[0], pair[1], 1)
	var ran atomic.Bool
	go ran.Store(true)
	polls := 0
	for ; !ran.Load() && polls < goschedEvery/2; polls++ {
		d.Progress()
	}
	require.True(t, ran.Load())
	// One in 61 times Go's scheduler takes the goroutine that has just yielded.
	require.LessOrEqual(t, polls, 4*yieldEvery)
}

// A thread that stays receives until it is done.
func TestStay(t *testing.T) {
	bubble(t, nil, func(t *testing.T, d *device, _ *waiter) {
		looks := 0
		d.Stay(func() bool { looks++; return looks == 3*yieldEvery })
		require.Equal(t, 3*yieldEvery, looks)

		d.send(0)
		d.Stay(func() bool { return d.take(0) })
	})
}

// dozingLink counts dozes.
type dozingLink struct {
	link.Link
	dozes atomic.Int32
}

func (l *dozingLink) Sleep(d time.Duration, waits bool) error {
	if !waits {
		l.dozes.Add(1)
		return nil
	}
	return l.Link.Sleep(d, waits)
}

// A program that waits looks once when it has armed its queue, and never dozes
// there: other programs' looks in vain are none of its own. One that polls
// does, where other threads want the processor.
func TestWaitingProgramsDoNotDoze(t *testing.T) {
	pair := linktest.UDP(t, "127.0.0.1")
	l := &dozingLink{Link: pair[0]}
	d := newDevice(t, l, pair[1], 1)
	poll := func() {
		d.contention.left.Store(contendedMost)
		d.Progress()
	}
	for range 10 * yieldEvery {
		require.NoError(t, d.arm(0))
		poll()
	}
	require.Zero(t, l.dozes.Load())
	require.Eventually(t, func() bool {
		poll()
		return l.dozes.Load() > 0
	}, patience, time.Nanosecond)
}
