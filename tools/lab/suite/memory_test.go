package suite

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A queue pair takes something, and no more for having company.
func TestQueuePairMemory(t *testing.T) {
	few, err := queuePairMemory(t.Context(), 200)
	require.NoError(t, err)
	many, err := queuePairMemory(t.Context(), 800)
	require.NoError(t, err)
	require.Greater(t, min(few, many), 500.)
	require.Less(t, many, 1.5*few) // of few, what the devices took for a burst counts more
	t.Logf("%.0f bytes of one of 200, %.0f of 800", few, many)
}
