package verbs

import (
	"context"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/stretchr/testify/require"
)

// waited is the result of a Wait.
type waited struct {
	n   int
	err error
}

// wait starts a Wait, or a WaitAny of several queues.
func wait(ctx context.Context, cqs ...*CQ) <-chan waited {
	got := make(chan waited, 1)
	go func() {
		_, n, err := cqs[0].ctx.WaitAny(ctx, cqs, make([]WC, 4))
		got <- waited{n, err}
	}()
	synctest.Wait()
	return got
}

// A Wake ends one Wait that blocks, and is kept for the next one if none does.
func TestWakeEndsOneWait(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		one := wait(t.Context(), b.rcq)
		require.Empty(t, one)
		b.rcq.Wake()
		require.Equal(t, waited{}, <-one)

		b.rcq.Wake()
		b.rcq.Wake()
		require.Equal(t, waited{}, <-wait(t.Context(), b.rcq), "the next one does not block")
		one = wait(t.Context(), b.rcq)
		require.Empty(t, one, "twice counts as once")
		two := wait(t.Context(), b.rcq)
		b.rcq.Wake()
		synctest.Wait()
		require.Equal(t, 1, len(one)+len(two), "one of several")
		b.rcq.Wake()
		require.Equal(t, []waited{{}, {}}, []waited{<-one, <-two})
	})
}

// A Wait that has completions returns them and leaves the Wake to the next.
func TestWakeTakesNoCompletion(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		must.Get(b.qp.PostRecv(recvs(1, 2)))(t)
		b.receive(1)
		b.rcq.Wake()
		require.Equal(t, waited{n: 1}, <-wait(t.Context(), b.rcq))
		require.Equal(t, waited{}, <-wait(t.Context(), b.rcq))
		one := wait(t.Context(), b.rcq)
		require.Empty(t, one)
		b.receive(1)
		require.Equal(t, waited{n: 1}, <-one)
	})
}

// A Wake between the last look and the sleep is not lost.
func TestWakeBeforeTheSleep(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		b.beforeArm(b.rcq.Wake)
		require.Equal(t, waited{}, <-wait(t.Context(), b.rcq))
	})
}

func TestWakeAllocatesNothing(t *testing.T) {
	b := newBed(t, eight).connect()
	b.Record = false
	wc := make([]WC, 1)
	bad := 0
	require.Zero(t, testing.AllocsPerRun(100, func() {
		b.rcq.Wake()
		if n, err := b.rcq.Wait(t.Context(), wc); n != 0 || err != nil {
			bad++
		}
	}))
	require.Zero(t, bad)
}

// The waiter's place in its queue is used again, and none is left behind.
func TestWaitersAreUsedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		var first *waiter
		for range 3 {
			one := wait(t.Context(), b.rcq)
			b.rcq.wakeMu.Lock()
			require.Len(t, b.rcq.waiters, 1)
			if first == nil {
				first = b.rcq.waiters[0]
			}
			require.Same(t, first, b.rcq.waiters[0])
			b.rcq.wakeMu.Unlock()
			b.rcq.Wake()
			<-one
			require.Empty(t, b.rcq.waiters)
		}
	})
}

// WaitAny begins with another queue each time, so that a busy one does not keep
// the others' completions back.
func TestWaitAnyIsFair(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		must.Get(b.qp.PostRecv(recvs(1, 2, 3, 4)))(t)
		b.receive(4)
		must.Get(b.qp.Post(sends(sig, 5, 6, 7, 8)))(t)
		var got []uint64
		var wc [1]WC
		for range 8 {
			_, n, err := b.c.WaitAny(t.Context(), []*CQ{b.scq, b.rcq}, wc[:])
			require.NoError(t, err)
			got = append(got, ids(wc[:n])...)
		}
		require.Len(t, got, 8)
		require.NotEqual(t, got[0] > 4, got[1] > 4, "turns: %v", got)
	})
}

// The error of one queue comes when none has completions, with its index.
func TestWaitAnyTellsWhoseErrorItIs(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bed) {
		must.Get(b.qp.PostRecv(recvs(1)))(t)
		b.async(abi.EventCQErr, b.scq.key)
		synctest.Wait()
		b.receive(1)
		var wc [1]WC
		list := []*CQ{b.rcq, b.scq}
		_, n, err := b.c.WaitAny(t.Context(), list, wc[:])
		require.NoError(t, err, "completions come first")
		require.Equal(t, 1, n)
		at, _, err := b.c.WaitAny(t.Context(), list, wc[:])
		require.ErrorIs(t, err, syscall.EOVERFLOW)
		require.Equal(t, 1, at)
		b.fail(syscall.EIO, abi.CmdReqNotifyCQ)
		one := wait(t.Context(), b.rcq)
		require.ErrorIs(t, (<-one).err, syscall.EIO)
	})
}
