package guard

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

func at(a netip.Addr) netip.AddrPort { return netip.AddrPortFrom(a, wire.Port) }

// TestGuessesAreBounded: neither addresses nor waits grow for ever, and the
// address with most guesses is not the one that is forgotten.
func TestGuessesAreBounded(t *testing.T) {
	own := netip.MustParseAddrPort("192.0.2.9:4791")
	g := NewGuesses(own)
	now, logged := engine.Time(1), 0
	worst := at(netip.MustParseAddr("192.0.2.1"))
	for range 2 * (GuessBudget + maxGuessWait/GuessPause) {
		if g.Count(now, worst) {
			logged++
		}
		require.False(t, g.Count(now, own), "its own memory")
	}
	require.Equal(t, 1, logged)
	require.Equal(t, maxGuessWait, g.wait(now, worst))
	require.NoError(t, g.Refuse(now, own))
	other := netip.MustParseAddr("10.0.0.0")
	for range 5 * maxGuessers {
		other = other.Next()
		for range 3 {
			g.Count(now, at(other))
		}
		require.LessOrEqual(t, len(g.guessers), maxGuessers)
		require.Zero(t, g.wait(now, at(other)))
	}
	require.Equal(t, maxGuessWait, g.wait(now, worst))

	// Many that guess at once do not fill the log either.
	g, logged = NewGuesses(own), 0
	for range 2 * GuessBudget {
		for i := range byte(100) {
			if g.Count(now, at(netip.AddrFrom4([4]byte{10, 9, 9, i}))) {
				logged++
			}
		}
	}
	require.Equal(t, 1, logged)
}
