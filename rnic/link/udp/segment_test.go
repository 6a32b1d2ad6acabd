package udp

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// packets makes packets to x of the given lengths; see the marks below.
func packets(lengths ...int) []link.Packet {
	var batch []link.Packet
	for _, n := range lengths {
		p := link.Packet{Peer: netip.MustParseAddrPort("10.0.0.1:4791")}
		switch {
		case n >= other:
			p.Peer = netip.MustParseAddrPort("10.0.0.1:4792")
			n -= other
		case n >= lone:
			p.Alone = true
			n -= lone
		case n >= headless:
			batch = append(batch, link.Packet{Peer: p.Peer, Head: make([]byte, wire.BTHLen-1), Payload: make([]byte, n-headless)})
			continue
		}
		p.Head = make([]byte, wire.BTHLen)
		p.Payload = make([]byte, n)
		batch = append(batch, p)
	}
	return batch
}

// Marks of packets, added to their length.
const (
	headless = 100000 * (iota + 1) // not a packet
	lone                           // Alone
	other                          // to another peer
)

func TestSegments(t *testing.T) {
	const extra = wire.BTHLen + wire.ICRCLen
	for _, c := range []struct {
		name        string
		batch       []link.Packet
		limit, room int
		n, size     int
	}{
		{"one", packets(100), 64, 65507, 1, 100 + extra},
		{"all equal", packets(100, 100, 100), 64, 65507, 3, 100 + extra},
		{"equal once padded", packets(97, 98, 99, 100), 64, 65507, 4, 100 + extra},
		{"the last is shorter", packets(100, 100, 40), 64, 65507, 3, 100 + extra},
		{"nothing behind a shorter one", packets(100, 100, 40, 40), 64, 65507, 3, 100 + extra},
		{"the second is shorter", packets(100, 0, 100), 64, 65507, 2, 100 + extra},
		{"a longer one begins the next", packets(100, 100, 101), 64, 65507, 2, 100 + extra},
		{"a longer one at once", packets(100, 104, 104), 64, 65507, 1, 100 + extra},
		{"empty ones", packets(0, 0, 0), 64, 65507, 3, extra},
		{"another peer", packets(100, 100, other+100, 100), 64, 65507, 2, 100 + extra},
		{"a shorter one to another peer", packets(100, other+40), 64, 65507, 1, 100 + extra},
		{"one alone", packets(100, 100, lone+100, 100), 64, 65507, 2, 100 + extra},
		{"one alone first", packets(lone+100, 100, 100), 64, 65507, 1, 100 + extra},
		{"no packet", packets(100, headless+101, 100), 64, 65507, 1, 100 + extra},
		{"no packet first", packets(headless+101, 100), 64, 65507, 1, 104 - 1 + extra},
		{"the limit", packets(8, 8, 8, 8, 8), 3, 65507, 3, 8 + extra},
		{"a limit of one", packets(8, 8), 1, 65507, 1, 8 + extra},
		{"all the room", packets(84, 84, 84), 64, 300, 3, 100},
		{"no room for the third", packets(84, 84, 84), 64, 299, 2, 100},
		{"no room at all", packets(84, 84, 84), 64, 50, 1, 100},
		{"4096 fill 64 KiB", packets(slices.Repeat([]int{4096}, 40)...), 64, 65507, 15, 4096 + extra},
	} {
		n, size := segments(c.batch, c.limit, c.room)
		require.Equal(t, c.n, n, c.name)
		require.Equal(t, c.size, size, c.name)
	}
}

func TestSuspension(t *testing.T) {
	var s suspension
	require.True(t, s.allowed())
	s.sent(1000)
	want := minPenalty
	for range 20 {
		require.True(t, s.alone(), "a timeout suspends")
		require.False(t, s.allowed())
		require.False(t, s.alone(), "once")
		require.Equal(t, want, s.plain)
		s.sent(want - 1)
		require.False(t, s.allowed())
		s.sent(1)
		require.True(t, s.allowed(), "and it ends")
		want = min(2*want, maxPenalty)
	}
	s.sent(4*maxPenalty + 1)
	require.True(t, s.alone())
	require.Equal(t, minPenalty, s.plain, "forgotten when GSO has worked for long")
}
