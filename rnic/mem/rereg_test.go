package mem

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/must"
)

func TestReregister(t *testing.T) { nearAndFar(t, testReregister) }

func testReregister(t *testing.T, place func([]byte) Memory) {
	tab := NewTable([32]byte{1})
	const local = abi.AccessLocalWrite
	const all = local | abi.AccessRemoteWrite | abi.AccessRemoteRead
	a, b := make([]byte, 64), make([]byte, 128)
	other := place(b)
	r := must.Get(tab.Register(1, place(a), 0x1000, local))(t)
	require.ErrorIs(t, tab.Write(1, r.Key(), 0x1000, []byte("x"), true), ErrAccess)

	access := all
	require.NoError(t, tab.Reregister(r.Key(), Change{Access: &access}))
	require.NoError(t, tab.Write(1, r.Key(), 0x1000, []byte("x"), true))
	require.Equal(t, byte('x'), a[0])

	pd := PD(2)
	require.NoError(t, tab.Reregister(r.Key(), Change{PD: &pd}))
	require.ErrorIs(t, tab.Write(1, r.Key(), 0x1000, []byte("y"), true), ErrPD)
	require.NoError(t, tab.Write(2, r.Key(), 0x1000, []byte("y"), true))

	require.NoError(t, tab.Reregister(r.Key(), Change{Mem: &other, IOVA: 0x9000}))
	require.ErrorIs(t, tab.Write(2, r.Key(), 0x1000, []byte("z"), true), ErrBounds)
	require.NoError(t, tab.Write(2, r.Key(), 0x9000+127, []byte("z"), true))
	require.Equal(t, byte('z'), b[127])
	require.Equal(t, byte('y'), a[0])
	require.EqualValues(t, 128, r.mem.Len)
	require.Equal(t, 1, tab.Len())
}

// TestReregisterRefuses: all of a change or nothing of it.
func TestReregisterRefuses(t *testing.T) { nearAndFar(t, testReregisterRefuses) }

func testReregisterRefuses(t *testing.T, place func([]byte) Memory) {
	tab := NewTable([32]byte{1})
	mem := make([]byte, 64)
	r := must.Get(tab.Register(1, place(mem), 0x1000, abi.AccessLocalWrite))(t)
	before := *r
	pd, bad := PD(2), abi.AccessRemoteWrite
	require.ErrorIs(t, tab.Reregister(r.Key(), Change{PD: &pd, Access: &bad}), syscall.EINVAL)
	require.ErrorIs(t, tab.Reregister(r.Key(), Change{PD: &pd, Mem: &Memory{}}), syscall.EINVAL)
	require.ErrorIs(t, tab.Reregister(r.Key(), Change{PD: &pd, Mem: &before.mem, IOVA: 1<<64 - 8}), syscall.EINVAL)
	require.Equal(t, before, *r)
	require.ErrorIs(t, tab.Reregister(r.Key()+1, Change{PD: &pd}), ErrKey)
	key := r.Key()
	require.NoError(t, tab.Deregister(key))
	require.ErrorIs(t, tab.Reregister(key, Change{PD: &pd}), ErrKey)
}
