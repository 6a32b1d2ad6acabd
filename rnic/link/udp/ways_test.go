package udp

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWays: an answer holds while it is fresh, a refusal not at all, and one
// that no hop was waited for does for a caller who would not wait.
func TestWays(t *testing.T) {
	var w ways
	asked, refusal := 0, error(nil)
	mtu := func() (int, error) { asked++; return 1500, refusal }
	reach := func() error { asked++; return refusal }
	peer, now := netip.MustParseAddr("192.0.2.1"), time.Unix(1, 0)
	for _, step := range []struct {
		after    time.Duration
		refusal  error
		patience time.Duration // of reach; negative: it is the MTU
		asked    int
	}{
		{0, errors.New("no route"), -1, 1},
		{0, nil, -1, 2},
		{wayFresh - 1, nil, -1, 2},
		{1, nil, -1, 3},
		{0, nil, 0, 4},
		{0, nil, 0, 4},
		{0, errors.New("silent"), time.Second, 5},
		{0, nil, time.Second, 6},
		{0, nil, time.Second, 6},
		{0, nil, 0, 6},
		{wayFresh, nil, 0, 7},
	} {
		now, refusal = now.Add(step.after), step.refusal
		if step.patience < 0 {
			_, err := w.mtu(peer, now, mtu)
			require.Equal(t, refusal, err)
		} else {
			require.Equal(t, refusal, w.reach(peer, now, step.patience, reach))
		}
		require.Equal(t, step.asked, asked, "%+v", step)
	}
	for i := range 4 * maxWays {
		_, _ = w.mtu(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), now, mtu)
		require.LessOrEqual(t, len(w.peers), maxWays)
	}
}
