package wire_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// TestTruncated cuts every recorded packet at every length. Before the end of
// the headers Parse must say so; from there on the pad count, the alignment or
// at last the ICRC must.
func TestTruncated(t *testing.T) {
	for _, f := range allFrames(t) {
		var p wire.Packet
		require.NoError(t, p.Parse(f.UDP[:len(f.UDP)-wire.ICRCLen]))
		n := p.Opcode.HeaderLen()
		fl := flow(t, &f)
		for i := range f.UDP {
			if i < n {
				require.ErrorIs(t, p.Parse(f.UDP[:i:i]), wire.ErrShort)
			} else if i%4 != 0 {
				require.ErrorIs(t, p.Parse(f.UDP[:i:i]), wire.ErrPad)
			}
			if fl.Check(f.UDP[:i:i], f.ID) {
				require.Fail(t, "a packet cut short has a valid ICRC")
			}
		}
	}
}

func TestParseErrors(t *testing.T) {
	valid := (&wire.Packet{
		BTH:     wire.BTH{Opcode: wire.RCWriteOnly, Pad: 1},
		RETH:    wire.RETH{DMALen: 3},
		Payload: []byte{1, 2, 3},
	}).Append(nil)
	change := func(at int, v byte) []byte {
		b := bytes.Clone(valid)
		b[at] = v
		return b
	}
	for _, c := range []struct {
		name string
		b    []byte
		want error
	}{
		{"valid", valid, nil},
		{"nothing", nil, wire.ErrShort},
		{"version", change(1, 0x11), wire.ErrVersion},
		{"version before opcode", func() []byte { b := change(1, 0x11); b[0] = 0xff; return b }(), wire.ErrVersion},
		{"reserved opcode", change(0, 0x15), wire.ErrOpcode},
		{"RD", change(0, 0x44), wire.ErrOpcode},
		{"XRC", change(0, 0xa0), wire.ErrOpcode},
		{"opcode before length", []byte{0x15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, wire.ErrOpcode},
		{"pad fills the payload", change(1, 0x30), nil},
		{"pad without payload", change(1, 0x30)[:28], wire.ErrPad},
		{"not a multiple of four", valid[:31], wire.ErrPad},
		{"too long by one", append(bytes.Clone(valid), 0), wire.ErrPad},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p wire.Packet
			err := p.Parse(c.b)
			if c.want == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, c.want)
			_, isError := err.(wire.Error)
			require.True(t, isError, "an error must be usable as an index")
		})
	}
}

// TestParseClears: a Packet is used for one packet after another.
func TestParseClears(t *testing.T) {
	p := wire.Packet{
		BTH:       wire.BTH{Opcode: 0xff, Solicited: true, MigReq: true, Pad: 3, TVer: 1, PKey: 1, FECN: true, BECN: true, DestQPN: 1, AckReq: true, PSN: 1},
		DETH:      wire.DETH{QKey: 1, SrcQPN: 1},
		FETH:      wire.FETH{Placement: 1, Selection: 1},
		RETH:      wire.RETH{VA: 1, RKey: 1, DMALen: 1},
		AtomicETH: wire.AtomicETH{VA: 1, RKey: 1, SwapAdd: 1, Compare: 1},
		AETH:      wire.AETH{Syndrome: 1, MSN: 1}, AtomicAckETH: wire.AtomicAckETH{Orig: 1},
		ImmDt: wire.ImmDt{Data: 1}, IETH: wire.IETH{RKey: 1}, Payload: []byte{1},
	}
	require.NoError(t, p.Parse(make([]byte, wire.BTHLen)))
	require.Equal(t, wire.Packet{Payload: []byte{}}, p)
}

// TestEveryOpcode writes and reads each known opcode with every header field
// set: headers that the opcode carries come back, the others stay zero.
func TestEveryOpcode(t *testing.T) {
	payload := []byte("some payload, 27 bytes long")
	for i := range 256 {
		op := wire.Opcode(i)
		full := wire.Packet{
			BTH:       wire.BTH{Opcode: op, MigReq: true, PKey: wire.DefaultPKey, DestQPN: 0x123456, AckReq: true, PSN: 0x654321},
			DETH:      wire.DETH{QKey: 1, SrcQPN: 2},
			FETH:      wire.FETH{Placement: 3, Selection: 1},
			RETH:      wire.RETH{VA: 4, RKey: 5, DMALen: 6},
			AtomicETH: wire.AtomicETH{VA: 7, RKey: 8, SwapAdd: 9, Compare: 10},
			AETH:      wire.AETH{Syndrome: 11, MSN: 12}, AtomicAckETH: wire.AtomicAckETH{Orig: 13},
			ImmDt: wire.ImmDt{Data: 14}, IETH: wire.IETH{RKey: 15},
		}
		if op.HasPayload() {
			full.Payload = payload
			full.Pad = wire.PadLen(len(payload))
		}
		b := full.Append(dirty(wire.BTHLen + 100))
		var got wire.Packet
		if !op.Known() {
			require.ErrorIs(t, got.Parse(b), wire.ErrOpcode, "%v", op)
			continue
		}
		require.Len(t, b, full.Length())
		require.NoError(t, got.Parse(b), "%v", op)
		want := wire.Packet{BTH: full.BTH, Payload: append([]byte{}, full.Payload...)}
		for _, c := range []struct {
			h    wire.Headers
			copy func()
		}{
			{wire.HasDETH, func() { want.DETH = full.DETH }},
			{wire.HasFETH, func() { want.FETH = full.FETH }},
			{wire.HasRETH, func() { want.RETH = full.RETH }},
			{wire.HasAtomicETH, func() { want.AtomicETH = full.AtomicETH }},
			{wire.HasAETH, func() { want.AETH = full.AETH }},
			{wire.HasAtomicAckETH, func() { want.AtomicAckETH = full.AtomicAckETH }},
			{wire.HasImmDt, func() { want.ImmDt = full.ImmDt }},
			{wire.HasIETH, func() { want.IETH = full.IETH }},
		} {
			if op.Carries(c.h) {
				c.copy()
			}
		}
		require.Equal(t, want, got, "%v", op)
	}
}

// TestSpecifiedBytes has whole packets of the kinds that no recording has,
// composed by hand after the specification.
func TestSpecifiedBytes(t *testing.T) {
	for _, c := range []struct {
		name string
		p    wire.Packet
		want string
	}{
		{"CNP", wire.Packet{BTH: wire.BTH{Opcode: wire.CNP, MigReq: true, PKey: 0xffff, BECN: true, DestQPN: 0x10}},
			"81 40 ffff 40 000010 00 000000 00000000 00000000 00000000 00000000"},
		{"FLUSH", wire.Packet{
			BTH:  wire.BTH{Opcode: wire.RCFlush, PKey: 0xffff, DestQPN: 0x11, AckReq: true, PSN: 0x22},
			FETH: wire.FETH{Placement: 3, Selection: 1},
			RETH: wire.RETH{VA: 0x1000, RKey: 0x33, DMALen: 0x44},
		}, "1c 00 ffff 00 000011 80 000022 00000013 0000000000001000 00000033 00000044"},
		{"ACK with credits", wire.Packet{
			BTH:  wire.BTH{Opcode: wire.RCAck, MigReq: true, PKey: 0xffff, DestQPN: 0x11, PSN: 0x22},
			AETH: wire.AETH{Syndrome: wire.SyndromeACK(7), MSN: 9},
		}, "11 40 ffff 00 000011 00 000022 07 000009"},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := unhex(t, c.want)
			require.Equal(t, want, c.p.Append(dirty(len(want))))
			var p wire.Packet
			require.NoError(t, p.Parse(want))
			p.Payload = nil
			require.Equal(t, c.p, p)
		})
	}
}

func TestPad(t *testing.T) {
	for n, want := range []uint8{0, 3, 2, 1, 0, 3, 2, 1, 0} {
		require.Equal(t, want, wire.PadLen(n))
		require.Equal(t, make([]byte, want), wire.Pad(want))
		require.Equal(t, int(want), cap(wire.Pad(want)))
	}
	require.Len(t, wire.Pad(7), 3)
}
