package suite

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
)

// TestPaths: every operation, and TCP, move bytes on the first path and on one
// with faults; the veths and the links that are shared are measured, too. The
// laboratory's TestSuiteDirectory has the rest.
func TestPaths(t *testing.T) {
	amount.Unraced(t)
	table := (&suite{}).pathTable()
	spoilt, others := len(paths), 3*len(veths)+5
	for _, p := range paths {
		if p.reads {
			spoilt++
		}
	}
	require.Len(t, table, spoilt+others+len((&suite{}).directoryTable()))
	seen := map[*series]bool{bound: true}
	for i, c := range table {
		if i >= 2 && i < 4 || i >= 6 && i < spoilt || i >= spoilt+others { // 4 and 5: 1 % lost
			continue
		}
		for reference, x := range []*series{c.ours, c.reference} {
			if seen[x] {
				continue
			}
			seen[x] = true
			figure, err := onPaths(t, i, reference)
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

// onPaths measures one of the two series of a row, for longer where a busy
// machine has moved no message to its end.
func onPaths(t *testing.T, row, series int) (figure float64, err error) {
	for turn := 20 * time.Millisecond; figure == 0 && err == nil && turn < time.Minute; turn *= 4 {
		c := (&suite{turn: turn}).pathTable()[row]
		figure, err = []func(context.Context) (float64, error){c.ours.measure, c.reference.measure}[series](t.Context())
		if c.unit == "" {
			break
		}
	}
	return figure, err
}
