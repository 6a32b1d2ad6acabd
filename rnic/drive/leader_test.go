package drive

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/tests/linktest"
)

// bubble is a device on an in-memory network in a bubble of virtual time, and a
// program that waits and has led.
func bubble(t *testing.T, tap func(link.Link) link.Link, test func(t *testing.T, d *device, w *waiter)) {
	synctest.Test(t, func(t *testing.T) {
		pair := linktest.Sim(t)
		if tap != nil {
			pair[0] = tap(pair[0])
		}
		d := newDevice(t, pair[0], pair[1], 2)
		w := &waiter{d: d}
		w.messages(t, 100)
		for d.own.owner() != away { // the listener may have had them all
			w.messages(t, 1)
			synctest.Wait()
		}
		test(t, d, w)
		d.close()
	})
}

// A program that waits again and again is woken by the packet: the listener
// does not run for it. While it waits for long, nothing runs.
func TestLeaderWakesNobody(t *testing.T) {
	bubble(t, nil, func(t *testing.T, d *device, w *waiter) {
		wakeups, led := d.Wakeups(), w.led
		w.messages(t, 500)
		require.Equal(t, wakeups, d.Wakeups())
		require.GreaterOrEqual(t, w.led-led, 500)

		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		var hour atomic.Uint64
		time.AfterFunc(time.Hour, func() { hour.Store(d.Wakeups()) })
		require.ErrorIs(t, w.wait(ctx), context.DeadlineExceeded)
		require.Equal(t, hour.Load(), d.Wakeups())
	})
}

// Events besides packets that end a Lead.
func TestLeadEnds(t *testing.T) {
	for name, links := range kinds {
		leading := func(t *testing.T, ctx context.Context) (d *device, w *waiter, ended chan bool) {
			pair := links(t)
			d = newDevice(t, pair[0], pair[1], 2)
			w = &waiter{d: d}
			for w.led < 16 {
				w.messages(t, 10)
			}
			news := d.News() // all was taken
			ended = make(chan bool)
			go func() {
				did := false
				// A moment may pass between the messages and this on a busy
				// machine.
				for !did && ctx.Err() == nil && w.wakes.Load() == 0 && !d.down.Load() {
					d.waiters.last.Store(int64(d.now()))
					d.waiters.rival.Store(0)
					did = d.Lead(ctx, news, &w.wakes, 0)
				}
				ended <- did
			}()
			require.Eventually(t, func() bool { return d.own.owner() == waiting }, patience, time.Millisecond)
			return d, w, ended
		}
		t.Run(name+"/its context", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			_, _, ended := leading(t, ctx)
			cancel()
			require.True(t, <-ended)
		})
		t.Run(name+"/a wake", func(t *testing.T) {
			d, w, ended := leading(t, t.Context())
			w.wakes.Add(1)
			d.Rouse()
			require.True(t, <-ended)
		})
		t.Run(name+"/a completion of another program's", func(t *testing.T) {
			d, _, ended := leading(t, t.Context())
			d.complete(1)
			require.True(t, <-ended)
		})
		t.Run(name+"/the end of the device", func(t *testing.T) {
			d, _, ended := leading(t, t.Context())
			d.close()
			require.False(t, <-ended)
		})
		t.Run(name+"/a rival", func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			d, w, ended := leading(t, ctx)
			require.False(t, d.Lead(t.Context(), d.News(), &w.wakes, 0))
			cancel() // it tries again until then
			<-ended
		})
	}
}

// Many programs wait on one device, each for its own completions: the leader
// and the programs that wait for events all get on.
func TestManyWaiters(t *testing.T) {
	for name, links := range kinds {
		t.Run(name, func(t *testing.T) {
			pair := links(t)
			d := newDevice(t, pair[0], pair[1], 4)
			var all sync.WaitGroup
			for i := range d.queues {
				all.Go(func() {
					w := &waiter{d: d, n: i}
					w.messages(t, 500*(i+1)) // the last is alone in the end
				})
			}
			all.Wait()
		})
	}
}

// A program that arms its queue after a pause has the listener: a packet is not
// left until the listener stops expecting the program to lead.
func TestLateWaitHasTheListener(t *testing.T) {
	bubble(t, nil, func(t *testing.T, d *device, w *waiter) {
		time.Sleep(prompt + PollPause/4)
		at, led := time.Now(), w.led
		w.messages(t, 1)
		require.Equal(t, led, w.led, "it was late")
		require.Less(t, time.Since(at), PollPause/4)
	})
}

// A listener that is summoned takes packets at once where it would wait for a
// leader to return, also when the summon comes while a program leads.
func TestSummon(t *testing.T) {
	for name, summon := range map[string]func(t *testing.T, d *device, w *waiter){
		"while away": func(_ *testing.T, d *device, _ *waiter) { d.Summon() },
		"while leading": func(t *testing.T, d *device, w *waiter) {
			time.AfterFunc(PollPause/4, func() { d.Summon(); d.send(0) })
			led := w.led
			require.NoError(t, w.wait(t.Context()))
			require.Greater(t, w.led, led)
		},
		"never": nil,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, d *device, w *waiter) {
				require.Equal(t, away, d.own.owner())
				if summon != nil {
					summon(t, d, w)
				}
				d.send(0)
				synctest.Wait()
				require.Equal(t, summon != nil, d.take(0))
			})
		})
	}
}

// A program that leads lets the Go scheduler in, more often than the runtime
// preempts a goroutine.
func TestLeaderCedes(t *testing.T) {
	bubble(t, nil, func(t *testing.T, d *device, w *waiter) {
		led, seen, began := w.led, map[int64]bool{}, d.now()
		for range 200 {
			time.AfterFunc(100*time.Microsecond, func() { d.send(0) })
			require.NoError(t, w.wait(t.Context()))
			seen[d.waiters.ceded.Load()] = true
		}
		require.GreaterOrEqual(t, w.led-led, 200)
		require.GreaterOrEqual(t, len(seen), int((d.now()-began)/(2*cedeEvery)))
		require.Greater(t, d.now()-began, 3*cedeEvery)
	})
}

// Of two goroutines on one processor, the one that waits for completions lets
// the other run each time that it has woken it, also when that yields once.
func TestLeaderLetsOthersRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	bubble(t, nil, func(t *testing.T, d *device, _ *waiter) {
		d.cede()
		for range 3 * crowdFew {
			d.cede() // no other is ready
		}
		for _, runs := range []func(*atomic.Bool){
			func(ran *atomic.Bool) { ran.Store(true) },
			func(ran *atomic.Bool) { runtime.Gosched(); ran.Store(true) },
		} {
			late := 0
			for range 100 {
				var ran atomic.Bool
				go runs(&ran)
				for !ran.Load() {
					d.cede()
					late++
				}
			}
			require.Less(t, late, 100+2*crowdEvery)
		}
	})
}

// A goroutine that waits for a connection and not for a completion runs as soon
// as the program that drives the device has woken it, on one processor.
func TestWokenGoroutineRuns(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for name, drive := range map[string]func(t *testing.T, d *device, w *waiter){
		"a program polls": func(_ *testing.T, d *device, w *waiter) {
			for !d.take(w.n) {
				d.Progress()
			}
		},
		"a program leads": func(t *testing.T, d *device, w *waiter) {
			d.waiters.crowd.alone = crowdFew // it seldom looks for others
			require.NoError(t, w.wait(t.Context()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, d *device, w *waiter) {
				const rounds = 100
				late := 0
				for range rounds {
					var ran atomic.Bool
					d.another = func() {
						go ran.Store(true)
						d.next = func() {
							if !ran.Load() {
								late++
							}
							d.send(w.n)
						}
					}
					d.send(len(d.queues))
					drive(t, d, w)
				}
				// One in 61 times Go's scheduler takes the goroutine that has
				// just yielded.
				require.Less(t, late, rounds/10)
			})
		})
	}
}

// flooded is a link that can bring rubbish without end.
type flooded struct {
	link.Link
	on atomic.Bool
}

func (l *flooded) Recv(batch []link.Packet) (int, error) {
	n, err := l.Link.Recv(batch)
	if n == 0 && err == nil && l.on.Load() {
		batch[0], n = link.Packet{Head: []byte{1}}, 1
	}
	return n, err
}

// A program that wants to lead waits for the listener to leave the link, which
// it does not while packets come. Every condition that ends a Lead ends that
// wait too.
func TestLeadBehindABusyListener(t *testing.T) {
	for name, end := range map[string]func(d *device, w *waiter, cancel func()){
		"its context":  func(_ *device, _ *waiter, cancel func()) { cancel() },
		"a wake":       func(d *device, w *waiter, _ func()) { w.wakes.Add(1); d.Rouse() },
		"a completion": func(d *device, _ *waiter, _ func()) { d.complete(0) },
	} {
		t.Run(name, func(t *testing.T) {
			pair := linktest.Sim(t)
			l := &flooded{Link: pair[0]}
			l.on.Store(true)
			defer l.on.Store(false) // else the listener would not end
			d := newDevice(t, l, pair[1], 1)
			d.send(0) // wakes the listener
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			w := &waiter{d: d}
			require.Eventually(t, func() bool { return d.take(0) }, patience, time.Millisecond)
			ended := make(chan bool, 1)
			go func() {
				d.waiters.last.Store(int64(d.now()) + int64(time.Hour))
				ended <- d.Lead(ctx, d.News(), &w.wakes, 0)
			}()
			require.Eventually(t, func() bool { return d.own.owner() == claimed }, patience, time.Millisecond)
			end(d, w, cancel)
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
	bubble(t, nil, func(t *testing.T, d *device, w *waiter) {
		news := d.News()
		d.send(0)
		require.True(t, d.Lead(t.Context(), news, &w.wakes, 0))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		require.True(t, d.Lead(ctx, news, &w.wakes, 0))
		require.Less(t, time.Since(start), prompt)
	})
}

// holding is a link that notes a Wait while its device held a batch.
type holding struct {
	link.Link
	d     *device
	slept atomic.Bool
}

func (l *holding) Wait() error {
	if l.d != nil && l.d.holds.Load() {
		l.slept.Store(true)
	}
	return l.Link.Wait()
}

func (l *holding) Sleep(time.Duration, bool) error { return l.Wait() }

// A leader that does not spin, because others want the processor, does not
// sleep on the room that it holds of a near peer: the peer could not send.
func TestLeaderHoldsNothingAsleep(t *testing.T) {
	var l *holding
	bubble(t, func(inner link.Link) link.Link { l = &holding{Link: inner}; return l }, func(t *testing.T, d *device, w *waiter) {
		w.messages(t, 1)
		l.d = d
		led := w.led
		for range 100 {
			d.contention.left.Store(1 << 20)
			w.messages(t, 1)
		}
		require.Greater(t, w.led-led, 10)
		require.False(t, l.slept.Load())
	})
}
