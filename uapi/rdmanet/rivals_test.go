package rdmanet_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// Fifteen mistakes that transports of this kind were seen to make are tests
// whose names begin with TestRival, where the mistake would be made:
//
//	02 FullSendQueueWaits         msgring
//	03 CreditBeforeCompletion     msgring/core
//	04 BothWriteThroughSmallRings
//	05 NoMissingReceive           msgring
//	06 MixedCompletions           msgring
//	07 DoneWithoutFlush           msgring
//	08 CloseDuringCalls
//	09 CloseIsBounded, DeadPeer   DeadPeer with processes
//	10 BothClose                  msgring
//	11 Deadlines
//	12 Lengths                    msgring; the bytes of the hello in core
//	13 ManyDialers
//	14 ConnectionsLeaveNothing
//	15 StalledReader
//	16 HostilePeer                msgring; FuzzHostilePeer in core

// TestRival04BothWriteThroughSmallRings: both ends write 64 MiB at once, which
// the rings hold a fraction of.
func TestRival04BothWriteThroughSmallRings(t *testing.T) {
	n := 64 << 20
	if testing.Short() || network != "" {
		n = 4 << 20
	}
	virtual(t, func(t *testing.T) {
		x, y := connect(t, rdmanet.Config{Ring: 16 << 10})
		bothWays(t, x, y, n)
		require.EqualValues(t, n, x.Stats().BytesSent)
		require.EqualValues(t, n, y.Stats().BytesReceived)
		require.Equal(t, 16<<10, x.Info().PeerRing)
	})
}

// TestRival08CloseDuringCalls: Close at any moment of calls ends them with
// net.ErrClosed, and gives memory back after the posts that read it.
func TestRival08CloseDuringCalls(t *testing.T) {
	virtual(t, func(t *testing.T) {
		h := newHost(t, rdmanet.Config{Ring: 16 << 10})
		for round := range 20 {
			x, y := h.join(t)
			go func() { _, _ = io.Copy(y, y) }()
			var calls sync.WaitGroup
			moment := make(chan struct{})
			for op, call := range map[string]func([]byte) (int, error){"read": x.Read, "write": x.Write} {
				calls.Go(func() {
					buf := make([]byte, 5000)
					var err error
					for n := 0; err == nil; n++ {
						if op == "read" && n == round {
							close(moment)
						}
						_, err = call(buf)
					}
					var e *net.OpError
					if !errors.Is(err, net.ErrClosed) || !errors.As(err, &e) || e.Op != op {
						t.Errorf("%s: %v", op, err)
					}
				})
			}
			<-moment
			require.NoError(t, x.Close())
			calls.Wait()
			require.ErrorIs(t, x.SetDeadline(time.Now()), net.ErrClosed)
			require.ErrorIs(t, x.CloseWrite(), net.ErrClosed)
			require.NoError(t, x.CloseContext(limited(t)))
			require.NoError(t, y.Close())
		}
	})
}

// TestRival09CloseIsBounded: the peer's program stands still with a
// full ring; Close needs its device only.
func TestRival09CloseIsBounded(t *testing.T) {
	virtual(t, func(t *testing.T) {
		x, y := connect(t, rdmanet.Config{Ring: 16 << 10})
		require.NoError(t, x.SetWriteDeadline(time.Now().Add(time.Millisecond)))
		_, err := x.Write(make([]byte, 256<<10))
		requireTimeout(t, err)
		require.NoError(t, x.CloseContext(limited(t)))
		must.Get(io.Copy(io.Discard, y))(t)
	})
}

// TestRival11Deadlines: the connection is usable after one, and nothing of what
// a Write counted is lost or sent twice.
func TestRival11Deadlines(t *testing.T) {
	virtual(t, func(t *testing.T) {
		x, y := connect(t, rdmanet.Config{Ring: 16 << 10})
		require.NoError(t, y.SetReadDeadline(time.Now().Add(time.Millisecond)))
		_, err := y.Read(make([]byte, 1))
		requireTimeout(t, err)
		data := make([]byte, 256<<10)
		_, _ = rand.NewChaCha8([32]byte{7}).Read(data)
		require.NoError(t, x.SetWriteDeadline(time.Now().Add(time.Millisecond)))
		n, err := x.Write(data)
		requireTimeout(t, err)
		require.Less(t, n, len(data))
		require.NoError(t, x.SetDeadline(time.Time{}))
		require.NoError(t, y.SetDeadline(time.Time{}))
		go func() {
			_, _ = x.Write(data[n:])
			_ = x.CloseWrite()
		}()
		got := must.Get(io.ReadAll(y))(t)
		require.True(t, bytes.Equal(data, got))
	})
}

// TestRival13ManyDialers: 64 dialers at once connect, each to its
// own answer, while others never confirm theirs. These are fewer than the
// listener has places for: beyond that uapi gives up the slow ones.
func TestRival13ManyDialers(t *testing.T) {
	h := softHost(t, rdmanet.Config{Ring: 16 << 10})
	forge(t, h, 4)
	require.Eventually(t, func() bool { return len(h.server.OpenHandles()) > 0 }, patience, time.Millisecond, "a forged request is being accepted")
	go h.echoBytes()
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			c, err := h.GRPC(limited(t), h.addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			b := []byte{byte(i)}
			_, err = c.Write(b)
			if err == nil {
				_, err = c.Read(b)
			}
			if err != nil || b[0] != byte(i) {
				t.Errorf("dialer %d: %d, %v", i, b[0], err)
			}
		})
	}
	all.Wait()
}

// TestRival14ConnectionsLeaveNothing: 1,000 one after another and 256 at once,
// whose objects, goroutines and descriptors the host and TestMain look for.
func TestRival14ConnectionsLeaveNothing(t *testing.T) {
	oneByOne, atOnce := 1000, 256
	if testing.Short() || network != "" {
		oneByOne, atOnce = 100, 64
	}
	virtual(t, func(t *testing.T) {
		h := newHost(t, rdmanet.Config{Ring: 16 << 10})
		turn := func() error {
			x, y, err := h.pipe()
			if err == nil {
				// x's peer may be another's y, which has closed already.
				if _, err = x.Write([]byte("x")); errors.Is(err, syscall.EPIPE) {
					err = nil
				}
			}
			if err == nil {
				err = x.Close()
			}
			if err == nil {
				err = y.Close()
			}
			return err
		}
		for range oneByOne {
			require.NoError(t, turn())
		}
		var all sync.WaitGroup
		for range atOnce {
			all.Go(func() {
				if err := turn(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}

// TestRival15StalledReader: the peer's program stands still, and its device
// does not. A writer's deadline fires, the keepalive takes neither end for dead
// in an hour, and then everything arrives.
func TestRival15StalledReader(t *testing.T) {
	virtual(t, func(t *testing.T) {
		x, y := connect(t, rdmanet.Config{Ring: 16 << 10})
		data := bytes.Repeat([]byte("stalled "), 8<<10)
		start := time.Now()
		require.NoError(t, x.SetWriteDeadline(start.Add(time.Second)))
		n, err := x.Write(data)
		requireTimeout(t, err)
		require.Equal(t, time.Second, time.Since(start))
		require.LessOrEqual(t, n, 16<<10)
		time.Sleep(time.Hour) // virtual
		require.NoError(t, x.SetWriteDeadline(time.Time{}))
		go func() {
			if _, err := x.Write(data[n:]); err != nil {
				t.Error(err)
			}
			_ = x.CloseWrite()
		}()
		got := must.Get(io.ReadAll(y))(t)
		require.True(t, bytes.Equal(data, got))
	})
}
