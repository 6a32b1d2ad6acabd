package handle

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHandlesAreNeverMistaken: of more objects than fit in 20 bits, all have
// had a handle of their own.
func TestHandlesAreNeverMistaken(t *testing.T) {
	var table Table[int]
	seen := make(map[int]bool)
	for i := range 1<<20 + 16 {
		v := i
		told := 0
		h := table.Put(&v, func(handle int) { told = handle })
		if h <= 0 || h != told || seen[h] || *table.Get(h) != i {
			t.Fatalf("handle %d of object %d, which was told %d; handed out before: %v", h, i, told, seen[h])
		}
		seen[h] = true
		if !table.Remove(h) || table.Remove(h) || table.Get(h) != nil {
			t.Fatalf("handle %d stays, or goes twice", h)
		}
	}
	for _, h := range []int{0, -1, 1 << 23, 1<<31 - 1, -1 << 31} {
		require.Nil(t, table.Get(h))
		require.False(t, table.Remove(h))
	}
	for h := range seen {
		if table.Get(h) != nil {
			t.Fatalf("handle %d is of another object", h)
		}
	}
}

// TestMapEmpties: numbers that are gone leave nothing, so that random ones do
// not fill memory.
func TestMapEmpties(t *testing.T) {
	var r Map[int]
	numbers := []uint32{0, 1, 255, 256, 1<<16 - 1, 1 << 16, 1<<24 - 2, 1<<24 - 1}
	for _, n := range numbers {
		require.Nil(t, r.Get(n))
		r.Set(n, new(int))
		r.Set(n, new(int(n)))
	}
	for i, n := range numbers {
		require.EqualValues(t, n, *r.Get(n))
		require.Nil(t, r.Get(1<<24|n), "of more than 24 bits")
		r.Set(n, nil)
		r.Set(n, nil)
		require.Nil(t, r.Get(n))
		for _, other := range numbers[i+1:] {
			require.NotNil(t, r.Get(other))
		}
	}
	require.Zero(t, r.root.used)
	for i := range r.root.slots {
		require.Nil(t, r.root.get(uint32(i)))
	}
}

func TestHandleLookupAllocatesNothing(t *testing.T) {
	var table Table[int]
	h := table.Put(new(int), func(int) {})
	require.Zero(t, testing.AllocsPerRun(100, func() { table.Get(h) }))
}
