package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

// TestVarint has the examples of RFC 9000 appendix A.1 and the bounds of each
// length.
func TestVarint(t *testing.T) {
	for _, c := range []struct {
		v   uint64
		hex string
	}{
		{0, "00"}, {37, "25"}, {63, "3f"},
		{64, "4040"}, {15293, "7bbd"}, {16382, "7ffe"}, {16383, "7fff"},
		{16384, "80004000"}, {494878333, "9d7f3e7d"}, {1<<30 - 1, "bfffffff"},
		{1 << 30, "c000000040000000"}, {151288809941952652, "c2197c5eff14e88c"}, {wire.MaxVarint, "ffffffffffffffff"},
	} {
		b := unhex(t, c.hex)
		require.Equal(t, b, wire.AppendVarint(dirty(8), c.v))
		require.Equal(t, len(b), wire.VarintLen(c.v))
		v, n := wire.ParseVarint(append(b, 0xff))
		require.Equal(t, c.v, v)
		require.Equal(t, len(b), n)
		for i := range b {
			v, n = wire.ParseVarint(b[:i])
			require.Zero(t, v)
			require.Zero(t, n)
		}
	}
}

func TestVarintTooWide(t *testing.T) {
	require.Equal(t, wire.AppendVarint(nil, 1<<40), wire.AppendVarint(nil, 1<<62|1<<40))
}

func TestStreamID(t *testing.T) {
	for n, id := range []wire.StreamID{0, 1, 2, 3, 4, 5, 6, 7} {
		require.Equal(t, id, wire.MakeStreamID(uint64(n/4), n%2 == 1, n%4 >= 2))
		require.Equal(t, n%2 == 1, id.Server())
		require.Equal(t, n%4 >= 2, id.Uni())
		require.EqualValues(t, n/4, id.Number())
	}
}
