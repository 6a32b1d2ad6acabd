package doctor

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSegmentsLost: a device whose segments get lost gives up segmenting again
// and again; one timeout says nothing.
func TestSegmentsLost(t *testing.T) {
	for name, c := range map[string]struct {
		broken bool
		at     uint64 // suspensions after the first transfer
		err    error
		want   uint64
	}{
		"never":           {},
		"once, by chance": {at: 1},
		"every time":      {at: 1, broken: true, want: lostOften},
		"breaks down":     {at: 1, broken: true, err: errors.New("no answer")},
	} {
		t.Run(name, func(t *testing.T) {
			suspended, alone := c.at, 64
			transfers := 0
			n := segmentsLost(func() uint64 { return suspended }, func() error {
				transfers++
				const packets = 16
				if alone = max(alone-packets, 0); alone == 0 && c.broken {
					suspended++
					alone = 64 << (suspended - 1)
				}
				return c.err
			})
			require.Equal(t, c.want, n)
			if c.at == 0 {
				require.Zero(t, transfers)
			}
		})
	}
}
