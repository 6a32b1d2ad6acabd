package suite

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
)

// Both ways to take completions come to an end and take some time, and idle
// queue pairs little.
func TestInOneProcess(t *testing.T) {
	amount.Unraced(t)
	for _, events := range []bool{false, true} {
		v, err := simPingPong(t.Context(), events)
		require.NoError(t, err)
		require.Positive(t, v)
	}
	v, err := idleCost(t.Context(), 10)
	require.NoError(t, err)
	require.GreaterOrEqual(t, v, 0.)
}
