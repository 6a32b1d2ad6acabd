package wire_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/wiretest"
)

// plainICRC is the definition, word for word: the masked packet laid out in one
// buffer, with the CRC-32 of it.
func plainICRC(src, dst netip.AddrPort, df bool, id uint16, body []byte) uint32 {
	b := bytes.Repeat([]byte{0xff}, 8)
	udp := uint16(8 + len(body) + 4)
	if src.Addr().Is4() {
		b = append(b, 0x45, 0xff)
		b = binary.BigEndian.AppendUint16(b, 20+udp)
		b = binary.BigEndian.AppendUint16(b, id)
		if df {
			b = append(b, 0x40, 0)
		} else {
			b = append(b, 0, 0)
		}
		b = append(b, 0xff, 17, 0xff, 0xff)
	} else {
		b = append(b, 0x6f, 0xff, 0xff, 0xff)
		b = binary.BigEndian.AppendUint16(b, udp)
		b = append(b, 17, 0xff)
	}
	b = append(append(b, src.Addr().AsSlice()...), dst.Addr().AsSlice()...)
	b = binary.BigEndian.AppendUint16(b, src.Port())
	b = binary.BigEndian.AppendUint16(b, dst.Port())
	b = binary.BigEndian.AppendUint16(b, udp)
	b = append(b, 0xff, 0xff)
	bth := len(b)
	b = append(b, body...)
	b[bth+4] = 0xff
	return crc32.ChecksumIEEE(b)
}

var pairs = [][2]netip.AddrPort{
	{netip.MustParseAddrPort("127.0.0.1:49152"), netip.MustParseAddrPort("127.0.0.2:4791")},
	{netip.MustParseAddrPort("203.0.113.250:65535"), netip.MustParseAddrPort("198.51.100.1:1")},
	{netip.MustParseAddrPort("[fe80::1]:49152"), netip.MustParseAddrPort("[fd00:99::ffff]:4791")},
}

func TestICRCDefinition(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, pair := range pairs {
		for _, df := range []bool{true, false} {
			fl := must.Get(wire.NewFlow(pair[0], pair[1], df))(t)
			for range 500 {
				body := randomBytes(rnd, wire.BTHLen+rnd.IntN(9000))
				id := uint16(rnd.Uint32())
				want := plainICRC(pair[0], pair[1], df, id, body)
				require.Equal(t, want, fl.ICRC(id, body))

				// The cuts between the pieces do not matter, nor do empty
				// pieces.
				a := wire.BTHLen + rnd.IntN(len(body)-wire.BTHLen+1)
				c := a + rnd.IntN(len(body)-a+1)
				require.Equal(t, want, fl.ICRC(id, body[:a], body[a:c], nil, body[c:]))
				require.Equal(t, want, fl.ICRC(id, body[:wire.BTHLen], body[wire.BTHLen:]))
			}
			// The longest datagram that there is.
			body := randomBytes(rnd, 65507-4)
			require.Equal(t, plainICRC(pair[0], pair[1], df, 7, body), fl.ICRC(7, body))
		}
	}
}

func randomBytes(rnd *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

func TestNewFlow(t *testing.T) {
	mapped := netip.AddrPortFrom(netip.AddrFrom16(pairs[0][0].Addr().As16()), pairs[0][0].Port())
	a := must.Get(wire.NewFlow(pairs[0][0], pairs[0][1], true))(t)
	b := must.Get(wire.NewFlow(mapped, pairs[0][1], true))(t)
	require.Equal(t, a, b, "an IPv4-mapped address is an IPv4 address")

	zoned := netip.AddrPortFrom(pairs[2][0].Addr().WithZone("eth0"), pairs[2][0].Port())
	a = must.Get(wire.NewFlow(pairs[2][0], pairs[2][1], true))(t)
	b = must.Get(wire.NewFlow(zoned, pairs[2][1], false))(t)
	require.Equal(t, a, b, "zone and DF do not matter to IPv6")

	for _, bad := range [][2]netip.AddrPort{{pairs[0][0], pairs[2][1]}, {pairs[2][0], pairs[0][1]}, {{}, pairs[0][1]}, {pairs[0][0], {}}} {
		_, err := wire.NewFlow(bad[0], bad[1], true)
		require.Error(t, err)
	}
}

// TestVerifyFlipped flips each covered bit of each recorded packet. The
// sender's identification is taken for unknown, which is the weaker check.
func TestVerifyFlipped(t *testing.T) {
	for _, c := range captures {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fs := frames(t, c.name)
			for i := range fs {
				flipEach(t, &fs[i])
			}
		})
	}
}

func flipEach(t *testing.T, f *wiretest.Frame) {
	fl := flow(t, f)
	// Of a long payload every 61st bit is enough here: TestSolveSingleBits
	// covers all places of all lengths.
	step := 1
	for bit := 0; bit < len(f.UDP)*8; bit += step {
		if bit > 1024 && bit < len(f.UDP)*8-1024 {
			step = 61
		} else {
			step = 1
		}
		f.UDP[bit/8] ^= 1 << (bit % 8)
		_, ok := fl.Verify(f.UDP, 0)
		covered := bit/8 != 4
		if ok == covered || fl.Check(f.UDP, f.ID) == covered {
			require.Fail(t, "flipped bit", "frame %d bit %d: accepted %v", f.Number, bit, ok)
		}
		f.UDP[bit/8] ^= 1 << (bit % 8)
	}
}

// TestSolveSingleBits shows that no single-bit error in the first 26,744 bytes
// of a packet, ICRC included, looks like an identification; one further on may.
// The CRC is linear, so the difference that a flipped bit makes depends only on
// its distance to the end; a bit may lie at any distance up to that of the
// first bit of the BTH.
func TestSolveSingleBits(t *testing.T) {
	const longest = wire.MaxSolvable - wire.ICRCLen
	diff := uint32(1) << 31 // the last bit before the ICRC: the register moved by that bit alone
	for i := 0; i < 8; i++ {
		// A flipped bit i of the ICRC itself, and of every other byte of it.
		for b := 0; b < 32; b += 8 {
			for _, n := range []int{12, 16, 28, 1040, 4124, longest} {
				_, ok := wire.SolveID(1<<(b+i), n)
				require.False(t, ok)
			}
		}
	}
	for distance := range longest * 8 {
		diff = diff>>1 ^ crc32.IEEE&-(diff&1) // one more bit behind
		// Whatever the packet's length, the flipped bit lies in it. SolveID
		// divides by x to the length, so the shortest packet that holds the
		// bit and the longest stand for those between, with samples.
		shortest := max(wire.BTHLen, distance/8+1)
		for _, n := range [...]int{shortest, min(shortest+12, longest), longest} {
			if id, ok := wire.SolveID(diff, n); ok {
				require.Fail(t, "single-bit error taken for an identification", "%d bits from the end of %d bytes: %#x", distance, n, id)
			}
		}
	}
}

// TestSolveEveryID solves each identification at several lengths.
func TestSolveEveryID(t *testing.T) {
	for _, n := range []int{12, 13, 16, 28, 279, 280, 281, 1040, 4124, 9000, 65503} {
		body := make([]byte, n)
		for _, pair := range pairs[:2] {
			fl := must.Get(wire.NewFlow(pair[0], pair[1], true))(t)
			zero := fl.ICRC(0, body)
			step := 1
			if n > 1000 {
				step = 97
			}
			for id := 0; id < 1<<16; id += step {
				got, ok := wire.SolveID(fl.ICRC(uint16(id), body)^zero, n)
				if !ok || got != uint16(id) {
					require.Fail(t, "not solved", "id %#x length %d: %#x %v", id, n, got, ok)
				}
			}
		}
	}
}

func TestSolveBounds(t *testing.T) {
	for _, n := range []int{-1, math.MinInt, 65512, 1 << 20, math.MaxInt} {
		_, ok := wire.SolveID(1, n)
		require.False(t, ok, "%d", n)
	}
	id, ok := wire.SolveID(0, 12)
	require.True(t, ok)
	require.Zero(t, id)
}

// TestSolveChance: of random differences one in 65,536 passes, no more.
func TestSolveChance(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	passed := 0
	const tries = 1 << 20
	for range tries {
		if _, ok := wire.SolveID(rnd.Uint32(), 4*rnd.IntN(1040)+12); ok {
			passed++
		}
	}
	require.InDelta(t, tries>>16, passed, 16)
}

func TestVerifyShort(t *testing.T) {
	for _, pair := range pairs {
		fl := must.Get(wire.NewFlow(pair[0], pair[1], true))(t)
		for n := range wire.BTHLen + wire.ICRCLen {
			_, ok := fl.Verify(make([]byte, n), 0)
			require.False(t, ok)
			require.False(t, fl.Check(make([]byte, n), 0))
		}
		_ = fl.ICRC(0, nil) // of no meaning, but no panic
		_ = fl.ICRC(0, nil, make([]byte, 5))
	}
}

// TestVerifyIPv6: there is no identification that could excuse a difference.
func TestVerifyIPv6(t *testing.T) {
	body := make([]byte, 28)
	four := must.Get(wire.NewFlow(pairs[0][0], pairs[0][1], true))(t)
	six := must.Get(wire.NewFlow(pairs[2][0], pairs[2][1], true))(t)
	excuse := four.ICRC(77, body) ^ four.ICRC(0, body)
	b := wire.AppendICRC(bytes.Clone(body), six.ICRC(0, body)^excuse)
	_, ok := six.Verify(b, 77)
	require.False(t, ok)
	require.Equal(t, six.ICRC(0, body), six.ICRC(77, body))
}
