//go:build !race

package msgring_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
)

// TestNoAllocations: a message there and back, with the waiting at both ends,
// allocates nothing.
func TestNoAllocations(t *testing.T) {
	a, err := uapi.Open("soft")
	require.NoError(t, err)
	defer func() { require.NoError(t, a.Close()) }()
	b, err := uapi.Open("soft")
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	t.Run("ping-pong", func(t *testing.T) {
		x, y := connect(t, a, b, msgring.Config{})
		go func() { _, _ = io.Copy(struct{ io.Writer }{y}, struct{ io.Reader }{y}) }()
		buf := make([]byte, 64)
		var failed error
		n := testing.AllocsPerRun(2000, func() {
			if _, err := x.Write(buf); err != nil {
				failed = err
			}
			if _, err := io.ReadFull(x, buf); err != nil {
				failed = err
			}
		})
		require.NoError(t, failed)
		require.Zero(t, n)
	})
}
