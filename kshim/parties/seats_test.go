package parties

import (
	"testing"

	"github.com/stretchr/testify/require"
)

type conn struct{ closed bool }

func (c *conn) Close() error { c.closed = true; return nil }

// TestSeats: two greedy parties share the seats, and leave each other party its
// own.
func TestSeats(t *testing.T) {
	s := Seats[int]{Most: 8}
	var all []*conn // that got one
	take := func(party int) bool {
		c := &conn{}
		ok := s.Take(c, party)
		if ok {
			all = append(all, c)
		}
		return ok
	}
	for range 8 {
		require.True(t, take(1))
	}
	require.False(t, take(1), "no party is in its own way for a newer connection")
	for range 4 {
		require.True(t, take(2))
	}
	require.False(t, take(2))
	for i, c := range all[:8] {
		require.Equal(t, i < 4, c.closed, "the oldest ones go")
	}
	honest := len(all)
	for party := range 6 {
		require.True(t, take(3+party))
	}
	require.False(t, take(9), "one each")
	for _, c := range all[honest:] {
		require.False(t, c.closed)
	}
	s.Leave(all[honest])
	s.Leave(all[0]) // has none
	require.True(t, take(9))
	s.Close()
	for _, c := range all {
		require.Equal(t, c != all[honest], c.closed)
	}
	require.False(t, take(10))
}
