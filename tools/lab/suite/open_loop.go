package suite

import (
	"cmp"
	"context"
	"io"
	"math/rand/v2"
	"sync"
	"time"
)

// Open loop: messages leave at times that do not depend on the answers, as
// those of many clients do, so that a wait becomes a queue. A latency begins
// when the message was due.

// inFlight is how many messages are under way, or clients at work, where the
// highest rate is looked for.
const inFlight = 16

// load returns how many messages a second are offered.
type load func(context.Context) (float64, error)

// share is a part of the rate that a measurement came to, so that ours and the
// reference are offered the same.
func share(of measurement, part float64) load {
	return func(ctx context.Context) (float64, error) {
		f, err := of(ctx)
		return f.rate * part, err
	}
}

// arrivals returns the times at which n messages are due, each independent of
// the others, as many a second on average.
func arrivals(n int, rate float64) []time.Duration {
	random := rand.New(rand.NewPCG(7, uint64(n)))
	due, at := make([]time.Duration, n), 0.
	for i := range due {
		at += random.ExpFloat64() / rate
		due[i] = time.Duration(at * float64(time.Second))
	}
	return due
}

// schedule is when messages leave, from its beginning on.
type schedule struct {
	*alarm
	began time.Time
	due   []time.Duration
}

func newSchedule(n int, rate float64) (*schedule, error) {
	clock, err := newAlarm()
	if err != nil {
		return nil, err
	}
	due := arrivals(n, rate)
	return &schedule{clock, time.Now(), due}, nil
}

// wait returns when message i is due; since is how many µs ago that was.
func (s *schedule) wait(i int)          { s.sleepUntil(s.began.Add(s.due[i])) }
func (s *schedule) since(i int) float64 { return float64(time.Since(s.began)-s.due[i]) / 1e3 }

// crowding sends messages of size bytes there and back, inFlight at a time.
func crowding(size int) work {
	return work{1, func(ctx context.Context, c *carrier) (func(int, *figures) error, error) {
		s, err := c.keep(ctx)
		return func(n int, f *figures) error {
			return f.both(s, n, func() error {
				seats := make(chan struct{}, inFlight)
				return echo(s, n, size, func(int) { seats <- struct{}{} }, func(int) { <-seats })
			})
		}, err
	}}
}

// offering sends messages of size bytes there and back under a load.
func offering(size int, l load) work {
	return work{1, func(ctx context.Context, c *carrier) (func(int, *figures) error, error) {
		rate, err := l(ctx)
		if err != nil {
			return nil, err
		}
		s, err := c.keep(ctx)
		return func(n int, f *figures) error {
			return f.both(s, n, func() error {
				plan, err := newSchedule(n, rate)
				if err != nil {
					return err
				}
				defer plan.close()
				f.times = make([]float64, n)
				return echo(s, n, size, plan.wait, func(i int) { f.times[i] = plan.since(i) })
			})
		}, err
	}}
}

// echo sends n messages of size bytes, each when leave returns, and reads their
// echoes at the same time. back is called behind each.
func echo(s stream, n, size int, leave, back func(i int)) error {
	sent := make(chan error, 1)
	go func() {
		o := order{n: uint64(n), size: uint32(size), echo: true}
		_, err := s.Write(o.head())
		message := make([]byte, size)
		for i := 0; i < n && err == nil; i++ {
			leave(i)
			_, err = s.Write(message)
		}
		sent <- err
	}()
	message := make([]byte, max(size, answerSize))
	var err error
	for i := 0; i < n && err == nil; i++ {
		_, err = io.ReadFull(s, message[:size])
		back(i)
	}
	if err == nil {
		_, err = io.ReadFull(s, message[:answerSize])
	}
	if err != nil {
		s.Close() // the sender may be in Write
	}
	return cmp.Or(err, <-sent)
}

// requestingAt makes HTTP requests under a load, by so many clients; one that
// is due while all wait is late.
func requestingAt(clients int, l load) work {
	return work{1, func(ctx context.Context, c *carrier) (func(int, *figures) error, error) {
		rate, err := l(ctx)
		if err != nil {
			return nil, err
		}
		get := requests(ctx, c, clients)
		return func(n int, f *figures) error {
			return f.around(get, n, func() error {
				plan, err := newSchedule(n, rate)
				if err != nil {
					return err
				}
				defer plan.close()
				f.times = make([]float64, n)
				jobs := make(chan int, n)
				go func() {
					defer close(jobs)
					for i := range n {
						plan.wait(i)
						jobs <- i
					}
				}()
				var once sync.Once
				var failed error
				_ = together(clients, func(int) error {
					for i := range jobs {
						if _, err := get(); err != nil {
							once.Do(func() { failed = err })
						}
						f.times[i] = plan.since(i)
					}
					return nil
				})
				return failed
			})
		}, nil
	}}
}
