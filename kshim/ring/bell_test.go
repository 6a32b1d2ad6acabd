package ring

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/must"
)

// As many doorbells are spared as the consumer said, and none where the other
// side is a kernel that does not know the word.
func TestBellWord(t *testing.T) {
	q := must.Get(New(64, 7))(t)
	other := must.Get(Open(q.Mapping()))(t)
	p, c := other.Producer(), q.Consumer()
	publish := func(n int) bool {
		p.Publish(n)
		c.Release(n)
		return p.Spared(n)
	}
	for range 20 { // round the ring
		require.False(t, publish(1))
		from := q.Spare(3)
		require.True(t, publish(1))
		require.True(t, publish(2))
		require.Equal(t, 3, q.Since(from))
		require.False(t, publish(1))
		require.True(t, publish(1), "rung for, and not served")
		q.Ring()
		require.False(t, publish(1))
		q.Spare(3)
		require.False(t, publish(5))
		q.Spare(100) // more than the ring has
		require.True(t, publish(7))
		q.Ring()
	}
	var header [abi.QueueBufData]byte
	copy(header[:], q.Mapping())
	for _, word := range []int{abi.QueueBufLog2ElemSize, abi.QueueBufIndexMask, abi.QueueBufProducerIndex, abi.QueueBufConsumerIndex} {
		clear(header[word : word+4])
	}
	require.Equal(t, [abi.QueueBufData]byte{}, header, "at rest the header is rxe's")
	binary.LittleEndian.PutUint32(q.Mapping()[bellWord:], 0xffffffff) // of a hostile kernel
	p.Spared(1)
}

// A producer that rings only when it must, and a consumer that sleeps until the
// bell rings: no slot is forgotten.
func TestBellIsNotMissed(t *testing.T) {
	q := must.Get(New(64, 8))(t)
	const total = 200000
	bell := make(chan struct{}, 1)
	taken := make(chan struct{}, 1)
	go func() {
		p := q.Producer()
		for i := 0; i < total; {
			n, err := p.Free()
			if err != nil || n == 0 {
				<-taken
				continue
			}
			n = min(n, 1+i%3, total-i)
			p.Publish(n)
			i += n
			if !p.Spared(n) {
				select {
				case bell <- struct{}{}:
				default:
				}
			}
		}
	}()
	c := q.Consumer()
	for got := 0; got < total; {
		q.Spare(1 + got%9)
		for {
			n := must.Get(c.Ready())(t)
			if n == 0 {
				break
			}
			c.Release(n)
			got += n
			select {
			case taken <- struct{}{}:
			default:
			}
		}
		q.Ring()
		if n, _ := c.Ready(); n == 0 && got < total {
			<-bell
		}
	}
}
