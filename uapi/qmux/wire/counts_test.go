package wire_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

// TestCounts: frames of one name count together, and those that no peer may
// send count as well.
func TestCounts(t *testing.T) {
	var c wire.Counts
	require.Empty(t, maps.Collect(c.All()))
	for _, f := range []wire.FrameType{
		wire.TypeStream, wire.StreamType(true, true, true), wire.TypeDatagram, wire.TypeDatagramLen, wire.TypeDatagramLen,
		0x02, 0x03, 0x01, wire.TypePing, wire.TypePong, wire.TypePong, wire.TypeParameters, wire.TypeParameters3, 0x4000, 0x2a, wire.MaxVarint,
	} {
		c.Add(f)
	}
	require.Equal(t, map[string]uint64{
		"STREAM": 2, "DATAGRAM": 3, "ACK": 2, "PING": 1, "QX_PING": 1, "QX_PONG": 2, "QX_TRANSPORT_PARAMETERS": 2, "frame 0x2a": 1, "UNKNOWN": 2,
	}, maps.Collect(c.All()))
	for range c.All() {
		break // and no panic
	}
}
