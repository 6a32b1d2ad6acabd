package arena

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func alloc(t *testing.T, n int) []byte {
	t.Helper()
	mem, err := Alloc(n)
	require.NoError(t, err)
	require.Len(t, mem, n)
	require.Equal(t, n, cap(mem))
	return mem
}

// Random allocations are zeroed, do not overlap, and leave no arena.
func TestAllocAndFree(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	page := os.Getpagesize()
	var list [][]byte
	for i := range 2000 {
		if len(list) == 100 || len(list) > 0 && random.IntN(3) == 0 {
			k := random.IntN(len(list))
			mem := list[k]
			for _, at := range []int{0, len(mem) / 2, len(mem) - 1} {
				require.Equal(t, mem[1], mem[at], "another allocation lies here, too")
			}
			require.True(t, Free(mem))
			list[k] = list[len(list)-1]
			list = list[:len(list)-1]
			continue
		}
		mem := alloc(t, (1+random.IntN(64))*page)
		for _, at := range []int{0, len(mem) / 2, len(mem) - 1} {
			require.Zero(t, mem[at])
		}
		for k := range mem {
			mem[k] = byte(i%255) + 1
		}
		list = append(list, mem)
	}
	for _, mem := range list {
		require.True(t, Free(mem))
	}
	require.Empty(t, arenas.list)
}

func TestFindAndOpen(t *testing.T) {
	var gone []uint64
	stop := Watch(func(id uint64) { gone = append(gone, id) })
	defer stop()
	small, large := alloc(t, 64<<10), alloc(t, own)
	other := alloc(t, 64<<10)
	id, at, ok := Find(other[100:])
	require.True(t, ok)
	require.EqualValues(t, 64<<10+100, at)
	same, _, _ := Find(small)
	require.Equal(t, id, same)
	alone, at, ok := Find(large[own-1:])
	require.True(t, ok)
	require.NotEqual(t, id, alone)
	require.EqualValues(t, own-1, at)
	_, _, ok = Find(make([]byte, 10))
	require.False(t, ok)
	require.False(t, Free(make([]byte, 10)))

	fd, n, err := Open(id)
	require.NoError(t, err)
	require.Equal(t, size, n)
	other[5] = 42
	_, err = unix.Mmap(fd, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.ErrorIs(t, err, unix.EPERM, "another process may not write")
	view, err := unix.Mmap(fd, 0, n, unix.PROT_READ, unix.MAP_SHARED)
	require.NoError(t, err)
	require.EqualValues(t, 42, view[64<<10+5])
	require.Error(t, unix.Ftruncate(fd, 0))
	require.NoError(t, unix.Munmap(view))
	require.NoError(t, unix.Close(fd))

	require.True(t, Free(small))
	require.True(t, Free(large))
	require.Equal(t, []uint64{alone}, gone)
	require.True(t, Free(other))
	require.Equal(t, []uint64{alone, id}, gone)
	_, _, err = Open(id)
	require.ErrorIs(t, err, unix.ENOENT)
}

// TestSpare: of the arenas that are empty one stays, if little of it was used,
// and what is allocated in it is zeroed, with untouched pages left alone.
func TestSpare(t *testing.T) {
	stop, also := Keep(), Keep()
	page := os.Getpagesize()
	mem := alloc(t, 64*page)
	id, _, _ := Find(mem)
	mem[page], mem[40*page-1] = 1, 2
	require.True(t, Free(mem))
	mem = alloc(t, 64*page)
	same, _, _ := Find(mem)
	require.Equal(t, id, same)
	fd, _, err := Open(id)
	require.NoError(t, err)
	var stat unix.Stat_t
	require.NoError(t, unix.Fstat(fd, &stat))
	require.NoError(t, unix.Close(fd))
	require.EqualValues(t, 2*page, stat.Blocks*512, "pages that were touched")
	require.Equal(t, make([]byte, 64*page), mem)
	more := [][]byte{mem}
	for range spareTouched / own {
		more = append(more, alloc(t, own-page), alloc(t, page))
	}
	for _, mem := range more {
		require.True(t, Free(mem))
	}
	require.Empty(t, arenas.list, "much of it was used")
	require.True(t, Free(alloc(t, page)))
	stop()
	require.Len(t, arenas.list, 1)
	also()
	require.Empty(t, arenas.list)
}
