package crc

import "testing"

// slow lets nothing fold for the time of a test.
func slow(t *testing.T) {
	was := Fast
	Fast = false
	t.Cleanup(func() { Fast = was })
}
