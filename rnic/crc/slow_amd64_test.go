package crc

import "testing"

// slow lets nothing fold for the time of a test, and reports whether something
// had.
func slow(t *testing.T) bool {
	was := Fast
	Fast = false
	t.Cleanup(func() { Fast = was })
	return was
}
