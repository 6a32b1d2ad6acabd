package udp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// TestIdentificationsOfSoftPeers: of a peer that uses those of soft devices,
// others are believed when it is seen to need them: the second time in a row.
func TestIdentificationsOfSoftPeers(t *testing.T) {
	b := listen(t, loopback4)
	c, flow := raw(t, b)
	send := func(id uint16) {
		p := head(wire.PSN(id), 0)
		_, err := c.WriteToUDPAddrPort(wire.AppendICRC(p, flow.ICRC(id, p)), b.Caps().Local)
		require.NoError(t, err)
	}
	for range doesNotCount {
		send(2)
		recvN(t, b, 1)
	}
	for _, id := range []uint16{0, 64, 63, 0xffff, 1} {
		send(id)
	}
	requirePSNs := func(want ...wire.PSN) {
		for i, p := range recvN(t, b, len(want)) {
			var bth wire.BTH
			require.NoError(t, bth.Parse(p.Head))
			require.Equal(t, want[i], bth.PSN)
		}
	}
	requirePSNs(0, 63, 1)
	require.Equal(t, uint64(2), counter(t, b, "drop_icrc"))
	for _, id := range []uint16{64, 1000, 5000, 0, 7777} {
		send(id)
	}
	requirePSNs(1000, 5000, 0, 7777)
	require.Equal(t, uint64(3), counter(t, b, "drop_icrc"))
}

// TestHabit: a peer that counts is taken at its word wherever it begins, but
// not from a soft device's port.
func TestHabit(t *testing.T) {
	for _, first := range []uint16{0, 1, 63, 64, 0xffff} {
		rxe := habitOf(0xc123, wire.Port)
		for n := range uint16(2 * maxSegments) {
			require.True(t, rxe.takes(first+n), "%d of those from %d on", n, first)
		}
	}
	quiet := habitOf(0xc123, wire.Port)
	for range doesNotCount {
		require.True(t, quiet.takes(0))
	}
	require.False(t, quiet.takes(64), "it does not count")
	for _, port := range []uint16{wire.Port, 5000} {
		soft := habitOf(port, 5000)
		for range 3 {
			require.False(t, soft.takes(64))
			require.True(t, soft.takes(63))
		}
		require.False(t, soft.takes(64))
		require.True(t, soft.takes(64))
		require.True(t, soft.takes(65))
	}
}
