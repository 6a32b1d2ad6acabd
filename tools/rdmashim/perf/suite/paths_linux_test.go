package suite

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPaths: every operation, and TCP, move bytes on the first path and on one
// with faults.
func TestPaths(t *testing.T) {
	s := &suite{turn: 20 * time.Millisecond}
	table := s.pathTable()
	require.Len(t, table, 3*len(paths))
	seen := map[*series]bool{}
	for _, c := range append(table[:3:3], table[6:9]...) { // and 1 % lost
		for _, x := range []*series{c.ours, c.reference} {
			if seen[x] {
				continue
			}
			seen[x] = true
			rate, err := x.measure(t.Context())
			var missing *notHere
			if errors.As(err, &missing) && os.Getenv("CI") != "true" {
				t.Skip(missing)
			}
			require.NoError(t, err, "%s by %s", c.title(), x.name)
			require.Positive(t, rate)
		}
	}
	require.Len(t, seen, 8)
}
