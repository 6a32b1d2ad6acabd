package ring

import (
	"bytes"
	"encoding/binary"
	"syscall"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/stretchr/testify/require"
)

var lb = binary.LittleEndian

// put is bytes at an offset: the offsets and widths here are those measured on
// Linux, typed by hand.
type put struct {
	off int
	v   any // uint32, uint64, or []byte
}

func image(size int, puts ...put) []byte {
	b := make([]byte, size)
	for _, p := range puts {
		switch v := p.v.(type) {
		case int:
			lb.PutUint32(b[p.off:], uint32(v))
		case uint64:
			lb.PutUint64(b[p.off:], v)
		case []byte:
			copy(b[p.off:], v)
		}
	}
	return b
}

const big = uint64(0x1122334455667788)

var sendCases = []struct {
	name string
	wr   SendWR
	want []byte // of 512
	n    uint32
}{
	{"write", SendWR{Opcode: abi.WRRDMAWrite, Flags: abi.SendSignaled, SGE: []SGE{{0x1000, 10, 7}, {big, 20, 8}}, RemoteAddr: big, RKey: 99},
		image(512, put{0, uint64(42)}, put{12, 0}, put{16, 2}, put{24, big}, put{32, 99}, put{152, big}, put{184, 30}, put{188, 30}, put{196, 2},
			put{208, uint64(0x1000)}, put{216, 10}, put{220, 7}, put{224, big}, put{232, 20}, put{236, 8}), 30},
	{"write of nothing", SendWR{Opcode: abi.WRRDMAWrite}, image(512, put{0, uint64(42)}), 0},
	{"write with immediate, inline", SendWR{Opcode: abi.WRRDMAWriteWithImm, Flags: abi.SendInline | abi.SendSolicited, Inline: []byte("hello"), RemoteAddr: 5, RKey: 6, Imm: 0x01020304},
		image(512, put{0, uint64(42)}, put{12, 1}, put{16, 12}, put{20, []byte{1, 2, 3, 4}}, put{24, uint64(5)}, put{32, 6}, put{152, uint64(5)}, put{184, 5}, put{188, 5}, put{196, 1}, put{208, []byte("hello")}), 5},
	{"send", SendWR{Opcode: abi.WRSend, Flags: abi.SendFence, SGE: []SGE{{1, 1, 1}}},
		image(512, put{0, uint64(42)}, put{12, 2}, put{16, 1}, put{184, 1}, put{188, 1}, put{196, 1}, put{208, uint64(1)}, put{216, 1}, put{220, 1}), 1},
	{"send with immediate to a datagram", SendWR{Opcode: abi.WRSendWithImm, Imm: 0xdeadbeef, RemoteQPN: 17, RemoteQKey: 0x11111111, AHNum: 3},
		image(512, put{0, uint64(42)}, put{12, 3}, put{20, []byte{0xde, 0xad, 0xbe, 0xef}}, put{24, 17}, put{28, 0x11111111}, put{36, 3}), 0},
	{"read", SendWR{Opcode: abi.WRRDMARead, SGE: []SGE{{1, 2, 3}}, RemoteAddr: big, RKey: 4},
		image(512, put{0, uint64(42)}, put{12, 4}, put{24, big}, put{32, 4}, put{152, big}, put{184, 2}, put{188, 2}, put{196, 1}, put{208, uint64(1)}, put{216, 2}, put{220, 3}), 2},
	{"compare and swap", SendWR{Opcode: abi.WRAtomicCmpAndSwp, SGE: []SGE{{8, 8, 3}}, RemoteAddr: 16, RKey: 4, CompareAdd: big, Swap: big + 1},
		image(512, put{0, uint64(42)}, put{12, 5}, put{24, uint64(16)}, put{32, big}, put{40, big + 1}, put{48, 4}, put{152, uint64(16)}, put{184, 8}, put{188, 8}, put{196, 1}, put{208, uint64(8)}, put{216, 8}, put{220, 3}), 8},
	{"fetch and add", SendWR{Opcode: abi.WRAtomicFetchAndAdd, SGE: []SGE{{8, 8, 3}}, RemoteAddr: 16, RKey: 4, CompareAdd: 1},
		image(512, put{0, uint64(42)}, put{12, 6}, put{24, uint64(16)}, put{32, uint64(1)}, put{48, 4}, put{152, uint64(16)}, put{184, 8}, put{188, 8}, put{196, 1}, put{208, uint64(8)}, put{216, 8}, put{220, 3}), 8},
	{"send with invalidate", SendWR{Opcode: abi.WRSendWithInv, InvalidateRKey: 0x01020304},
		image(512, put{0, uint64(42)}, put{12, 9}, put{20, []byte{4, 3, 2, 1}}), 0},
	{"local invalidate", SendWR{Opcode: abi.WRLocalInv, InvalidateRKey: 9}, image(512, put{0, uint64(42)}, put{12, 7}, put{20, 9}), 0},
}

func TestSendRequestsLieAsInC(t *testing.T) {
	for _, c := range sendCases {
		t.Run(c.name, func(t *testing.T) {
			slot := bytes.Repeat([]byte{0xa5}, 512)
			n := must.Get(EncodeSend(slot, 42, &c.wr))(t)
			require.Equal(t, c.n, n)
			used := abi.SendWQESize + 16*len(c.wr.SGE) + len(c.wr.Inline)
			require.Equal(t, c.want[:used], slot[:used])

			var w SendWQE
			require.NoError(t, w.Decode(slot))
			want := c.wr
			want.ID = 42
			require.Equal(t, c.n, w.Length)
			if want.SGE == nil && want.Flags&abi.SendInline == 0 {
				want.SGE = []SGE{}
			}
			require.Equal(t, want, w.WR)
		})
	}
}

func encodeSend(slot []byte, id uint64, wr *SendWR) error {
	_, err := EncodeSend(slot, id, wr)
	return err
}

func TestEncodeSendRefuses(t *testing.T) {
	tooMany := make([]SGE, 33)
	for _, c := range []struct {
		name string
		wr   SendWR
		err  error
	}{
		{"bind of bytes", SendWR{Opcode: abi.WRBindMW, SGE: []SGE{{Length: 8}}}, ErrLength},
		{"opcode TSO", SendWR{Opcode: 10}, ErrOpcode},
		{"opcode wild", SendWR{Opcode: 0xffffffff}, ErrOpcode},
		{"flags", SendWR{Flags: 1 << 10}, ErrFlags},
		{"inline read", SendWR{Opcode: abi.WRRDMARead, Flags: abi.SendInline}, ErrFlags},
		{"inline atomic", SendWR{Opcode: abi.WRAtomicFetchAndAdd, Flags: abi.SendInline, Inline: make([]byte, 8)}, ErrFlags},
		{"inline and list", SendWR{Flags: abi.SendInline, SGE: []SGE{{}}}, ErrInline},
		{"inline without flag", SendWR{Inline: []byte{1}}, ErrInline},
		{"inline too long", SendWR{Flags: abi.SendInline, Inline: make([]byte, 513)}, ErrInline},
		{"inline longer than slot", SendWR{Flags: abi.SendInline, Inline: make([]byte, 257)}, ErrSlot},
		{"list too long", SendWR{SGE: tooMany}, ErrNumSGE},
		{"list longer than slot", SendWR{SGE: tooMany[:17]}, ErrSlot},
		{"length", SendWR{SGE: []SGE{{Length: 1 << 31}, {Length: 1}}}, ErrLength},
		{"length wraps", SendWR{SGE: []SGE{{Length: 0xffffffff}, {Length: 1}}}, ErrLength},
		{"atomic of 4", SendWR{Opcode: abi.WRAtomicFetchAndAdd, SGE: []SGE{{Length: 4}}}, ErrLength},
		{"invalidate with data", SendWR{Opcode: abi.WRLocalInv, SGE: []SGE{{Length: 4}}}, ErrLength},
	} {
		t.Run(c.name, func(t *testing.T) {
			slot := bytes.Repeat([]byte{0xa5}, 464)
			_, err := EncodeSend(slot, 1, &c.wr)
			require.ErrorIs(t, err, c.err)
			require.ErrorIs(t, err, syscall.EINVAL)
			require.Equal(t, bytes.Repeat([]byte{0xa5}, 464), slot)
		})
	}
	must.Fail(EncodeSend(make([]byte, 100), 1, &SendWR{}))(t, ErrSlot)
}

// TestDecodeSendCuts: a list that holds more than the length is cut, as by rxe:
// the provider of libibverbs posts the first length times the elements.
func TestDecodeSendCuts(t *testing.T) {
	three := SendWR{Opcode: abi.WRSend, SGE: []SGE{{1, 10, 1}, {2, 10, 2}, {3, 10, 3}}}
	for _, c := range []struct {
		at     []put
		want   []SGE
		excess bool
	}{
		{nil, three.SGE, false},
		{[]put{{216 + 16, 100}}, []SGE{{1, 10, 1}, {2, 20, 2}}, true},
		{[]put{{216, -1}, {216 + 16, -1}}, []SGE{{1, 30, 1}}, true},
		{[]put{{184, 0}, {188, 0}}, []SGE{}, true},
		{[]put{{184, 20}, {188, 20}, {216 + 32, 0}}, []SGE{{1, 10, 1}, {2, 10, 2}, {3, 0, 3}}, false},
	} {
		slot := make([]byte, 256)
		require.NoError(t, encodeSend(slot, 77, &three))
		for _, p := range c.at {
			lb.PutUint32(slot[p.off:], uint32(p.v.(int)))
		}
		var w SendWQE
		require.NoError(t, w.Decode(slot))
		require.Equal(t, c.excess, w.Excess)
		require.Equal(t, c.want, w.WR.SGE)
	}
}

func TestDecodeSendRefuses(t *testing.T) {
	ok := SendWR{Opcode: abi.WRRDMAWrite, SGE: []SGE{{1, 10, 1}, {2, 20, 2}}}
	inl := SendWR{Opcode: abi.WRSend, Flags: abi.SendInline, Inline: []byte("0123456789")}
	for _, c := range []struct {
		name string
		wr   SendWR
		bad  put
		err  error
	}{
		{"opcode", ok, put{12, 10}, ErrOpcode},
		{"opcode wild", ok, put{12, -1}, ErrOpcode},
		{"flags", ok, put{16, 0x40}, ErrFlags},
		{"inline flag on read", SendWR{Opcode: abi.WRRDMARead}, put{16, 8}, ErrFlags},
		{"num_sge wild", ok, put{196, -1}, ErrNumSGE},
		{"num_sge beyond the slot", ok, put{196, 4}, ErrNumSGE},
		{"num_sge less", ok, put{196, 1}, ErrLength},
		{"sge shrinks", ok, put{216, 9}, ErrLength},
		{"no sge", ok, put{196, 0}, ErrNoList},
		{"length shrinks", ok, put{184, 29}, ErrState},
		{"length wild", ok, put{184, -1}, ErrLength},
		{"resid", ok, put{188, 0}, ErrState},
		{"cur_sge", ok, put{192, 1}, ErrState},
		{"sge_offset", ok, put{200, 1}, ErrState},
		{"state", ok, put{148, 3}, ErrState},
		{"inline beyond the slot", inl, put{184, []byte{49, 0, 0, 0, 49, 0, 0, 0}}, ErrInline},
		{"atomic of 30", ok, put{12, 5}, ErrLength},
	} {
		t.Run(c.name, func(t *testing.T) {
			slot := make([]byte, 256)
			require.NoError(t, encodeSend(slot, 77, &c.wr))
			var w SendWQE
			require.NoError(t, w.Decode(slot))
			switch v := c.bad.v.(type) {
			case int:
				lb.PutUint32(slot[c.bad.off:], uint32(v))
			case []byte:
				copy(slot[c.bad.off:], v)
			}
			err := w.Decode(slot)
			require.ErrorIs(t, err, c.err)
			require.ErrorIs(t, err, syscall.EINVAL)
			require.EqualValues(t, 77, w.WR.ID, "the id is needed for the error completion")
		})
	}
	var w SendWQE
	for n := range 208 {
		require.ErrorIs(t, w.Decode(make([]byte, n)), ErrSlot)
	}
	require.NoError(t, w.Decode(make([]byte, 208)))
}

func TestReceivesLieAsInC(t *testing.T) {
	slot := bytes.Repeat([]byte{0xa5}, 128)
	wr := RecvWR{SGE: []SGE{{0x1000, 10, 7}, {big, 20, 8}}}
	require.NoError(t, EncodeRecv(slot, 42, &wr))
	want := image(72, put{0, uint64(42)}, put{16, 30}, put{20, 30}, put{28, 2},
		put{40, uint64(0x1000)}, put{48, 10}, put{52, 7}, put{56, big}, put{64, 20}, put{68, 8})
	require.Equal(t, want, slot[:72])
	var w RecvWQE
	require.NoError(t, w.Decode(slot))
	require.EqualValues(t, 30, w.Length)
	require.Equal(t, RecvWR{ID: 42, SGE: wr.SGE}, w.WR)
}

func TestReceiveRefuses(t *testing.T) {
	require.ErrorIs(t, EncodeRecv(make([]byte, 64), 1, &RecvWR{SGE: make([]SGE, 2)}), ErrSlot)
	require.ErrorIs(t, EncodeRecv(make([]byte, 64), 1, &RecvWR{SGE: make([]SGE, 33)}), ErrNumSGE)
	require.ErrorIs(t, EncodeRecv(make([]byte, 128), 1, &RecvWR{SGE: []SGE{{Length: 1 << 31}, {Length: 1 << 31}}}), ErrLength)
	for _, c := range []struct {
		off int
		v   uint32
		err error
	}{{16, 31, ErrState}, {20, 31, ErrState}, {24, 1, ErrState}, {28, 6, ErrNumSGE}, {28, 0xffffffff, ErrNumSGE}, {28, 1, ErrLength}, {32, 1, ErrState}, {48, 11, ErrLength}, {16, 0xffffffff, ErrLength}} {
		slot := make([]byte, 128)
		require.NoError(t, EncodeRecv(slot, 5, &RecvWR{SGE: []SGE{{0x1000, 10, 7}, {big, 20, 8}}}))
		lb.PutUint32(slot[c.off:], c.v)
		var w RecvWQE
		require.ErrorIs(t, w.Decode(slot), c.err, "%d: %#x", c.off, c.v)
		require.EqualValues(t, 5, w.WR.ID)
	}
	var w RecvWQE
	for n := range 40 {
		require.ErrorIs(t, w.Decode(make([]byte, n)), ErrSlot)
	}
}

func TestCompletionsLieAsInC(t *testing.T) {
	slot := bytes.Repeat([]byte{0xa5}, 128)
	wc := WC{ID: big, Status: abi.WCSuccess, Opcode: abi.WCRecvRDMAWithImm, VendorErr: 3, ByteLen: 4, Imm: 0x01020304, QPN: 6, SrcQP: 7, Flags: abi.WCWithImm | abi.WCGRH, PkeyIndex: 9}
	require.NoError(t, EncodeWC(slot, &wc))
	require.Equal(t, image(48, put{0, big}, put{12, 129}, put{16, 3}, put{20, 4}, put{24, []byte{1, 2, 3, 4}}, put{28, 6}, put{32, 7}, put{36, 3}, put{40, []byte{9, 0}}), slot[:48])
	require.Equal(t, bytes.Repeat([]byte{0xa5}, 80), slot[48:])
	var got WC
	require.NoError(t, DecodeWC(slot, &got))
	require.Equal(t, wc, got)

	inv := WC{ID: 1, Opcode: abi.WCRecv, Flags: abi.WCWithInvalidate, InvalidateRKey: 0x01020304}
	require.NoError(t, EncodeWC(slot, &inv))
	require.Equal(t, []byte{4, 3, 2, 1}, slot[24:28])
	require.NoError(t, DecodeWC(slot, &got))
	require.Equal(t, inv, got)

	for n := range 48 {
		require.ErrorIs(t, EncodeWC(slot[:n], &wc), ErrSlot)
		require.ErrorIs(t, DecodeWC(slot[:n], &got), ErrSlot)
	}
}

func TestDataPathDoesNotAllocate(t *testing.T) {
	q := must.Get(New(first(SendCap(4, 220)), 64))(t)
	rq := must.Get(New(RecvElemSize(4), 64))(t)
	cq := must.Get(New(CQElemSize, 64))(t)
	p, c := q.Producer(), q.Consumer()
	rp, rc := rq.Producer(), rq.Consumer()
	cp, cc := cq.Producer(), cq.Consumer()
	var w SendWQE
	var rw RecvWQE
	var wc WC
	wr := SendWR{Opcode: abi.WRRDMAWrite, SGE: []SGE{{1, 2, 3}}}
	rwr := RecvWR{SGE: wr.SGE}
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		check(encodeSend(p.Slot(0), 1, &wr))
		p.Publish(1)
		check(w.Decode(c.Slot(0)))
		c.Release(1)
		check(EncodeRecv(rp.Slot(0), 1, &rwr))
		rp.Publish(1)
		check(rw.Decode(rc.Slot(0)))
		rc.Release(1)
		check(EncodeWC(cp.Slot(0), &wc))
		cp.Publish(1)
		check(DecodeWC(cc.Slot(0), &wc))
		cc.Release(1)
		n, err := p.Free()
		check(err)
		if n != q.Cap() {
			t.Fatal(n)
		}
	}))
}

func BenchmarkSend(b *testing.B) {
	q, _ := New(first(SendCap(4, 0)), 64)
	p, c := q.Producer(), q.Consumer()
	var w SendWQE
	wr := SendWR{Opcode: abi.WRRDMAWrite, SGE: []SGE{{1, 2, 3}}}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = EncodeSend(p.Slot(0), 1, &wr)
		p.Publish(1)
		_ = w.Decode(c.Slot(0))
		c.Release(1)
	}
}

func FuzzOpen(f *testing.F) {
	q, _ := New(64, 3)
	f.Add(q.Mapping()[:1024], uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, n uint8) {
		m := make([]byte, len(b))
		copy(m, b)
		q, err := Open(m)
		if err != nil {
			return
		}
		c, p := q.Consumer(), q.Producer()
		ready, err := c.Ready()
		if err == nil && ready > q.Cap() {
			t.Fatal(ready)
		}
		free, err := p.Free()
		if err == nil && free > q.Cap() {
			t.Fatal(free)
		}
		var w SendWQE
		var r RecvWQE
		var wc WC
		for i := range int(n) {
			_ = w.Decode(c.Slot(i))
			_ = r.Decode(c.Slot(i))
			_ = DecodeWC(c.Slot(i), &wc)
			_, _ = EncodeSend(p.Slot(i), 1, &SendWR{SGE: []SGE{{}}})
		}
		p.Publish(int(n))
		c.Release(int(n))
	})
}

// FuzzDecode holds entries that decode to the promises of their types, and to
// coming back from their own encoding.
func FuzzDecode(f *testing.F) {
	for _, c := range sendCases {
		f.Add(c.want)
	}
	f.Fuzz(func(t *testing.T, slot []byte) {
		var w SendWQE
		if w.Decode(slot) == nil {
			again := make([]byte, len(slot))
			var v SendWQE
			n, err := EncodeSend(again, w.WR.ID, &w.WR)
			if err != nil || n != w.Length {
				t.Fatalf("%+v: length %d, %v", w.WR, n, err)
			}
			if err := v.Decode(again); err != nil {
				t.Fatalf("%+v: %v", w.WR, err)
			}
			require.Equal(t, w.WR, v.WR)
		}
		var r RecvWQE
		if r.Decode(slot) == nil {
			again := make([]byte, len(slot))
			var v RecvWQE
			if err := EncodeRecv(again, r.WR.ID, &r.WR); err != nil {
				t.Fatalf("%+v: %v", r.WR, err)
			}
			require.NoError(t, v.Decode(again))
			require.Equal(t, r.WR, v.WR)
		}
		var wc WC
		_ = DecodeWC(slot, &wc)
	})
}
