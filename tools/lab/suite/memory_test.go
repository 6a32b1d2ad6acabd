package suite

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A queue pair takes some kilobytes: 7.4 KB, and what the devices made of 800
// at once, up to 7 MB, comes to 4.5 KB of each.
func TestQueuePairMemory(t *testing.T) {
	bytes, err := queuePairMemory(t.Context(), 800)
	require.NoError(t, err)
	require.Greater(t, bytes, 500.)
	require.Less(t, bytes, 16384.)
	t.Logf("%.0f bytes", bytes)
}
