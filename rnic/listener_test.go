package rnic

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/link"
)

// looked counts the looks at a link since it had packets.
type looked struct {
	link.Link
	vain  int // looks in vain; guarded by rx of its device
	sends chan int
}

func (l *looked) Recv(batch []link.Packet) (int, error) {
	n, err := l.Link.Recv(batch)
	if l.vain++; n > 0 {
		l.vain = 0
	}
	return n, err
}

func (l *looked) Send(batch []link.Packet) error {
	l.sends <- l.vain
	return l.Link.Send(batch)
}

// The listener sends acknowledgements as soon as there are no more packets,
// before it spins: nobody is about to answer.
func TestListenerAcknowledgesFirst(t *testing.T) {
	links := simLinks(t)
	const n = 100
	first := 0
	l := &looked{Link: links[1], sends: make(chan int, 10*n)}
	links[1] = l
	a, b := connected(t, links, 1<<20, abi.MTU1024, qpOptions{})
	for i := range n {
		a.qp.post(write(a, b, uint64(i+1), 0, 0, 64))
		a.qp.send.waitStatus(uint64(i+1), abi.WCSuccess)
		if <-l.sends <= 1 {
			first++
		}
	}
	require.Greater(t, first, n/2, "but where another goroutine has the device")
}
