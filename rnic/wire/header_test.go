package wire_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// header is the common interface of the BTH and of management datagrams.
type header interface {
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
	return append(madCases(), headerCase{"BTH", func() header { return new(wire.BTH) }, &wire.BTH{
		Opcode: 0xff, Solicited: true, MigReq: true, Pad: 3, TVer: 15, PKey: 0xffff,
		FECN: true, BECN: true, DestQPN: wire.MulticastQPN, AckReq: true, Selective: true,
		PrivateMTU: 31, Proven: true, PSN: wire.MaxPSN,
	}, "ffffffff c0ffffff ffffffff"})
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

// TestHeaderBytes pins each field of the BTH to its place with bytes composed
// by hand after the figures of IBA 9.2. TestRecordedFields does so for extended
// headers.
func TestHeaderBytes(t *testing.T) {
	for want, h := range map[string]wire.BTH{
		"0a 50 8001 00 123456 80 abcdef": {Opcode: wire.RCWriteOnly, MigReq: true, Pad: 1, PKey: 0x8001, DestQPN: 0x123456, AckReq: true, PSN: 0xabcdef},
		"00 80 0000 00 000000 00 000000": {Solicited: true},
		"00 09 0000 00 000000 00 000000": {TVer: 9},
		"00 00 0000 80 000000 00 000000": {FECN: true},
		"00 00 0000 40 000000 00 000000": {BECN: true},
	} {
		require.Equal(t, unhex(t, want), h.Append(dirty(wire.BTHLen)))
	}
}

// TestHeaderWidths gives fields values that are too wide: they must be cut, not
// spill into their neighbours.
func TestHeaderWidths(t *testing.T) {
	p := wire.Packet{
		BTH:  wire.BTH{Pad: 0xf4, TVer: 0xf0, DestQPN: 0xff000000, PSN: 0xff000000},
		DETH: wire.DETH{SrcQPN: 0xff000000}, FETH: wire.FETH{Placement: 0xf0, Selection: 0xfc}, AETH: wire.AETH{MSN: 0xff000000},
	}
	for _, op := range []wire.Opcode{wire.UDSendOnly, wire.RCFlush, wire.RCAck} {
		p.Opcode = op
		n := op.HeaderLen()
		require.Equal(t, append([]byte{byte(op)}, make([]byte, n-1)...), p.AppendHeaders(dirty(n)))
	}
}
