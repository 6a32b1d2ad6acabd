package ring

import (
	"encoding/binary"
	"math"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWordIsTheMemoryItself(t *testing.T) {
	b := make([]byte, 64)
	w := Word[atomic.Uint64](b, 8)
	require.NotNil(t, w)
	w.Store(0x1122334455667788)
	require.Equal(t, uint64(0x1122334455667788), binary.NativeEndian.Uint64(b[8:]))
	binary.NativeEndian.PutUint32(b[60:], 7)
	require.Equal(t, uint32(7), Word[atomic.Uint32](b, 60).Load())
}

func TestWordRefusesWhatIsNoWord(t *testing.T) {
	b := make([]byte, 64)
	for _, off := range []int{-8, 1, 4, 7, 57, 60, 64, math.MaxInt} {
		require.Nil(t, Word[atomic.Uint64](b, off), "offset %d", off)
	}
	for _, off := range []int{-4, 2, 61, 64} {
		require.Nil(t, Word[atomic.Uint32](b, off), "offset %d", off)
	}
	require.Nil(t, Word[atomic.Uint64](nil, 0))
	require.Nil(t, Word[atomic.Uint64](b[:7], 0))
}
