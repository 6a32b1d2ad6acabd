package wire_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// header is the common interface of all headers.
type header interface {
	Length() int
	Parse(b []byte) error
	Append(b []byte) []byte
}

// headerCase says how a header looks with every bit of every field set, and
// which bits on the wire belong to a field at all.
type headerCase struct {
	name   string
	empty  func() header
	ones   header // all fields at their largest
	fields string // mask of the bits that belong to a field, in hex
}

func headerCases() []headerCase {
	const all4, all8 = "ffffffff", "ffffffffffffffff"
	return append(madCases(), []headerCase{
		{"BTH", func() header { return new(wire.BTH) }, &wire.BTH{
			Opcode: 0xff, Solicited: true, MigReq: true, Pad: 3, TVer: 15, PKey: 0xffff,
			FECN: true, BECN: true, DestQPN: wire.MulticastQPN, AckReq: true, Selective: true,
			PrivateMTU: 31, Proven: true, PSN: wire.MaxPSN,
		}, "ffffffff c0ffffff ffffffff"},
		{"RETH", func() header { return new(wire.RETH) },
			&wire.RETH{VA: 1<<64 - 1, RKey: 1<<32 - 1, DMALen: 1<<32 - 1}, all8 + all8},
		{"AETH", func() header { return new(wire.AETH) },
			&wire.AETH{Syndrome: 0xff, MSN: 0xffffff}, all4},
		{"AtomicETH", func() header { return new(wire.AtomicETH) },
			&wire.AtomicETH{VA: 1<<64 - 1, RKey: 1<<32 - 1, SwapAdd: 1<<64 - 1, Compare: 1<<64 - 1}, all8 + all4 + all8 + all8},
		{"AtomicAckETH", func() header { return new(wire.AtomicAckETH) },
			&wire.AtomicAckETH{Orig: 1<<64 - 1}, all8},
		{"ImmDt", func() header { return new(wire.ImmDt) }, &wire.ImmDt{Data: 1<<32 - 1}, all4},
		{"IETH", func() header { return new(wire.IETH) }, &wire.IETH{RKey: 1<<32 - 1}, all4},
		{"DETH", func() header { return new(wire.DETH) },
			&wire.DETH{QKey: 1<<32 - 1, SrcQPN: wire.MulticastQPN}, "ffffffff 00ffffff"},
		{"FETH", func() header { return new(wire.FETH) },
			&wire.FETH{Placement: 15, Selection: 3}, "0000003f"},
	}...)
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	require.NoError(t, err)
	return b
}

func TestHeaders(t *testing.T) {
	for _, c := range headerCases() {
		t.Run(c.name, func(t *testing.T) {
			mask := unhex(t, c.fields)
			n := len(mask)
			require.Equal(t, specLengths[c.name], n)
			require.Equal(t, n, c.ones.Length())

			// All ones: only the bits of fields are written, whatever lay
			// there.
			require.Equal(t, mask, c.ones.Append(dirty(n)))
			require.Equal(t, append([]byte("before"), mask...), c.ones.Append([]byte("before")))

			// Reading all ones, reserved bits included, gives the same values.
			h := c.empty()
			require.NoError(t, h.Parse(bytes.Repeat([]byte{0xff}, n)))
			require.Equal(t, c.ones, h)

			// All zeros, read over a header that is full of ones.
			require.NoError(t, h.Parse(make([]byte, n)))
			require.Equal(t, c.empty(), h)
			require.Equal(t, make([]byte, n), h.Append(dirty(n)))

			for i := range n {
				require.ErrorIs(t, c.empty().Parse(mask[:i]), wire.ErrShort, "%d bytes", i)
			}
			require.NoError(t, h.Parse(append(bytes.Clone(mask), 1, 2, 3)), "what follows is not looked at")
		})
	}
}

// TestHeaderBits sets every bit alone: each that belongs to a field must come
// back, alone, and each reserved one must vanish.
func TestHeaderBits(t *testing.T) {
	for _, c := range headerCases() {
		mask := unhex(t, c.fields)
		for bit := range len(mask) * 8 {
			b := make([]byte, len(mask))
			b[bit/8] = 1 << (bit % 8)
			h := c.empty()
			require.NoError(t, h.Parse(b))
			want := bytes.Clone(b)
			want[bit/8] &= mask[bit/8]
			require.Equal(t, want, h.Append(dirty(len(b))), "%s bit %d", c.name, bit)
		}
	}
}

// TestHeaderBytes pins each field to its place with bytes composed by hand
// after the figures of IBA 9.2, 9.3, 9.5.3 and A19.4.1.
func TestHeaderBytes(t *testing.T) {
	for _, c := range []struct {
		name string
		h    header
		want string
	}{
		{"BTH", &wire.BTH{Opcode: wire.RCWriteOnly, MigReq: true, Pad: 1, PKey: 0x8001, DestQPN: 0x123456, AckReq: true, PSN: 0xabcdef},
			"0a 50 8001 00 123456 80 abcdef"},
		{"BTH solicited", &wire.BTH{Solicited: true}, "00 80 0000 00 000000 00 000000"},
		{"BTH version", &wire.BTH{TVer: 9}, "00 09 0000 00 000000 00 000000"},
		{"BTH FECN", &wire.BTH{FECN: true}, "00 00 0000 80 000000 00 000000"},
		{"BTH BECN", &wire.BTH{BECN: true}, "00 00 0000 40 000000 00 000000"},
		{"RETH", &wire.RETH{VA: 0x0102030405060708, RKey: 0x11121314, DMALen: 0x21222324}, "0102030405060708 11121314 21222324"},
		{"AETH", &wire.AETH{Syndrome: 0x61, MSN: 0x010203}, "61 010203"},
		{"AtomicETH", &wire.AtomicETH{VA: 0x0102030405060708, RKey: 0x11121314, SwapAdd: 0x2122232425262728, Compare: 0x3132333435363738},
			"0102030405060708 11121314 2122232425262728 3132333435363738"},
		{"AtomicAckETH", &wire.AtomicAckETH{Orig: 0x0102030405060708}, "0102030405060708"},
		{"ImmDt", &wire.ImmDt{Data: 0x01020304}, "01020304"},
		{"IETH", &wire.IETH{RKey: 0x01020304}, "01020304"},
		{"DETH", &wire.DETH{QKey: 0x80010000, SrcQPN: 1}, "80010000 00 000001"},
		{"FETH", &wire.FETH{Placement: wire.FlushGlobal, Selection: wire.FlushRegion}, "00000011"},
		{"FETH persistent", &wire.FETH{Placement: wire.FlushPersistent}, "00000002"},
	} {
		want := unhex(t, c.want)
		require.Equal(t, want, c.h.Append(dirty(len(want))), c.name)
	}
}

// TestHeaderWidths gives fields values that are too wide: they must be cut, not
// spill into their neighbours.
func TestHeaderWidths(t *testing.T) {
	wide := &wire.BTH{Pad: 0xf4, TVer: 0xf0, DestQPN: 0xff000000, PSN: 0xff000000}
	require.Equal(t, make([]byte, wire.BTHLen), wide.Append(dirty(wire.BTHLen)))
	require.Equal(t, make([]byte, 4), (&wire.AETH{MSN: 0xff000000}).Append(dirty(4)))
	require.Equal(t, make([]byte, 8), (&wire.DETH{SrcQPN: 0xff000000}).Append(dirty(8)))
	require.Equal(t, make([]byte, 4), (&wire.FETH{Placement: 0xf0, Selection: 0xfc}).Append(dirty(4)))
}
