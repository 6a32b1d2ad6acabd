package perf

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/uapi"
)

// A run with a duration ends in time whatever the path and the peer do, and its
// result says what was done.
func TestDurationEndsAnyway(t *testing.T) {
	const d = time.Second
	for name, c := range map[string]struct {
		device     string
		config     Config
		iterations int // at least
		unfinished int
		unchecked  bool
		longest    time.Duration // of the run; 0: Longest
		fails      uapi.Status
	}{
		"long path":       {device: "delay=100ms", config: Config{Op: Write, Sizes: []int{1 << 16}, Depth: 64, Warmup: 128}, iterations: 20},
		"long path, READ": {device: "delay=100ms", config: Config{Op: Read, Sizes: []int{1 << 16}, Depth: 64, Warmup: 128}, iterations: 20},
		"turns on a long path": {device: "delay=400ms", config: Config{Op: Read, Latency: true, Sizes: []int{8}, Depth: 1, Warmup: 1000},
			iterations: 2, unchecked: true, longest: warmest + d + 2*800*time.Millisecond},
		"more than the path carries": {device: "delay=100ms", config: Config{Op: Write, Sizes: []int{1 << 20}, Depth: 256, Warmup: 64},
			iterations: 10, unfinished: 20, unchecked: true},
		// The server posts no receives: RNR NAKs for ever.
		"a peer that does not take it": {config: Config{Op: Send, Sizes: []int{64}, Depth: 4, Warmup: 2}, iterations: 6, unfinished: 4, unchecked: true},
		"a path that swallows everything": {device: "loss=100%", config: Config{Op: Write, Sizes: []int{64}, Depth: 4},
			longest: 2 * time.Second, fails: uapi.WCRetryExcErr},
		"a path that swallows turns": {device: "loss=100%", config: Config{Op: Send, Latency: true, Sizes: []int{64}, Depth: 4, Warmup: 1},
			longest: 2 * time.Second, fails: uapi.WCRetryExcErr},
	} {
		t.Run(name, func(t *testing.T) {
			if c.fails == uapi.WCSuccess && c.config.Op == Send {
				amount.Unraced(t) // as the others, with very many packets
			}
			synctest.Test(t, func(t *testing.T) {
				c.config.Duration, c.config.Events = d, true // a program that polls lets no time pass
				c.config.QPs, c.config.List, c.config.Moderation = 1, 1, 1
				client, server := pair(t, c.device, c.config)
				require.NoError(t, client.Prepare(c.config.Sizes[0]))
				require.NoError(t, server.Prepare(c.config.Sizes[0]))
				began := time.Now()
				var r Result
				var err error
				if c.config.Latency {
					r, err = client.Latency(context.Background())
				} else {
					r, err = client.Bandwidth(context.Background())
				}
				if c.longest == 0 {
					c.longest = longestRun(d)
				}
				require.LessOrEqual(t, time.Since(began), c.longest)
				if c.fails != uapi.WCSuccess {
					require.ErrorContains(t, err, c.fails.String())
					require.Zero(t, r.Iterations)
					require.Positive(t, r.Seconds)
					return
				}
				require.NoError(t, err)
				require.GreaterOrEqual(t, r.Iterations, c.iterations)
				require.GreaterOrEqual(t, r.Unfinished, c.unfinished)
				require.Equal(t, c.unfinished > 0, r.Unfinished > 0)
				require.Equal(t, c.unchecked, r.Unchecked)
				require.InDelta(t, time.Since(began).Seconds(), r.Seconds, (warmest + patience).Seconds())
			})
		})
	}
}
