package suite

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLimited: a measurement runs in a control group of its own, which is gone
// afterwards, or says why there is none.
func TestLimited(t *testing.T) {
	where := func(context.Context) (string, error) {
		text, err := os.ReadFile("/proc/self/cgroup")
		return string(text), err
	}
	before, err := where(t.Context())
	require.NoError(t, err)
	during, err := limited(where)(t.Context())
	var missing *notHere
	if errors.As(err, &missing) {
		require.Contains(t, missing.Error(), "it takes root and a writable /sys/fs/cgroup")
	} else {
		require.NoError(t, err)
		require.Contains(t, during, "rdmashim-bench-")
	}
	after, err := where(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, after)
}
