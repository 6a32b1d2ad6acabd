package rawudp

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Pair is both sides in one process.
type Pair struct {
	*Sender
	*Receiver
	served sync.WaitGroup
}

// New makes a pair.
func New(size int) (*Pair, error) {
	r, err := NewReceiver(size)
	if err != nil {
		return nil, err
	}
	s, err := NewSender(size, r.Addr())
	if err != nil {
		r.Close()
		return nil, err
	}
	p := &Pair{Sender: s, Receiver: r}
	r.order = s.order
	p.served.Go(func() {
		why := r.Serve()
		s.order.broken.Store(&why)
		_ = s.conn.SetReadDeadline(time.Unix(1, 0)) // wake Move
	})
	return p, nil
}

// Close ends the pair.
func (p *Pair) Close() error {
	err := errors.Join(p.Sender.Close(), p.Receiver.Close())
	p.served.Wait()
	return err
}

// Move moves n messages and returns when the last is acknowledged.
func (p *Pair) Move(n int) error {
	if err := p.Sender.Move(n); err != nil {
		return err
	}
	if n := p.Sender.order.taken.Load(); n < p.sent {
		return fmt.Errorf("rawudp: %d packets sent, and %d taken", p.sent, n)
	}
	return nil
}

func newPair(t testing.TB, size int) *Pair {
	t.Helper()
	p, err := New(size)
	if errors.Is(err, syscall.ENOTSUP) {
		t.Skip("this machine has no UDP socket with GSO; run it on Linux 5.0 or later: ", err)
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
				p.source[size/2] = byte(round + 1)
				require.NoError(t, p.Move(1+200*round/(1+size/4096)))
				require.Equal(t, p.source, p.region)
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
