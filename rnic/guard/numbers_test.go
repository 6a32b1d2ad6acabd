package guard

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// numberList is a source of random numbers that were chosen.
type numberList []uint64

func (l *numberList) Uint64() uint64 {
	n := (*l)[0]
	*l = (*l)[1:]
	return n
}

// TestNumbers: numbers of the management, of multicast, in use and of queue
// pairs that died lately are left out; the upper bits do not count.
func TestNumbers(t *testing.T) {
	n := NewNumbers(nil)
	draw := func(numbers ...uint64) wire.QPN {
		list := numberList(numbers)
		n.random = &list
		return n.Draw(func(n wire.QPN) bool { return n == 7 || n == 8 })
	}
	require.Equal(t, wire.QPN(5), draw(0, 1, 0xffffff, 7, 8, 1<<60|5))
	n.Retire(5)
	require.Equal(t, wire.QPN(6), draw(5, 6))
	for i := range wire.QPN(restNumbers) {
		require.Equal(t, wire.QPN(6), draw(5, 6))
		n.Retire(100 + i)
	}
	require.Equal(t, wire.QPN(5), draw(5), "it has rested")
}
