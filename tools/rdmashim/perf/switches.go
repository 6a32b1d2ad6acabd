package perf

import (
	"math"
	"runtime/metrics"
)

// latencies is the runtime's histogram of how long goroutines that could run
// waited for it.
const latencies = "/sched/latencies:seconds"

// sampled is how many of a goroutine's stops the runtime takes one time for.
const sampled = 8

// instant is the longest time, in seconds, that is no wait: the runtime also
// enters what went on at once after a system call, with no time at all.
const instant = 1e-9

// switches is about how often goroutines have been given a processor after they
// waited. The runtime samples, so that only large differences mean something.
func switches() float64 {
	s := []metrics.Sample{{Name: latencies}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindFloat64Histogram {
		return math.NaN() // a Go that does not know it
	}
	h, n := s[0].Value.Float64Histogram(), uint64(0)
	for i, count := range h.Counts {
		if h.Buckets[i] > instant {
			n += count
		}
	}
	return float64(n) * sampled
}
