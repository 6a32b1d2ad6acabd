package emu

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/stretchr/testify/require"
)

// async adopts the context's asynchronous file, which has the first number
// after the device's.
func (c *client) async() kshim.File {
	c.t.Helper()
	return must.Get(c.proc.Adopt(4))(c.t)
}

func readComp(t *testing.T, f kshim.File) uint64 {
	t.Helper()
	var b [64]byte
	n := must.Get(f.Read(t.Context(), b[:]))(t)
	require.Equal(t, 8, n, "one event a read, whatever the buffer")
	return le.Uint64(b[:])
}

// none says that no event is there: the read ends with the context.
func none(t *testing.T, f kshim.File) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.Read(ctx, make([]byte, 16))
	require.Equal(t, context.Canceled, err)
}

// Events are handed over in the order in which they came, those first that
// waited, and count as read.
func TestPush(t *testing.T) {
	c := newClient(t, true)
	ch, fd := c.channel()
	a, _ := c.cq(0xaaaa, fd)
	evA := c.dev.LastCQ.Events
	c.cq(0xbbbb, fd)
	evB := c.dev.LastCQ.Events
	evA.Completion()
	evA.Completion()
	evB.Completion()
	var got []uint64
	ch.(kshim.Pusher).Push(func(b []byte) {
		require.Len(t, b, 8)
		got = append(got, le.Uint64(b))
	})
	require.Equal(t, []uint64{0xaaaa, 0xaaaa, 0xbbbb}, got)
	none(t, ch)
	evA.Completion()
	evB.Completion()
	require.Equal(t, []uint64{0xaaaa, 0xbbbb}, got[3:])
	none(t, ch)

	r := reply[abi.DestroyCQResp](c, abi.CmdDestroyCQ, &abi.DestroyCQ{Response: c.addr, CQHandle: a}, 8)
	require.Equal(t, abi.DestroyCQResp{CompEventsReported: 3}, r)
	evA.Completion() // a late one of a device
	require.Len(t, got, 5)
	require.NoError(t, ch.Close())
	evB.Completion()
	require.Len(t, got, 5)
	must.Fail(ch.Read(t.Context(), make([]byte, 8)))(t, net.ErrClosed)
}

// TestBlockingRead: a read waits without a system call, so that time in a
// bubble stands still until everything else has been done.
func TestBlockingRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, true)
		ch, fd := c.channel()
		c.cq(0x1234, fd)
		ev := c.dev.LastCQ.Events

		start := time.Now()
		go func() {
			time.Sleep(time.Hour)
			ev.Completion()
		}()
		require.Equal(t, uint64(0x1234), readComp(t, ch))
		require.Equal(t, time.Hour, time.Since(start))

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := ch.Read(ctx, make([]byte, 8))
		require.Equal(t, context.DeadlineExceeded, err)

		// Of several readers each event wakes one.
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { readComp(t, ch) })
		}
		synctest.Wait()
		src := &ev.(*completionQueue).completion
		src.queue.mu.Lock()
		for range 3 { // at once, and a single wake-up
			src.queue.append(src)
		}
		src.queue.mu.Unlock()
		src.queue.notify()
		wg.Wait()

		for _, how := range []string{"channel", "device"} {
			errs := make(chan error, 2)
			for range 2 {
				go func() {
					_, err := ch.Read(context.Background(), make([]byte, 8))
					errs <- err
				}()
			}
			synctest.Wait()
			want := []error{syscall.EBADF, net.ErrClosed}
			if how == "device" {
				want = []error{syscall.EIO}
				require.NoError(t, c.f.Close())
			} else {
				require.NoError(t, ch.Close())
			}
			for range 2 {
				err := <-errs
				for _, w := range want {
					require.ErrorIs(t, err, w, "closing the %s", how)
				}
			}
			if how == "channel" {
				ch, _ = c.channel()
			}
		}
		require.NoError(t, ch.Close())
		_, err = ch.Read(t.Context(), make([]byte, 8))
		require.ErrorIs(t, err, net.ErrClosed, "closed counts more than abandoned")
	})
}

// TestEventsUnderLoad: with many raising and many reading, each event is read
// once.
func TestEventsUnderLoad(t *testing.T) {
	c := newClient(t, true)
	ch, fd := c.channel()
	const queues, each, readers = 4, 500, 3
	var raise sync.WaitGroup
	for i := range queues {
		c.cq(uint64(i), fd)
		ev := c.dev.LastCQ.Events
		raise.Go(func() {
			for range each {
				ev.Completion()
			}
		})
	}
	var mu sync.Mutex
	var got [queues]int
	left := queues * each
	var read sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range readers {
		read.Go(func() {
			b := make([]byte, 8)
			for {
				if _, err := ch.Read(ctx, b); err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				got[le.Uint64(b)]++
				left--
				if left == 0 {
					cancel()
				}
				mu.Unlock()
			}
		})
	}
	raise.Wait()
	read.Wait()
	cancel()
	require.Equal(t, [queues]int{each, each, each, each}, got)
}
