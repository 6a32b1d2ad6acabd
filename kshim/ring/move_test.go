package ring

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

func TestMoveTo(t *testing.T) {
	for _, start := range []int{0, 5, 7} { // the last two wrap
		old := must.Get(New(CQElemSize, 7))(t)
		p, c := old.Producer(), old.Consumer()
		for range start {
			p.Publish(1)
			n := must.Get(c.Ready())(t)
			require.Equal(t, 1, n)
			c.Release(1)
		}
		for i := range 6 {
			p.Slot(0)[0] = byte(i + 1)
			p.Publish(1)
		}
		c.Release(1)
		n := must.Get(p.Waiting())(t)
		require.Equal(t, 5, n)

		small := must.Get(New(CQElemSize, 3))(t)
		must.Fail(p.MoveTo(small))(t, ErrMapping, "five do not fit into three")
		other := must.Get(New(2*CQElemSize, 31))(t)
		must.Fail(p.MoveTo(other))(t, ErrMapping, "another element size")
		n = must.Get(p.Waiting())(t)
		require.Equal(t, 5, n, "nothing was moved")

		large := must.Get(New(CQElemSize, 31))(t)
		next := must.Get(p.MoveTo(large))(t)
		next.Slot(0)[0] = 7
		next.Publish(1)
		d := large.Consumer()
		n = must.Get(d.Ready())(t)
		require.Equal(t, 6, n)
		for i := range 6 {
			require.Equal(t, byte(i+2), d.Slot(i)[0])
		}
		n = must.Get(old.Consumer().Ready())(t)
		require.Zero(t, n, "the old one looks empty")
	}
}

func TestMoveToWildIndex(t *testing.T) {
	old := must.Get(New(CQElemSize, 7))(t)
	to := must.Get(New(CQElemSize, 7))(t)
	p := old.Producer()
	le.PutUint32(old.Mapping()[256:], 8) // the consumer's index
	must.Fail(p.MoveTo(to))(t, ErrIndex)
	must.Fail(p.Waiting())(t, ErrIndex)
}

func TestConsumerMoveTo(t *testing.T) {
	for _, start := range []int{0, 5, 7} { // the last two wrap
		old := must.Get(New(CQElemSize, 7))(t)
		p, c := old.Producer(), old.Consumer()
		for range start {
			p.Publish(1)
			c.Release(1)
		}
		for i := range 5 {
			p.Slot(0)[0] = byte(i + 1)
			p.Publish(1)
		}
		small := must.Get(New(CQElemSize, 3))(t)
		must.Fail(c.MoveTo(small))(t, ErrMapping, "five do not fit into three")
		n := must.Get(c.Ready())(t)
		require.Equal(t, 5, n, "nothing was moved")

		large := must.Get(New(CQElemSize, 31))(t)
		next := must.Get(c.MoveTo(large))(t)
		p = large.Producer()
		p.Slot(0)[0] = 6
		p.Publish(1)
		n = must.Get(next.Ready())(t)
		require.Equal(t, 6, n)
		for i := range 6 {
			require.Equal(t, byte(i+1), next.Slot(i)[0])
		}
		n = must.Get(old.Producer().Free())(t)
		require.Equal(t, 7, n, "the old one looks empty")
		*old.prod = 8
		must.Fail(old.Consumer().MoveTo(large))(t, ErrIndex)
	}
}
