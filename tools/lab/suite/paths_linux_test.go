package suite

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPaths: every operation, and TCP, move bytes on the first path and on one
// with faults; the veths and the links that are shared are measured, too. The
// laboratory's TestSuiteDirectory has the rest.
func TestPaths(t *testing.T) {
	s := &suite{turn: 20 * time.Millisecond}
	table := s.pathTable()
	spoilt, others := len(paths), 2*len(veths)+5
	for _, p := range paths {
		if p.reads {
			spoilt++
		}
	}
	require.Len(t, table, spoilt+others+len(s.directoryTable()))
	seen := map[*series]bool{bound: true}
	for _, c := range slices.Concat(table[:2], table[4:6], table[spoilt:spoilt+others]) { // table[4:6]: 1 % lost
		for _, x := range []*series{c.ours, c.reference} {
			if seen[x] {
				continue
			}
			seen[x] = true
			figure, err := x.measure(t.Context())
			var missing *notHere
			if errors.As(err, &missing) && os.Getenv("CI") != "true" {
				t.Skip(missing)
			}
			require.NoError(t, err, "%s by %s", c.title(), x.name)
			if c.unit != "" {
				require.Positive(t, figure, c.title())
			} else { // a part; of so short a time the queue holds much
				require.True(t, figure >= 0 && figure < 10, "%s: %g", c.title(), figure)
			}
		}
	}
}
