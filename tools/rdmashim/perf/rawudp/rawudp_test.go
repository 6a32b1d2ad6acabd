package rawudp

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func newPair(t testing.TB, size int) *Pair {
	t.Helper()
	p, err := New(size)
	if errors.Is(err, syscall.ENOTSUP) {
		t.Skip("no such sockets here: ", err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

func TestMove(t *testing.T) {
	for _, size := range []int{1, 64, 4096, 5000, 65536, 1<<20 + 1} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			p := newPair(t, size)
			for round := range 3 {
				p.Source()[size/2] = byte(round + 1)
				require.NoError(t, p.Move(1+200*round/(1+size/4096)))
				require.Equal(t, p.Source(), p.Region())
			}
		})
	}
}

func TestBadSize(t *testing.T) {
	for _, size := range []int{0, -1, 1<<30 + 1} {
		_, err := New(size)
		if !errors.Is(err, syscall.ENOTSUP) {
			require.ErrorIs(t, err, syscall.EINVAL)
		}
	}
}

// A pair that is broken says so instead of waiting.
func TestClosed(t *testing.T) {
	p := newPair(t, 64)
	require.NoError(t, p.Move(1))
	require.NoError(t, p.Close())
	require.Error(t, p.Move(1))
}

func TestNoAllocation(t *testing.T) {
	p := newPair(t, 65536)
	require.NoError(t, p.Move(4))
	require.Zero(t, testing.AllocsPerRun(20, func() {
		if err := p.Move(4); err != nil {
			t.Error(err)
		}
	}))
}
