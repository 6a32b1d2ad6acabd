package uapi

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRadix(t *testing.T) {
	var r radix[int]
	numbers := []uint32{1, 2, 255, 256, 0xffff, 0x10000, 0x123456, max24}
	for i, n := range numbers {
		require.Nil(t, r.get(n))
		r.set(n, &i)
	}
	for i, n := range numbers {
		require.Equal(t, i, *r.get(n))
	}
	require.Nil(t, r.get(0))
	require.Nil(t, r.get(max24+1))
	require.Nil(t, r.get(1<<31))
	r.set(255, nil)
	require.Nil(t, r.get(255))
}

func TestHandlesAreNeverMistaken(t *testing.T) {
	var table handleTable[int]
	seen := make(map[int]bool)
	for i := range 1000 {
		v := i
		told := 0
		h := table.put(&v, func(handle int) { told = handle })
		require.Positive(t, h)
		require.Equal(t, h, told)
		require.False(t, seen[h], "handle %d was handed out twice", h)
		seen[h] = true
		require.Equal(t, i, *table.get(h))
		require.True(t, table.remove(h))
		require.False(t, table.remove(h))
		require.Nil(t, table.get(h))
	}
	for _, h := range []int{0, -1, 1 << 23, 1<<31 - 1, -1 << 31} {
		require.Nil(t, table.get(h))
		require.False(t, table.remove(h))
	}
	for h := range seen {
		require.Nil(t, table.get(h))
	}
}

// TestRadixEmpties: numbers that are gone leave nothing, so that random ones do
// not fill memory.
func TestRadixEmpties(t *testing.T) {
	var r radix[int]
	numbers := []uint32{0, 1, 255, 256, 1<<16 - 1, 1 << 16, max24 - 1, max24}
	for _, n := range numbers {
		r.set(n, new(int))
		r.set(n, new(int))
	}
	for i, n := range numbers {
		require.NotNil(t, r.get(n))
		r.set(n, nil)
		r.set(n, nil)
		require.Nil(t, r.get(n))
		for _, other := range numbers[i+1:] {
			require.NotNil(t, r.get(other))
		}
	}
	require.Zero(t, r.root.used)
	for i := range r.root.slots {
		require.Nil(t, r.root.get(uint32(i)))
	}
}

func TestHandlesConcurrently(t *testing.T) {
	var table handleTable[int]
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 2000 {
				v := i
				h := table.put(&v, func(int) {})
				if *table.get(h) != i || !table.remove(h) || table.get(h) != nil {
					t.Error("handle does not find its object")
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestHandleLookupAllocatesNothing(t *testing.T) {
	var table handleTable[int]
	h := table.put(new(int), func(int) {})
	require.Zero(t, testing.AllocsPerRun(100, func() { table.get(h) }))
}
