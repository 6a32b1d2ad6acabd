package verbs

import (
	"context"
	"net"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/stretchr/testify/require"
)

// The tests below run in bubbles: time stands still until every goroutine
// waits, so nothing sleeps and nothing races.

func (b *bed) receive(n int) {
	b.do(func() {
		for range n {
			b.kernel.Recv(&ring.WC{Opcode: abi.WCRecv})
		}
	})
}

// TestWaitPollsAgainAfterArming: a completion that came before the arming gets
// no event.
func TestWaitPollsAgainAfterArming(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		must.Get(b.qp.PostRecv(recvs(1)))(t)
		b.beforeArm(func() { b.receive(1) })
		wc := make([]WC, 4)
		n := must.Get(b.rcq.Wait(t.Context(), wc))(t)
		require.Equal(t, []uint64{1}, ids(wc[:n]))
	})
}

func TestCloseAndDestroyWakeWaiters(t *testing.T) {
	for name, end := range map[string]func(b *bed) error{
		"close":   func(b *bed) error { return b.c.Close() },
		"destroy": func(b *bed) error { _ = b.qp.Destroy(); return b.rcq.Destroy() },
		"overrun": func(b *bed) error { b.async(abi.EventCQErr, b.rcq.key); return nil },
		"fatal":   func(b *bed) error { b.async(abi.EventDeviceFatal, 0); return nil },
		"broken":  func(b *bed) error { b.Do(func() { b.Opened[2].Give(nil) }); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bed) {
				errs := make(chan error, 3)
				for range 3 {
					go func() {
						_, err := b.rcq.Wait(context.Background(), make([]WC, 1))
						errs <- err
					}()
				}
				synctest.Wait()
				require.NoError(t, end(b))
				want := map[string]error{"close": net.ErrClosed, "destroy": syscall.EBADF, "overrun": syscall.EOVERFLOW, "fatal": syscall.EIO, "broken": syscall.EIO}[name]
				for range 3 {
					require.ErrorIs(t, <-errs, want)
				}
			})
		})
	}
}

// TestWaitFindsASilentError: the kernel went to ERR with nothing posted, so no
// completion told; the receive posted then would wait for ever.
func TestWaitFindsASilentError(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.do(func() { b.kernel.SetState(abi.QPSErr) })
		must.Get(b.qp.PostRecv(recvs(1, 2)))(t)
		wc := make([]WC, 4)
		n := must.Get(b.rcq.Wait(t.Context(), wc))(t)
		require.Equal(t, []uint64{1, 2}, ids(wc[:n]))
		require.Equal(t, abi.WCWRFlushErr, wc[0].Status)
		require.Zero(t, b.rcq.suspects.Load())
	})
}

// TestBlockedWaiterFindsASilentError is the same with a waiter that was there
// before.
func TestBlockedWaiterFindsASilentError(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		got := make(chan []uint64)
		go func() {
			wc := make([]WC, 4)
			n, err := b.rcq.Wait(t.Context(), wc)
			if err != nil {
				t.Error(err)
			}
			got <- ids(wc[:n])
		}()
		synctest.Wait()
		b.do(func() { b.kernel.SetState(abi.QPSErr) })
		must.Get(b.qp.PostRecv(recvs(1)))(t)
		require.Equal(t, []uint64{1}, <-got)
	})
}

func TestWaiterWakesForReceivesTheClientFlushes(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.modify(abi.QPSErr)
		got := make(chan uint64)
		for range 2 {
			go func() {
				wc := make([]WC, 1)
				n, err := b.rcq.Wait(t.Context(), wc)
				if err != nil || n != 1 {
					t.Error(n, err)
				}
				got <- wc[0].ID
			}()
		}
		synctest.Wait()
		must.Get(b.qp.PostRecv(recvs(1, 2)))(t)
		require.ElementsMatch(t, []uint64{1, 2}, []uint64{<-got, <-got})
	})
}

// TestAsyncEventTellsOfAnError: a device that raises QP_FATAL is heard.
func TestAsyncEventTellsOfAnError(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		must.Get(b.qp.PostRecv(recvs(1)))(t)
		var seen []Event
		stop := b.qp.ctx.Watch(func(e Event) { seen = append(seen, e) })
		b.do(func() {
			b.kernel.SetState(abi.QPSErr)
			b.async(abi.EventQPFatal, b.qp.key)
			b.async(abi.EventQPFatal, 0xdeadbeef) // of an object that is gone
			b.async(abi.EventPortActive, 1)
		})
		synctest.Wait()
		require.Equal(t, []Event{{Type: abi.EventQPFatal, QP: b.qp}, {Type: abi.EventPortActive, Port: 1}}, seen)
		stop()
		b.async(abi.EventPortErr, 1)
		synctest.Wait()
		require.Len(t, seen, 2)
		require.Equal(t, abi.QPSErr, b.qp.State())
		require.Equal(t, []uint64{1}, ids(poll(t, b.rcq)))
	})
}

// TestOldEventsOfAResetQueuePair: a queue pair that was reset and connected
// again is not taken for one in ERR because of an event from before.
func TestOldEventsOfAResetQueuePair(t *testing.T) {
	for _, e := range []abi.EventType{abi.EventQPFatal, abi.EventQPReqErr, abi.EventQPAccessErr, abi.EventQPLastWQEReached} {
		inBubble(t, func(t *testing.T, b *bed) {
			b.async(e, b.qp.key)
			synctest.Wait()
			require.Equal(t, abi.QPSRTS, b.qp.State(), e)
			b.do(func() {
				require.Equal(t, abi.QPSRTS, b.kernel.State(), e)
				b.kernel.SetState(abi.QPSErr)
				b.async(e, b.qp.key)
			})
			synctest.Wait()
			require.Equal(t, abi.QPSErr, b.qp.State(), e)
		})
	}
}

func TestWaitWhenArmingFails(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.fail(syscall.EIO, abi.CmdReqNotifyCQ)
		must.Fail(b.rcq.Wait(t.Context(), make([]WC, 1)))(t, syscall.EIO)
		b.fail(nil, abi.CmdReqNotifyCQ)
		done := make(chan error)
		go func() {
			_, err := b.rcq.Wait(t.Context(), make([]WC, 1))
			done <- err
		}()
		synctest.Wait()
		must.Get(b.qp.PostRecv(recvs(1)))(t)
		b.receive(1)
		require.NoError(t, <-done)
	})
}
