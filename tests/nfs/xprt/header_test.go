package xprt

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience bounds every wait.
const patience = time.Minute

// FuzzParse: a header that was read is written as it was, but for what answers
// do not have; every prefix of one is refused.
func FuzzParse(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		h, rest, err := parse(b)
		if err != nil {
			return
		}
		head := b[:len(b)-len(rest)]
		again := message(h)
		require.Equal(t, head[:8], again[:8])
		require.Equal(t, head[12:], again[12:])
		for n := range head {
			_, _, err := parse(head[:n])
			require.Error(t, err)
		}
	})
}
