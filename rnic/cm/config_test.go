package cm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// The local ACK timeout covers the peer's delay and twice a packet's life, and
// is not more than twice of that; nor is it less than two thirds.
func TestAckTimeout(t *testing.T) {
	for delay := uint8(0); delay < 30; delay++ {
		for life := uint8(0); life < 28; life++ {
			got := ackTimeout(delay, life)
			need := int64(4096)<<delay + 2*int64(4096)<<life
			have := int64(4096) << got
			require.GreaterOrEqual(t, 3*have, 2*need, "delay %d life %d: %d", delay, life, got)
			require.Less(t, have, 2*need, "delay %d life %d: %d", delay, life, got)
		}
	}
	require.Equal(t, wire.AckTimeout(19), ackTimeout(15, 18), "as recorded from rxe")
	require.Equal(t, wire.AckTimeout(31), ackTimeout(31, 31))
	require.Equal(t, wire.AckTimeout(31), ackTimeout(255, 31))
}

func TestDefaults(t *testing.T) {
	c := Config{ResponseTimeout: 200, Retries: 200, AckDelay: 200, PacketLife: 200, MRATimeout: 200}.withDefaults()
	require.Equal(t, []any{wire.CMTimeout(31), uint8(15), uint8(31)}, []any{c.ResponseTimeout, c.Retries, c.AckDelay})
	require.Positive(t, c.Silence(), "the longest times do not overflow")
}

// A UDP port travels in the place of a LID, and an unknown sender is answered
// where it can be.
func TestPorts(t *testing.T) {
	for _, port := range []uint16{1, 4791, 5000, 65534} {
		require.Equal(t, port, portOf(lidOf(port)))
	}
	require.EqualValues(t, 4791, portOf(0))
	require.EqualValues(t, 0xffff, lidOf(4791))
}
