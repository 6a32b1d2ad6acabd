package mem

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/must"
)

const remoteAll = abi.AccessRemoteWrite | abi.AccessRemoteRead | abi.AccessRemoteAtomic

// TestWindow reaches memory by a window's key within its bounds and rights.
func TestWindow(t *testing.T) { nearAndFar(t, testWindow) }

func testWindow(t *testing.T, place func([]byte) Memory) {
	for _, access := range []abi.AccessFlags{0, abi.AccessZeroBased} {
		tab := NewTable([32]byte{1})
		buf := make([]byte, 4096)
		r, err := tab.Register(1, place(buf), 0x10000, abi.AccessLocalWrite|abi.AccessMWBind)
		require.NoError(t, err)
		w := must.Get(tab.AllocateWindow(1, true))(t)
		require.Equal(t, ErrKey, tab.Check(1, w.Key(), 0x10100, 8, abi.AccessRemoteRead), "not bound")
		bind := Bind{Window: w.Key(), Key: 77, LKey: r.Key(), Addr: 0x10100, Length: 0x100, Access: remoteAll&^abi.AccessRemoteRead | access}
		old := w.Key()
		require.NoError(t, tab.Bind(1, 5, &bind))
		require.Equal(t, old&^0xff|77, w.Key())
		base := uint64(0x10100)
		if access != 0 {
			base = 0
		}
		require.NoError(t, tab.Write(1, w.Key(), base+8, []byte("bytes"), true))
		require.Equal(t, "bytes", string(buf[0x108:][:5]))
		must.Get(tab.FetchAdd(1, w.Key(), base+0xf8, 1))(t)
		for _, x := range []struct {
			pd      PD
			key     uint32
			addr, n uint64
			need    abi.AccessFlags
			want    error
		}{
			{1, w.Key(), base, 0x100, abi.AccessRemoteWrite, nil},
			{2, w.Key(), base, 8, abi.AccessRemoteWrite, ErrPD},
			{1, old, base, 8, abi.AccessRemoteWrite, ErrKey},
			{1, w.Key(), base - 1, 8, abi.AccessRemoteWrite, ErrBounds},
			{1, w.Key(), base + 0xf9, 8, abi.AccessRemoteWrite, ErrBounds},
			{1, w.Key(), base + 1, 0x100, abi.AccessRemoteWrite, ErrBounds},
			{1, w.Key(), base, 8, abi.AccessRemoteRead, ErrAccess},
			{1, w.Key(), base, 8, 0, ErrKey},
			{1, w.Key(), base, 8, abi.AccessLocalWrite, ErrKey},
		} {
			require.Equal(t, x.want, tab.Check(x.pd, x.key, x.addr, x.n, x.need), "%+v", x)
		}
		require.True(t, tab.Permits(5, w.Key()))
		require.False(t, tab.Permits(6, w.Key()), "another queue pair")
		require.True(t, tab.Permits(6, r.Key()))
		require.Equal(t, ErrWindow, tab.Deregister(r.Key()))
		require.ErrorIs(t, tab.Reregister(r.Key(), Change{}), ErrWindow)
		require.Equal(t, ErrAccess, tab.Bind(1, 5, &Bind{Window: w.Key(), LKey: r.Key(), Addr: 0x10100, Length: 1}), "bound")
		require.Equal(t, ErrAccess, tab.Invalidate(1, 6, w.Key()), "another queue pair's")
		require.Equal(t, ErrPD, tab.Invalidate(2, 5, w.Key()))
		require.NoError(t, tab.Invalidate(1, 5, w.Key()))
		require.Equal(t, ErrKey, tab.Check(1, w.Key(), base, 8, abi.AccessRemoteWrite))

		bind.Window = w.Key()
		require.NoError(t, tab.Bind(1, 5, &bind))
		tab.Release(6)
		require.Equal(t, ErrWindow, tab.Deregister(r.Key()))
		tab.Release(5)
		require.NoError(t, tab.Bind(1, 7, &bind))
		tab.FreeWindow(w)
		require.Equal(t, ErrKey, tab.Check(1, w.Key(), base, 8, abi.AccessRemoteWrite))
		require.NoError(t, tab.Deregister(r.Key()))
	}
}

// TestBindRefuses: nothing changes.
func TestBindRefuses(t *testing.T) { nearAndFar(t, testBindRefuses) }

func testBindRefuses(t *testing.T, place func([]byte) Memory) {
	tab := NewTable([32]byte{2})
	region := func(access abi.AccessFlags) uint32 {
		r := must.Get(tab.Register(1, place(make([]byte, 64)), 0x1000, access))(t)
		return r.Key()
	}
	key, plain, readable := region(abi.AccessLocalWrite|abi.AccessMWBind), region(abi.AccessLocalWrite), region(abi.AccessMWBind)
	one := must.Get(tab.AllocateWindow(1, false))(t)
	two := must.Get(tab.AllocateWindow(1, true))(t)
	was := [2]Window{*one, *two}
	for _, x := range []struct {
		pd   PD
		b    Bind
		want error
	}{
		{1, Bind{Window: one.Key() ^ 1, LKey: key, Addr: 0x1000, Length: 8}, ErrKey},
		{1, Bind{Window: key, LKey: key, Addr: 0x1000, Length: 8}, ErrKey},
		{2, Bind{Window: one.Key(), LKey: key, Addr: 0x1000, Length: 8}, ErrPD},
		{1, Bind{Window: one.Key(), LKey: key ^ 1, Addr: 0x1000, Length: 8}, ErrKey},
		{1, Bind{Window: one.Key(), LKey: one.Key(), Addr: 0x1000, Length: 8}, ErrKey},
		{1, Bind{Window: one.Key(), LKey: plain, Addr: 0x1000, Length: 8}, ErrAccess},
		{1, Bind{Window: one.Key(), LKey: readable, Addr: 0x1000, Length: 8, Access: abi.AccessRemoteWrite}, ErrAccess},
		{1, Bind{Window: one.Key(), LKey: key, Addr: 0x1000, Length: 8, Access: abi.AccessZeroBased}, ErrAccess},
		{1, Bind{Window: one.Key(), LKey: key, Addr: 0xfff, Length: 8}, ErrBounds},
		{1, Bind{Window: one.Key(), LKey: key, Addr: 0x1000, Length: 65}, ErrBounds},
		{1, Bind{Window: one.Key(), LKey: key, Addr: 0x1000, Length: 1<<64 - 1}, ErrBounds},
		{1, Bind{Window: two.Key(), LKey: key, Addr: 0x1000}, ErrKey},
	} {
		require.Equal(t, x.want, tab.Bind(x.pd, 5, &x.b), "%+v", x)
		require.Equal(t, was, [2]Window{*one, *two})
	}
	require.Equal(t, ErrAccess, tab.Invalidate(1, 5, one.Key()), "type 1")
	require.NoError(t, tab.Bind(1, 5, &Bind{Window: one.Key(), Key: 1}), "to nothing")
	require.Equal(t, ErrKey, tab.Check(1, one.Key(), 0x1000, 1, abi.AccessRemoteRead))
	require.NoError(t, tab.Bind(1, 5, &Bind{Window: one.Key(), LKey: key, Addr: 0x1000, Length: 64}))
	require.NoError(t, tab.Bind(1, 5, &Bind{Window: one.Key(), LKey: readable, Addr: 0x1000, Length: 64}), "type 1, again")
	require.NoError(t, tab.Deregister(key))
	require.Equal(t, ErrWindow, tab.Deregister(readable))
}
