package msgring_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
)

// TestSoft: both ends write over UDP on loopback, with and without faults.
func TestSoft(t *testing.T) {
	for _, faults := range []string{"", "?loss=5%&reorder=10%&dup=1%&corrupt=0.1%&seed=3"} {
		t.Run(faults, func(t *testing.T) {
			a, err := uapi.Open("soft"+faults, uapi.OpenConfig{})
			require.NoError(t, err)
			defer func() { require.NoError(t, a.Close()) }()
			b, err := uapi.Open("soft"+faults, uapi.OpenConfig{})
			require.NoError(t, err)
			defer func() { require.NoError(t, b.Close()) }()
			t.Run("stream", func(t *testing.T) {
				x, y := connect(t, a, b, msgring.Config{Ring: 64 << 10})
				bothWays(t, x, y, 9, 1_000_000)
			})
		})
	}
}
