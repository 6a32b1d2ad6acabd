package drive

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/tests/linktest"
)

// attender is a program that waits as a C program does: it arms its queue and
// reads its completion channel.
type attender struct {
	d   *device
	n   int // of its queue
	saw int // events that an Attend has brought
}

// waits reports whether a read of the channel would wait.
func (p *attender) waits() bool {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	return len(p.d.queues[p.n].event) == 0
}

func (p *attender) wait(ctx context.Context) error {
	for !p.d.take(p.n) {
		if err := p.d.arm(p.n); err != nil {
			return err
		}
		if p.d.take(p.n) {
			return nil // an event of it may come
		}
		p.d.Attend(p.waits)
		if !p.waits() {
			p.saw++
		}
		select {
		case <-p.d.queues[p.n].event:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (p *attender) messages(t testing.TB, n int) {
	for range n {
		p.d.send(p.n)
		require.NoError(t, p.wait(t.Context()))
	}
}

// attending is a bubble with a program that attends.
func attending(t *testing.T, test func(t *testing.T, p *attender)) {
	bubble(t, nil, func(t *testing.T, d *device, _ *waiter) {
		p := &attender{d: d}
		for p.saw < 10 || d.own.owner() != away { // the listener may have had them all
			p.messages(t, 1)
			synctest.Wait()
		}
		test(t, p)
	})
}

// A program that reads its channel again and again is woken by the packet, as
// one that leads is: its arming brings no listener.
func TestAttendWakesNobody(t *testing.T) {
	attending(t, func(t *testing.T, p *attender) {
		wakeups, saw := p.d.Wakeups(), p.saw
		p.messages(t, 500)
		require.Equal(t, wakeups, p.d.Wakeups())
		require.Equal(t, 500, p.saw-saw)
	})
}

// A program that was expected to attend and polls its descriptor instead has
// its event after a moment, and from then on at once.
func TestAttendNoMore(t *testing.T) {
	attending(t, func(t *testing.T, p *attender) {
		for _, limit := range []time.Duration{PollPause, 0} {
			require.NoError(t, p.d.arm(0))
			at := time.Now()
			p.d.send(0)
			<-p.d.queues[0].event
			require.LessOrEqual(t, time.Since(at), limit)
			require.True(t, p.d.take(0))
			for p.d.own.owner() != away { // it polls for a while
				for range 2 * spinning {
					p.d.Progress()
				}
				p.d.send(0)
				synctest.Wait()
				p.d.Progress()
				require.True(t, p.d.take(0))
			}
		}
	})
}

// An Attend in vain ends by itself, and leaves the device to the listener.
func TestAttendInVain(t *testing.T) {
	for _, cores := range []int{1, 2} {
		pair := linktest.UDP(t, "127.0.0.1")
		d := newDevice(t, pair[0], pair[1], 2)
		d.cores = cores
		p := &attender{d: d}
		for p.saw < 16 {
			p.messages(t, 10)
		}
		require.NoError(t, d.arm(0))
		d.waiters.last.Store(int64(d.now()))
		d.Attend(p.waits)
		require.True(t, p.waits())
		require.False(t, d.attends())
		require.True(t, d.waiters.armed.Load(), "the listener need not wait for it")
		d.send(0)
		<-d.queues[0].event
		d.close()
	}
}

// Of programs that attend and lead at once all get on.
func TestManyAttend(t *testing.T) {
	for name, links := range kinds {
		t.Run(name, func(t *testing.T) {
			pair := links(t)
			d := newDevice(t, pair[0], pair[1], 4)
			var all sync.WaitGroup
			for i := range d.queues {
				all.Go(func() {
					if i%2 == 0 {
						(&attender{d: d, n: i}).messages(t, 500*(i+1))
					} else {
						(&waiter{d: d, n: i}).messages(t, 500*(i+1))
					}
				})
			}
			all.Wait()
		})
	}
}

// A program that attends hears of its event although another goroutine has
// received the packet.
func TestAttendHears(t *testing.T) {
	pair := linktest.UDP(t, "127.0.0.1")
	d := newDevice(t, pair[0], pair[1], 2)
	p := &attender{d: d}
	require.NoError(t, d.arm(0))
	ended := make(chan struct{})
	go func() {
		for p.waits() {
			d.waiters.last.Store(int64(d.now()))
			d.Attend(p.waits)
		}
		close(ended)
	}()
	require.Eventually(t, func() bool { return d.own.owner() == waiting }, patience, time.Microsecond)
	d.complete(0)
	<-ended
}

// naps is a link on which no thread can sleep.
type naps struct {
	link.Link
	n int
}

func (l *naps) Sleep(time.Duration, bool) error { l.n++; return nil }

// A leader whose thread has slept in vain waits in the netpoller; a program
// that attends goes.
func TestLeaderSleepsOnce(t *testing.T) {
	var l *naps
	bubble(t, func(inner link.Link) link.Link { l = &naps{Link: inner}; return l }, func(t *testing.T, d *device, w *waiter) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		before := l.n
		require.ErrorIs(t, w.wait(ctx), context.DeadlineExceeded)
		require.Equal(t, before+1, l.n)
		p := &attender{d: d}
		require.NoError(t, d.arm(0))
		d.waiters.last.Store(int64(d.now()))
		d.Attend(p.waits)
		require.True(t, p.waits())
		require.Equal(t, before+2, l.n)
	})
}
