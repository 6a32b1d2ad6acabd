package path

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// Once slow start is over, a window leaves at a quarter more than the pace of a
// window in a round trip, in runs of about a millisecond; on a short path at
// once.
func TestPacing(t *testing.T) {
	const packet, window = 1280, 500 * 1280
	for rtt, takes := range map[Duration]Duration{
		20 * Millisecond: 16 * Millisecond,
		Long:             1600 * Microsecond,
		Long - 1:         0,
	} {
		var c *swift
		var f Flow
		f.Join(NewSet(0, func(m *Measured, window int) Controller {
			c = newSwift(m, window)
			return c
		}), netip.Addr{}, window, packet)
		now := Time(Second)
		f.Stamp(now-Time(rtt), 1)
		require.Equal(t, rtt, f.Arrived(now, 2, func(uint64) bool { return true }))
		c.steady = true
		start := now
		for left := 500; left > 0; {
			run := 0
			for ; left > 0; left-- {
				until, held := f.Held(now)
				if held {
					now = until
					break
				}
				f.Sent(now, packet)
				run++
			}
			if takes != 0 {
				require.LessOrEqual(t, run, 1+500*5/4*int(pacingRun)/int(rtt))
			}
		}
		require.LessOrEqual(t, Duration(now-start), takes)
		require.GreaterOrEqual(t, Duration(now-start), takes-pacingRun, "a run may leave at once")
	}
}
