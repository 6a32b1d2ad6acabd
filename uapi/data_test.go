package uapi_test

import (
	"bytes"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

func piece(mr uapi.MR, offset, length uint64) uapi.SGE {
	return uapi.SGE{MR: mr, Offset: offset, Length: length}
}

func TestScatterGather(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	x, y := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: 8, RecvDepth: 8, SendSGE: 3, RecvSGE: 3, Inline: 64}, 4096)
	copy(x.Buf, "abcdefghij")
	second, _ := mustMR(t, x.Device, []byte("0123456789"), 0)
	n := must.Get(y.Post(y.QP, []uapi.WR{{ID: -5, Op: uapi.OpRecv, SGE: []uapi.SGE{piece(y.MR, 0, 2), piece(y.MR, 100, 3), piece(y.MR, 200, 50)}}}))(t)
	require.Equal(t, 1, n)
	const own = uapi.WRID(-1 << 63)
	n = must.Get(x.Post(x.QP, []uapi.WR{
		{ID: own, Op: uapi.OpSend, Flags: uapi.Signaled, SGE: []uapi.SGE{piece(x.MR, 1, 2), piece(second, 0, 10), piece(x.MR, 5, 0)}},
	}))(t)
	require.Equal(t, 1, n)
	require.Equal(t, own, x.Next(1)[0].WRID, "all 64 bits of the caller's id")
	wc := y.Next(1)[0]
	require.Equal(t, uapi.WRID(-5), wc.WRID)
	require.Equal(t, uint64(12), wc.ByteLen)
	require.Equal(t, "bc"+"012"+"3456789", string(y.Buf[0:2])+string(y.Buf[100:103])+string(y.Buf[200:207]))

	// Inline: the memory may change as soon as Post returns.
	must.Get(y.Post(y.QP, []uapi.WR{{Op: uapi.OpRecv, SGE: []uapi.SGE{piece(y.MR, 0, 100)}}}))(t)
	must.Get(x.Post(x.QP, []uapi.WR{{Op: uapi.OpSend, Flags: uapi.Signaled | uapi.Inline, SGE: []uapi.SGE{piece(x.MR, 0, 3), piece(second, 8, 2)}}}))(t)
	clear(x.Buf)
	x.Next(1)
	require.Equal(t, uint64(5), y.Next(1)[0].ByteLen)
	require.Equal(t, "abc89", string(y.Buf[:5]))

	// Data: bytes that no region has, in a batch, too.
	must.Get(y.Post(y.QP, []uapi.WR{{Op: uapi.OpRecv, SGE: []uapi.SGE{piece(y.MR, 0, 100)}}, {Op: uapi.OpRecv, SGE: []uapi.SGE{piece(y.MR, 100, 100)}}}))(t)
	data, more := []byte("unregistered"), bytes.Repeat([]byte{'x'}, 64)
	must.Get(x.Post(x.QP, []uapi.WR{
		{Op: uapi.OpSendImm, Imm: 5, Data: data},
		{Op: uapi.OpWrite, Data: more, RemoteAddr: y.Local.Addr + 1000, RKey: y.Local.RKey},
		{Op: uapi.OpWriteImm, Flags: uapi.Inline, Imm: 6, Data: data[:2], RemoteAddr: y.Local.Addr + 2000, RKey: y.Local.RKey},
		{Op: uapi.OpWrite, Flags: uapi.Signaled, Data: []byte{}, RemoteAddr: y.Local.Addr, RKey: y.Local.RKey},
	}))(t)
	clear(data)
	clear(more)
	x.Next(1)
	two := y.Next(2)
	require.Equal(t, []uint64{12, 2}, []uint64{two[0].ByteLen, two[1].ByteLen})
	require.Equal(t, []uint32{5, 6}, []uint32{two[0].Imm, two[1].Imm})
	require.Equal(t, "unregistered", string(y.Buf[:12]))
	require.Equal(t, strings.Repeat("x", 64)+"\x00", string(y.Buf[1000:1065]))
	require.Equal(t, "un\x00", string(y.Buf[2000:2003]))
}

func TestPostRefuses(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	x, _ := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: 8, RecvDepth: 8, SendSGE: 2, Inline: 16}, 4096)
	one := []uapi.SGE{piece(x.MR, 0, 8)}
	for name, wr := range map[string]uapi.WR{
		"unknown operation":    {Op: 10, SGE: one},
		"wild operation":       {Op: 1 << 31, SGE: one},
		"unknown flag":         {Op: uapi.OpSend, Flags: 1 << 10, SGE: one},
		"too many pieces":      {Op: uapi.OpSend, SGE: []uapi.SGE{piece(x.MR, 0, 1), piece(x.MR, 0, 1), piece(x.MR, 0, 1)}},
		"recv too many pieces": {Op: uapi.OpRecv, SGE: []uapi.SGE{piece(x.MR, 0, 1), piece(x.MR, 0, 1)}},
		"inline too long":      {Op: uapi.OpSend, Flags: uapi.Inline, SGE: []uapi.SGE{piece(x.MR, 0, 17)}},
		"inline read":          {Op: uapi.OpRead, Flags: uapi.Inline, SGE: one},
		"inline atomic":        {Op: uapi.OpFetchAdd, Flags: uapi.Inline, SGE: one},
		"data too long":        {Op: uapi.OpSend, Data: make([]byte, 17)},
		"data and pieces":      {Op: uapi.OpSend, Data: []byte{}, SGE: one},
		"data of a read":       {Op: uapi.OpRead, Data: make([]byte, 8)},
		"data of an atomic":    {Op: uapi.OpFetchAdd, Data: make([]byte, 8)},
		"data of a receive":    {Op: uapi.OpRecv, Data: make([]byte, 8)},
		"atomic of 4":          {Op: uapi.OpFetchAdd, SGE: []uapi.SGE{piece(x.MR, 0, 4)}},
		"atomic of nothing":    {Op: uapi.OpCompareSwap},
		"out of bounds":        {Op: uapi.OpSend, SGE: []uapi.SGE{piece(x.MR, 4090, 7)}},
		"wraps over":           {Op: uapi.OpSend, SGE: []uapi.SGE{piece(x.MR, 1<<64-1, 2)}},
		"recv out of bounds":   {Op: uapi.OpRecv, SGE: []uapi.SGE{piece(x.MR, 4090, 7)}},
	} {
		n, err := x.Post(x.QP, []uapi.WR{{ID: 1, Op: uapi.OpWrite, Flags: uapi.Signaled, SGE: one, RemoteAddr: x.Peer.Addr, RKey: x.Peer.RKey}, wr})
		require.ErrorIs(t, err, syscall.EINVAL, name)
		require.Equal(t, 1, n, "%s: the one before it was posted", name)
		require.Equal(t, uapi.WRID(1), x.Next(1)[0].WRID, name)
	}
	n := must.Get(x.Post(x.QP, nil))(t)
	require.Zero(t, n)
}

// TestLongMessages: each operation carries more than rxe's former limit of
// 8 MiB and, with all tests, a SEND the 2^31 bytes that the device allows.
func TestLongMessages(t *testing.T) {
	t.Parallel()
	const most, pieces = int64(1 << 31), 32
	size := amount.Of(8<<20+1, int(most/pieces))
	a, b := uapitest.Pair(t, "")
	require.EqualValues(t, most, must.Get(a.QueryDevice())(t).MaxMessage)
	x, y := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: 2, RecvDepth: 2, SendSGE: pieces, RecvSGE: pieces}, size)
	fill := func(first int) {
		for i := range x.Buf {
			x.Buf[i] = byte(first + i + i>>12)
		}
	}
	local := uapi.SGE{MR: x.MR, Length: uint64(size)}
	fill(1)
	x.Must(x.Write(x.QP, local, x.Peer))
	x.Next(1)
	require.True(t, bytes.Equal(x.Buf, y.Buf))
	clear(x.Buf)
	x.Must(x.Read(x.QP, local, x.Peer))
	x.Next(1)
	require.True(t, bytes.Equal(x.Buf, y.Buf))

	// Both lists are of the same memory again and again.
	fill(2)
	of := func(mr uapi.MR) []uapi.SGE {
		return slices.Repeat([]uapi.SGE{piece(mr, 0, uint64(size))}, amount.Of(1, pieces))
	}
	must.Get(y.Post(y.QP, []uapi.WR{{Op: uapi.OpRecv, SGE: of(y.MR)}}))(t)
	must.Get(x.Post(x.QP, []uapi.WR{{Op: uapi.OpSend, Flags: uapi.Signaled, SGE: of(x.MR)}}))(t)
	x.Next(1)
	require.EqualValues(t, int64(size)*int64(amount.Of(1, pieces)), y.Next(1)[0].ByteLen)
	require.True(t, bytes.Equal(x.Buf, y.Buf))
}

func TestMessageLongerThanTheDeviceAllows(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	info := must.Get(a.QueryDevice())(t)
	require.GreaterOrEqual(t, info.MaxMessage, uint64(8<<20))
	x, _ := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: 2, SendSGE: 2}, int(info.MaxMessage)+1)
	_, err := x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, info.MaxMessage+1)
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = x.Post(x.QP, []uapi.WR{{Op: uapi.OpWrite, SGE: []uapi.SGE{piece(x.MR, 0, info.MaxMessage), piece(x.MR, 0, 1)}}})
	require.ErrorIs(t, err, syscall.EINVAL, "also in pieces")
}
