package xprt

import (
	"testing"
	"time"
)

// patience bounds every wait.
const patience = time.Minute

// FuzzParse: a header that was read is written as it was, but for what answers
// do not have; every prefix of one is refused.
func FuzzParse(f *testing.F) {
	for _, b := range recorded(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, rest, err := parse(b); err == nil && h.proc <= procNoMsg {
			requireSame(t, b[:len(b)-len(rest)], h)
		}
	})
}
