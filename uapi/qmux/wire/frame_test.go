package wire_test

import (
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

// permitted are the types that the draft's list of frames has.
var permitted = []wire.FrameType{
	0x00, 0x04, 0x05, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17,
	0x1c, 0x1d, 0x24, 0x30, 0x31, 0x3f5153300d0a0d0a, 0x3f514d580d0a0d0a, 0x348c67529ef8c7bd, 0x348c67529ef8c7be,
}

// forbidden are the types of QUIC version 1 that the draft rules out.
var forbidden = []wire.FrameType{0x01, 0x02, 0x03, 0x06, 0x07, 0x18, 0x19, 0x1a, 0x1b, 0x1e}

// TestTypes tries all types of one byte, and some of more, with a body of
// zeros.
func TestTypes(t *testing.T) {
	types := append([]wire.FrameType{0x40, 0x3fff, 0x4000, 0x21 + 31*1000, wire.MaxVarint}, permitted...)
	for typ := range wire.FrameType(0x40) {
		types = append(types, typ)
	}
	for _, typ := range types {
		b := append(wire.AppendVarint(nil, uint64(typ)), make([]byte, 8)...)
		var f wire.Frame
		n, err := f.Parse(b)
		require.Equal(t, typ, f.Type)
		switch {
		case slices.Contains(permitted, typ):
			require.NoError(t, err, "%v", typ)
			require.Positive(t, n)
			require.NotContains(t, f.Type.String(), "0x")
		case slices.Contains(forbidden, typ):
			require.Equal(t, wire.ErrForbidden, err, "%v", typ)
			require.NotContains(t, f.Type.String(), "0x")
			require.Empty(t, f.Append(nil))
			require.Zero(t, f.Length())
		default:
			require.Equal(t, wire.ErrUnknown, err, "%v", typ)
			require.Contains(t, f.String(), "0x")
			require.Empty(t, f.Append(nil))
			require.Zero(t, f.Length())
		}
	}
}

// TestRefusals has frames that must be refused, each with its error and its
// code, and their nearest neighbours that must not.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name, hex string
		err       error
		code      wire.Code
	}{
		{"PING", "01", wire.ErrForbidden, 0x7},
		{"unknown type", "21", wire.ErrUnknown, 0x7},
		{"PADDING in two bytes", "4000", wire.ErrTypeForm, 0xa},
		{"PING in two bytes", "4001", wire.ErrTypeForm, 0xa},
		{"unknown type in eight bytes", "c000000000000021", wire.ErrTypeForm, 0xa},
		{"no length", "0a00", wire.ErrTruncated, 0x7},
		{"length beyond the record", "0a000161", nil, 0},
		{"length beyond the record by one", "0a000261", wire.ErrTruncated, 0x7},
		{"length of 2^62-1", "31ffffffffffffffff00", wire.ErrTruncated, 0x7},
		{"stream to offset 2^62", "0e00ffffffffffffffff0161", wire.ErrOffset, 0x7},
		{"stream to offset 2^62 and the end", "0c00ffffffffffffffff61", wire.ErrOffset, 0x7},
		{"stream of nothing at 2^62-1", "0e00ffffffffffffffff00", nil, 0},
		{"2^60 streams", "12d000000000000000", nil, 0},
		{"2^60+1 streams", "12d000000000000001", wire.ErrStreamCount, 0x7},
		{"2^60+1 unidirectional streams", "13d000000000000001", wire.ErrStreamCount, 0x7},
		{"blocked at 2^60+1", "16d000000000000001", wire.ErrStreamCount, 0x7},
		{"blocked at 2^60+1, unidirectional", "17d000000000000001", wire.ErrStreamCount, 0x7},
		{"reliable size 2 of 1", "2400000102", wire.ErrReliableSize, 0x7},
		{"reliable size 1 of 1", "2400000101", nil, 0},
	} {
		var f wire.Frame
		_, err := f.Parse(unhex(t, c.hex))
		require.Equal(t, c.err, err, c.name)
		if e, ok := err.(*wire.Error); ok {
			require.Equal(t, c.code, e.Code, c.name)
			require.ErrorIs(t, err, syscall.EPROTO)
		}
	}
}

func TestRecords(t *testing.T) {
	for _, c := range []struct {
		name, hex string
		err       error
	}{
		{"empty", "00", wire.ErrRecordEmpty},
		{"empty, in eight bytes", "c000000000000000", wire.ErrRecordEmpty},
		{"one over the largest", "7fff", wire.ErrRecordSize},
		{"2^62-1", "ffffffffffffffff", wire.ErrRecordSize},
		{"the largest, not there yet", "7ffe", nil},
	} {
		_, n, err := wire.ParseRecord(unhex(t, c.hex), wire.DefaultMaxRecord)
		require.Equal(t, c.err, err, c.name)
		require.Zero(t, n)
	}
	for _, hex := range []string{"0100", "400100", "8000000100", "c00000000000000100"} {
		frames, n, err := wire.ParseRecord(unhex(t, hex), wire.DefaultMaxRecord)
		require.NoError(t, err)
		require.Equal(t, len(hex)/2, n)
		require.Equal(t, []byte{0}, frames)
	}
}

func TestParametersRefusals(t *testing.T) {
	for _, c := range []struct {
		name, hex string
		err       error
	}{
		{"connection id", "0000", wire.ErrParamForbidden},
		{"reset token", "0200", wire.ErrParamForbidden},
		{"udp payload", "030245c0", wire.ErrParamForbidden},
		{"ack delay exponent", "0a0103", wire.ErrParamForbidden},
		{"max ack delay", "0b0119", wire.ErrParamForbidden},
		{"no migration", "0c00", wire.ErrParamForbidden},
		{"preferred address", "0d00", wire.ErrParamForbidden},
		{"connection ids", "0e0102", wire.ErrParamForbidden},
		{"source connection id", "0f00", wire.ErrParamForbidden},
		{"retry connection id", "1000", wire.ErrParamForbidden},
		{"unknown", "1102abcd", nil},
		{"grease", "1b00", nil},
		{"value in a long form", "01080000000000000001", wire.ErrParamLength},
		{"value in eight bytes", "0108c000000000000001", nil},
		{"no value", "0400", wire.ErrParamLength},
		{"value cut short", "040180", wire.ErrParamLength},
		{"value and a byte", "04020000", wire.ErrParamLength},
		{"reset_stream_at with a value", "1d0100", wire.ErrParamLength},
		{"twice", "040101040101", wire.ErrParamTwice},
		{"unknown twice", "1b001b00", wire.ErrParamTwice},
		{"twice in two forms", "1b00401b00", wire.ErrParamTwice},
		{"id alone", "04", wire.ErrParamTruncated},
		{"id cut short", "80", wire.ErrParamTruncated},
		{"length beyond the end", "040201", wire.ErrParamTruncated},
		{"length of 2^62-1", "04ffffffffffffffff00", wire.ErrParamTruncated},
		{"record size 16381", "c571c59429cd0845027ffd", wire.ErrParamValue},
		{"record size 16382", "c571c59429cd0845027ffe", nil},
		{"2^60+1 streams", "0808d000000000000001", wire.ErrParamValue},
		{"2^60+1 unidirectional streams", "0908d000000000000001", wire.ErrParamValue},
		{"2^60 streams", "0808d000000000000000", nil},
	} {
		var p wire.Parameters
		err := p.Parse(unhex(t, c.hex))
		require.Equal(t, c.err, err, c.name)
		if e, ok := err.(*wire.Error); ok {
			require.Equal(t, wire.TransportParameterError, e.Code, c.name)
		}
	}
}

func TestParametersCount(t *testing.T) {
	var b []byte
	for i := range uint64(wire.MaxParameters) {
		b = wire.AppendVarint(wire.AppendVarint(b, 31*i+27), 0)
	}
	var p wire.Parameters
	require.NoError(t, p.Parse(b))
	require.Equal(t, wire.ErrParamCount, p.Parse(append(b, 0x21, 0)))
}

// TestDrafts pins the differences between the drafts.
func TestDrafts(t *testing.T) {
	require.False(t, wire.Draft(0).Valid())
	require.False(t, wire.Draft(4).Valid())
	for _, c := range []struct {
		draft   wire.Draft
		magic   string
		misuse  wire.Code
		resetAt bool
	}{
		{wire.Draft1, "\xffQS0\r\n\r\n", 0x8, false},
		{wire.Draft2, "\xffQS0\r\n\r\n", 0xa, true},
		{wire.Draft3, "\xffQMX\r\n\r\n", 0xa, true},
	} {
		require.True(t, c.draft.Valid())
		require.Equal(t, c.magic, string(wire.AppendVarint(nil, uint64(c.draft.Parameters()))))
		require.True(t, c.draft.Parameters().IsParameters())
		require.Equal(t, c.misuse, c.draft.Misuse())
		require.Equal(t, c.resetAt, c.draft.ResetStreamAt())
		require.Equal(t, c.resetAt, c.draft.StrictPing())
	}
}

func TestNames(t *testing.T) {
	require.Equal(t, "PROTOCOL_VIOLATION", wire.ProtocolViolation.String())
	require.Equal(t, "error 0x9", wire.Code(9).String())
	require.Equal(t, "frame 0x21", wire.FrameType(0x21).String())
}

// TestAllocations: parsing, and appending to a buffer with room, costs none.
func TestAllocations(t *testing.T) {
	buf := make([]byte, 0, 1<<15)
	data := make([]byte, 10000)
	params := wire.Parameters{InitialMaxData: 1 << 20, MaxRecordSize: 1 << 16, ResetStreamAt: true}
	var f, g wire.Frame
	require.Zero(t, testing.AllocsPerRun(100, func() {
		f = wire.Frame{Type: wire.StreamType(true, true, false), Stream: 4, Offset: 1 << 20, Data: data}
		b := wire.AppendVarint(buf, uint64(f.Length()))
		b = f.Append(b)
		frames, _, err := wire.ParseRecord(b, wire.DefaultMaxRecord)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Parse(frames); err != nil || len(g.Data) != len(data) {
			t.Fatal(err)
		}
		if err := params.Parse(params.Append(buf)); err != nil {
			t.Fatal(err)
		}
	}))
}
