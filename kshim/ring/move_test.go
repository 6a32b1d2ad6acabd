package ring

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMoveTo(t *testing.T) {
	for _, start := range []int{0, 5, 7} { // the last two wrap
		old, err := New(CQElemSize, 7)
		require.NoError(t, err)
		p, c := old.Producer(), old.Consumer()
		for range start {
			p.Publish(1)
			n, err := c.Ready()
			require.NoError(t, err)
			require.Equal(t, 1, n)
			c.Release(1)
		}
		for i := range 6 {
			p.Slot(0)[0] = byte(i + 1)
			p.Publish(1)
		}
		c.Release(1)
		n, err := p.Waiting()
		require.NoError(t, err)
		require.Equal(t, 5, n)

		small, err := New(CQElemSize, 3)
		require.NoError(t, err)
		_, err = p.MoveTo(small)
		require.ErrorIs(t, err, ErrMapping, "five do not fit into three")
		other, err := New(2*CQElemSize, 31)
		require.NoError(t, err)
		_, err = p.MoveTo(other)
		require.ErrorIs(t, err, ErrMapping, "another element size")
		n, err = p.Waiting()
		require.NoError(t, err)
		require.Equal(t, 5, n, "nothing was moved")

		large, err := New(CQElemSize, 31)
		require.NoError(t, err)
		next, err := p.MoveTo(large)
		require.NoError(t, err)
		next.Slot(0)[0] = 7
		next.Publish(1)
		d := large.Consumer()
		n, err = d.Ready()
		require.NoError(t, err)
		require.Equal(t, 6, n)
		for i := range 6 {
			require.Equal(t, byte(i+2), d.Slot(i)[0])
		}
		n, err = old.Consumer().Ready()
		require.NoError(t, err)
		require.Zero(t, n, "the old one looks empty")
	}
}

func TestMoveToWildIndex(t *testing.T) {
	old, err := New(CQElemSize, 7)
	require.NoError(t, err)
	to, err := New(CQElemSize, 7)
	require.NoError(t, err)
	p := old.Producer()
	le.PutUint32(old.Mapping()[256:], 8) // the consumer's index
	_, err = p.MoveTo(to)
	require.ErrorIs(t, err, ErrIndex)
	_, err = p.Waiting()
	require.ErrorIs(t, err, ErrIndex)
}

func TestConsumerMoveTo(t *testing.T) {
	for _, start := range []int{0, 5, 7} { // the last two wrap
		old, err := New(CQElemSize, 7)
		require.NoError(t, err)
		p, c := old.Producer(), old.Consumer()
		for range start {
			p.Publish(1)
			c.Release(1)
		}
		for i := range 5 {
			p.Slot(0)[0] = byte(i + 1)
			p.Publish(1)
		}
		small, err := New(CQElemSize, 3)
		require.NoError(t, err)
		_, err = c.MoveTo(small)
		require.ErrorIs(t, err, ErrMapping, "five do not fit into three")
		n, err := c.Ready()
		require.NoError(t, err)
		require.Equal(t, 5, n, "nothing was moved")

		large, err := New(CQElemSize, 31)
		require.NoError(t, err)
		next, err := c.MoveTo(large)
		require.NoError(t, err)
		p = large.Producer()
		p.Slot(0)[0] = 6
		p.Publish(1)
		n, err = next.Ready()
		require.NoError(t, err)
		require.Equal(t, 6, n)
		for i := range 6 {
			require.Equal(t, byte(i+1), next.Slot(i)[0])
		}
		n, err = old.Producer().Free()
		require.NoError(t, err)
		require.Equal(t, 7, n, "the old one looks empty")
		*old.prod = 8
		_, err = old.Consumer().MoveTo(large)
		require.ErrorIs(t, err, ErrIndex)
	}
}
