package vm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAccount: time in which a thread waited for a processor is not taken off.
func TestAccount(t *testing.T) {
	const s = time.Second
	type waits = map[string]time.Duration
	start := time.Now()
	a := account{left: 10 * s, at: start, waits: waits{"cpu0": 5 * s, "cpu1": 0}}
	for i, c := range []struct {
		passed         time.Duration
		waits          waits
		left, withheld time.Duration
	}{
		{1 * s, waits{"cpu0": 5 * s, "cpu1": 0}, 9 * s, 0},                   // it ran, or slept
		{3 * s, waits{"cpu0": 7 * s, "cpu1": 1 * s}, 8 * s, 2 * s},           // the longest counts
		{1 * s, waits{"cpu0": 9 * s, "cpu1": 1 * s}, 8 * s, 3 * s},           // more than passed: late readings
		{1 * s, waits{"cpu0": 9 * s, "other": s / 2}, 15 * s / 2, 7 * s / 2}, // threads come and go
		{1 * s, nil, 13 * s / 2, 7 * s / 2},                                  // the system tells nothing
		{7 * s, waits{"cpu0": 0}, -s / 2, 7 * s / 2},
	} {
		start = start.Add(c.passed)
		a.pass(start, c.waits)
		require.Equal(t, []time.Duration{c.left, c.withheld}, []time.Duration{a.left, a.withheld}, "step %d", i)
	}
}
