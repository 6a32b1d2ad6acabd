package suite

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
)

// processTable lists the costs of programs with both ends in one process, as
// tests are, and of a process with nothing to do.
func (s *suite) processTable() []comparison {
	sim := func(name string, events bool) *series {
		return s.builtIn(name, func(ctx context.Context) (float64, error) { return simPingPong(ctx, events) })
	}
	idle := s.inProcess("idle queue pairs", func(ctx context.Context) (float64, error) { return idleCost(ctx, pairsWeighed) })
	return []comparison{
		{"SEND 64 B ping-pong on sim in one process, PollCQ loops", "µs", sim("PollCQ", false), sim("WaitCQ", true), 1, true},
		{"processor time of 10,000 queue pairs that are idle", "ms/s", idle, bound, 2, true},
	}
}

// simTurns is how many round trips a ping-pong on sim has: some are 20 ms long,
// two time slices, when a spinning goroutine keeps the processor.
const simTurns = 5000

// simPingPong returns the mean half of a round trip in µs between two
// goroutines, with devices on the in-memory network. They wait for events, or
// poll.
func simPingPong(ctx context.Context, events bool) (µs float64, err error) {
	devices, err := open("sim?net=suite", "sim?net=suite")
	defer closeAll(devices)
	if err != nil {
		return 0, err
	}
	s, err := join(ctx, devices, perf.Config{
		Op: perf.Send, Latency: true, Sizes: []int{64}, Iterations: simTurns, QPs: 1, Depth: 1, List: 1, Moderation: 1, Spread: 64, Events: events,
	})
	defer s.close()
	if err != nil {
		return 0, err
	}
	answering, stop := context.WithCancel(ctx)
	defer stop()
	answered := make(chan error, 1)
	go func() { answered <- s[1].Serve(answering) }()
	r, err := s[0].Latency(ctx)
	stop()
	return r.Seconds * 1e6 / 2 / simTurns, errors.Join(err, <-answered)
}

// idleFor is how long idle queue pairs are watched, in idleParts: the garbage
// collector's leavings take time in one or the other.
const idleFor, idleParts = time.Second, 4

// idleCost returns the processor time in ms a second that n connected pairs of
// idle queue pairs on two soft devices take, all of it this process's, in the
// calmest part of the time.
func idleCost(ctx context.Context, n int) (float64, error) {
	devices, err := open("soft?port=0", "soft?port=0")
	defer closeAll(devices)
	if err != nil {
		return 0, err
	}
	s, err := pairs(ctx, devices, n)
	defer s.close()
	if err != nil {
		return 0, err
	}
	_ = live() // no garbage is left to collect
	least := math.Inf(1)
	for range idleParts {
		before := perf.CPUTime()
		select {
		case <-time.After(idleFor / idleParts):
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
		least = min(least, float64(perf.CPUTime()-before)/float64(idleFor/idleParts)*1e3)
	}
	return least, nil
}
