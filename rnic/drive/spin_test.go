package drive

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/link"
)

// A receiver spins long while it pays: packets that came soon after spins in
// vain begin a trial, which lasts for as long as what it finds is worth the
// time. answer is how long a packet takes to come, which may depend on whether
// this side spins long, as the peer's patience does.
func TestTrial(t *testing.T) {
	const rounds = 1000
	always := func(d time.Duration) func(bool) time.Duration { return func(bool) time.Duration { return d } }
	for name, c := range map[string]struct {
		answer      func(long bool) time.Duration
		busy        bool
		most, least int // rounds of trials
	}{
		"at once":             {answer: always(10 * time.Microsecond)},
		"never soon":          {answer: always(300 * time.Microsecond)},
		"a slow peer":         {answer: always(80 * time.Microsecond), most: 5, least: 5}, // 1, 4, 16, 64 and 256 rounds between them
		"others want to work": {answer: always(80 * time.Microsecond), busy: true},
		"a peer that is slow to wake": {answer: func(long bool) time.Duration {
			if long {
				return 10 * time.Microsecond
			}
			return 80 * time.Microsecond
		}, most: rounds, least: rounds - 1},
	} {
		t.Run(name, func(t *testing.T) {
			var p trial
			var now, arrived time.Duration = 1, 0
			trials := 0
			for n := range rounds * trialSpins {
				began, window := now, p.window(arrived, !c.busy)
				if p.long && n%trialSpins == 0 {
					trials++
				}
				comes := c.answer(p.long)
				p.spun(began, min(comes, window), comes <= window)
				arrived = began + comes
				now = arrived + time.Microsecond
			}
			require.LessOrEqual(t, trials, c.most)
			require.GreaterOrEqual(t, trials, c.least)
		})
	}
}

// A trial that has paid, and does not any more, ends; the next one is not later
// for those in vain before it.
func TestTrialEnds(t *testing.T) {
	var p trial
	var now, arrived time.Duration = 1, 0
	awake := false // the peer, when this side spins long
	round := func() {
		for range trialSpins {
			window, comes := p.window(arrived, true), 80*time.Microsecond
			if awake && p.long {
				comes = 10 * time.Microsecond
			}
			p.spun(now, min(comes, window), comes <= window)
			arrived = now + comes
			now = arrived + 1
		}
	}
	next := func() (rounds int) {
		for p.long {
			round()
		}
		for ; !p.long; rounds++ {
			round()
		}
		return rounds
	}
	next()
	require.Equal(t, trialMore+1, next())
	awake = true
	require.Equal(t, trialMore*trialMore+1, next())
	for range 10 {
		round()
	}
	require.True(t, p.long)
	awake = false
	require.Equal(t, trialMore+1, next())
}

// yielding is a link on which a receiver gives its processor away.
type yielding struct {
	link.Link
	meanwhile func()
}

func (l *yielding) Sleep(time.Duration, bool) error {
	l.meanwhile()
	return nil
}

// A spin whose time is up when it has the processor back looks once more: its
// peer may have answered meanwhile.
func TestSpinLooksBehindItsYield(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time stands still but for the yield
		d, came, found := &Driver{start: time.Now()}, false, false
		d.link = &yielding{meanwhile: func() { d.start, came = d.start.Add(-spinLong), true }}
		d.brisk.Store(true)
		d.spin(func() bool {
			d.contention.left.Store(1) // so that it yields by its link
			found = came
			return found
		})
		require.True(t, found)
	})
}
