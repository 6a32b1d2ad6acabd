package uapi

import (
	"bytes"
	"math"
	"os"
	"reflect"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/internal/pages"
)

func TestAlloc(t *testing.T) {
	for _, n := range []int{1, 4095, 4096, 4097, 1 << 20} {
		mem := must.Get(Alloc(n))(t)
		require.Len(t, mem, n)
		require.Equal(t, n, cap(mem))
		require.Zero(t, reflect.ValueOf(mem).Pointer()%uintptr(os.Getpagesize()))
		require.True(t, bytes.Equal(make([]byte, n), mem))
		mem[n-1] = 1
		require.NoError(t, Free(mem))
	}
}

func TestAllocRefuses(t *testing.T) {
	for _, n := range []int{0, -1, math.MinInt, math.MaxInt} {
		_, err := Alloc(n)
		require.ErrorIs(t, err, syscall.EINVAL, "%d bytes", n)
	}
	if math.MaxInt > math.MaxInt32 {
		_, err := Alloc(maxAlloc)
		require.Error(t, err)
	}
}

func TestFreeRefuses(t *testing.T) {
	mem := must.Get(Alloc(2 * os.Getpagesize()))(t)
	require.ErrorIs(t, Free(nil), syscall.EINVAL)
	require.ErrorIs(t, Free(make([]byte, 10)), syscall.EINVAL)
	require.ErrorIs(t, Free(mem[1:]), syscall.EINVAL)

	registration := pages.Register(mem[100:200])
	require.NotNil(t, registration)
	require.ErrorIs(t, Free(mem), syscall.EBUSY)
	registration.Release()
	require.NoError(t, Free(mem[:10]), "the start is enough")
	require.ErrorIs(t, Free(mem), syscall.EINVAL, "freed twice")
	require.Nil(t, pages.Register(make([]byte, 10)))

	var two [2][]byte
	for i := range two {
		two[i] = must.Get(Alloc(1))(t)
	}
	if reflect.ValueOf(two[0]).Pointer() > reflect.ValueOf(two[1]).Pointer() {
		two[0], two[1] = two[1], two[0]
	}
	require.NoError(t, Free(two[1]))
	require.ErrorIs(t, Free(two[1]), syscall.EINVAL, "also above another")
	require.NoError(t, Free(two[0]))
}

// Memory that is freed while its region's device is being closed goes with the
// region.
func TestFreeBesideClose(t *testing.T) {
	mem := must.Get(Alloc(2 * os.Getpagesize()))(t)
	ending, other := pages.Register(mem), pages.Register(mem)
	ending.End()
	require.ErrorIs(t, Free(mem), syscall.EBUSY)
	other.Release()
	require.NoError(t, Free(mem))
	require.ErrorIs(t, Free(mem), syscall.EINVAL)
	mem[0] = 1 // it is still there
	ending.Release()
}

func TestWordsInMemory(t *testing.T) {
	mem, err := Alloc(64)
	require.NoError(t, err)
	defer Free(mem)
	w := must.Get(Uint64At(mem, 56))(t)
	w.Store(math.MaxUint64)
	require.Equal(t, byte(0xff), mem[63])
	h := must.Get(Uint32At(mem, 60))(t)
	require.Equal(t, uint32(math.MaxUint32), h.Load())
	for _, off := range []int{-8, 4, 57, 64, math.MaxInt} {
		_, err = Uint64At(mem, off)
		require.ErrorIs(t, err, syscall.EINVAL)
	}
	_, err = Uint32At(mem, 2)
	require.ErrorIs(t, err, syscall.EINVAL)
}
