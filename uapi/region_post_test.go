package uapi_test

import (
	"encoding/binary"
	"math"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

func TestRegionSlice(t *testing.T) {
	t.Parallel()
	whole := uapi.Region{Addr: 0x1000, Length: 64, RKey: 7, Access: uapi.AccessRemoteRead}
	for _, c := range []struct {
		off, n uint64
		fits   bool
	}{
		{0, 64, true}, {0, 1, true}, {63, 1, true}, {8, 56, true},
		{0, 65, false}, {64, 1, false}, {8, 57, false}, {1000, 1, false},
		{0, 0, false}, {64, 0, false}, // a region has at least one byte
		{1, math.MaxUint64, false}, {math.MaxUint64, 2, false}, {math.MaxUint64 - 7, 8, false},
	} {
		part, err := whole.Slice(c.off, c.n)
		if c.fits {
			require.NoError(t, err)
			require.Equal(t, uapi.Region{Addr: 0x1000 + c.off, Length: c.n, RKey: 7, Access: uapi.AccessRemoteRead}, part)
			continue
		}
		require.ErrorIs(t, err, syscall.EINVAL, "%d bytes at %d", c.n, c.off)
		require.ErrorContains(t, err, "no part of its 64 bytes")
		require.Zero(t, part)
	}
	_, err := uapi.Region{Addr: math.MaxUint64, Length: 2}.Slice(0, 1)
	require.ErrorIs(t, err, syscall.EINVAL)
	part := must.Get(must.Get(whole.Slice(8, 32))(t).Slice(8, 16))(t)
	require.Equal(t, uint64(0x1010), part.Addr)
	_, err = part.Slice(8, 16)
	require.ErrorIs(t, err, syscall.EINVAL, "what it was cut from does not count")
}

func TestPostsOnRegions(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	x, y := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: 8, RecvDepth: 1}, 64)
	copy(x.Buf, "abcdefgh")
	binary.NativeEndian.PutUint64(y.Buf[56:], 40)
	place := func(off, n uint64) uapi.Region { return must.Get(x.Peer.Slice(off, n))(t) }
	y.Must(y.PostRecv(y.QP, y.MR, 0, 1))
	require.Equal(t, uapi.WRID(0), x.Must(x.Write(x.QP, piece(x.MR, 2, 3), place(10, 54))), "fewer bytes than there are")
	x.Must(x.WriteImm(x.QP, piece(x.MR, 0, 2), place(20, 2), 7))
	x.Must(x.Read(x.QP, piece(x.MR, 16, 4), place(9, 8)))
	x.Must(x.FetchAdd(x.QP, piece(x.MR, 32, 8), place(56, 8), 2))
	x.Must(x.CompareSwap(x.QP, piece(x.MR, 40, 8), place(56, 8), 42, 7))
	x.Next(5)
	require.Equal(t, uint32(7), y.Next(1)[0].Imm)
	require.Equal(t, "cde", string(y.Buf[10:13]))
	require.Zero(t, y.Buf[13])
	require.Equal(t, "ab", string(y.Buf[20:22]))
	require.Equal(t, "\x00cde", string(x.Buf[16:20]))
	require.Zero(t, x.Buf[20])
	require.Equal(t, []uint64{40, 42, 7}, []uint64{
		binary.NativeEndian.Uint64(x.Buf[32:]), binary.NativeEndian.Uint64(x.Buf[40:]), binary.NativeEndian.Uint64(y.Buf[56:])})
}

// A mistake that the description of the peer's memory shows is the call's
// error. The queue pair has then posted nothing, and works on.
func TestPostsOnRegionsRefuse(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	x, _ := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: 8, RecvDepth: 8}, 64)
	far := func(change func(*uapi.Region)) uapi.Region {
		r := x.Peer
		change(&r)
		return r
	}
	short := far(func(r *uapi.Region) { r.Length = 7 })
	crooked := far(func(r *uapi.Region) { r.Addr, r.Length = r.Addr+4, 8 })
	wraps := far(func(r *uapi.Region) { r.Addr = math.MaxUint64 - 15 })
	barred := func(right uapi.Access) uapi.Region { return far(func(r *uapi.Region) { r.Access &^= right }) }
	eight := piece(x.MR, 0, 8)
	for _, c := range []struct {
		text   string
		local  uapi.SGE
		remote uapi.Region
		posts  string // of which calls: w, i, r, f, c
	}{
		{"8 bytes at the start of the peer's region, which has 7", eight, short, "wirfc"},
		{"which has 64", piece(x.MR, 0, 1<<63), x.Peer, "wirfc"},
		{"which has 64", piece(x.MR, 0, math.MaxUint64), x.Peer, "wirfc"},
		{"multiple of 8", eight, crooked, "fc"},
		{"past the end of memory", eight, wraps, "wirfc"},
		{"no bytes", eight, uapi.Region{}, "wirfc"},
		{"without REMOTE_WRITE", eight, barred(uapi.AccessRemoteWrite), "wi"},
		{"without REMOTE_READ", eight, barred(uapi.AccessRemoteRead), "r"},
		{"without REMOTE_ATOMIC", eight, barred(uapi.AccessRemoteAtomic), "fc"},
		{"8 bytes", piece(x.MR, 0, 4), x.Peer, "fc"},
	} {
		for _, post := range c.posts {
			_, err := map[rune]func() (uapi.WRID, error){
				'w': func() (uapi.WRID, error) { return x.Write(x.QP, c.local, c.remote) },
				'i': func() (uapi.WRID, error) { return x.WriteImm(x.QP, c.local, c.remote, 1) },
				'r': func() (uapi.WRID, error) { return x.Read(x.QP, c.local, c.remote) },
				'f': func() (uapi.WRID, error) { return x.FetchAdd(x.QP, c.local, c.remote, 1) },
				'c': func() (uapi.WRID, error) { return x.CompareSwap(x.QP, c.local, c.remote, 1, 2) },
			}[post]()
			require.ErrorIs(t, err, syscall.EINVAL, "%c: %s", post, c.text)
			require.ErrorContains(t, err, c.text, string(post))
		}
	}
	require.Equal(t, uapi.WRID(0), x.Must(x.Write(x.QP, piece(x.MR, 0, 0), x.Peer)), "no id was used up")
	x.Next(1)

	// Where the description is silent about access, the peer decides.
	hidden := far(func(r *uapi.Region) { r.Access = 0 })
	x.Must(x.Write(x.QP, eight, hidden))
	x.Next(1)
}
