package soak

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
)

// TestSeedReplaysExactly: a seed is a run, on a busy machine as on a quiet one:
// the trace, a digest of every packet with its time and of every completion, is
// the same.
func TestSeedReplaysExactly(t *testing.T) {
	amount.Unraced(t)
	t.Parallel()
	const n = 60
	first := make(map[uint64]Report)
	for seed := uint64(1); seed <= n; seed++ {
		first[seed] = Run(seed, nil)
	}
	distinct := make(map[uint64]bool)
	for seed := uint64(n); seed >= 1; seed-- {
		again := Run(seed, func(string) {}) // looking on changes nothing
		require.Equal(t, first[seed], again, "seed %d", seed)
		distinct[uint64(again.Trace)] = true
	}
	require.Len(t, distinct, n)
}
