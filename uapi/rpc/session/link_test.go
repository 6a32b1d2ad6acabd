package session

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// script is an end that has messages of those lengths to send.
type script struct {
	end
	lengths []int
}

func (s *script) next(_ *link, b []byte) []byte {
	if len(s.lengths) == 0 {
		return b
	}
	n := s.lengths[0]
	s.lengths = s.lengths[1:]
	return append(b, bytes.Repeat([]byte{byte(n)}, n)...)
}

// TestPacked: short messages share a chunk, which is no longer than the rings
// carry, and every message lies in one chunk, whole and in order.
func TestPacked(t *testing.T) {
	for name, c := range map[string]struct{ lengths, chunks []int }{
		"none":              {nil, nil},
		"one":               {[]int{24}, []int{24}},
		"short":             {[]int{24, 30, 40}, []int{94}},
		"up to packed":      {[]int{packed - 1, 24, 24}, []int{packed + 23, 24}},
		"long":              {[]int{packed, packed + 1}, []int{packed, packed + 1}},
		"too long together": {[]int{24, 3000, 24}, []int{24, 3000, 24}},
		"longest":           {[]int{3000, 3000, 1000, 2000}, []int{3000, 3000, 3000}},
	} {
		t.Run(name, func(t *testing.T) {
			var want, got []byte
			for e := (&script{lengths: c.lengths}); len(e.lengths) > 0; {
				want = e.next(nil, want)
			}
			var chunks []int
			x := &link{end: &script{lengths: c.lengths}, longest: 3000}
			for x.take() {
				require.True(t, x.take(), "asked again")
				chunks, got = append(chunks, x.first), append(got, x.outbox[:x.first]...)
				x.sent()
			}
			require.Equal(t, c.chunks, chunks)
			require.Equal(t, want, got)
		})
	}
}
