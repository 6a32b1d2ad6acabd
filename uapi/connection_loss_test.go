package uapi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/must"
)

// TestPeerDiesInEachState: in each state in which the other machine loses its
// power, this side gets a named error, within the bound.
func TestPeerDiesInEachState(t *testing.T) {
	const slack = time.Second
	run := func(name string, f func(t *testing.T, a, b *cmHost, l *Listener)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := twoHosts(t)
				l := listening(t, b, ListenConfig{})
				f(t, a, b, l)
			})
		})
	}
	within := func(t *testing.T, bound time.Duration, f func()) {
		t.Helper()
		start := time.Now()
		f()
		require.LessOrEqual(t, time.Since(start), bound+slack)
	}
	run("listener with the request", func(t *testing.T, a, b *cmHost, l *Listener) {
		go func() {
			r := must.Get(l.Accept(t.Context()))(t)
			b.off.Store(true)
			_ = r
		}()
		within(t, DefaultConnectTimeout, func() {
			_, err := a.Dial(t.Context(), dialable(b.Device, l), DialConfig{})
			require.ErrorIs(t, err, ErrUnreachable)
		})
		require.Empty(t, a.OpenHandles())
	})
	run("dialler before the acceptance", func(t *testing.T, a, b *cmHost, l *Listener) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		dialled := make(chan struct{})
		go func() {
			defer close(dialled)
			_, err := a.Dial(ctx, dialable(b.Device, l), DialConfig{})
			require.Error(t, err)
		}()
		r, err := l.Accept(t.Context())
		require.NoError(t, err)
		a.off.Store(true)
		cancel()
		<-dialled
		within(t, DefaultConnectTimeout, func() {
			_, err = r.Accept(t.Context(), nil)
			require.ErrorIs(t, err, ErrUnreachable)
		})
		require.Empty(t, b.OpenHandles())
	})
	run("with requests outstanding", func(t *testing.T, a, b *cmHost, l *Listener) {
		j := join(t, a.Device, b.Device, l, DialConfig{})
		mr := must.Get(a.RegMR(make([]byte, 64), AccessLocalWrite))(t)
		b.off.Store(true)
		must.Get(a.PostSend(j.qa, mr, 64))(t)
		within(t, keepAliveBound(DefaultKeepAlive), func() {
			require.Equal(t, WCRetryExcErr, one(t, a.Device, j.qa).Status)
			<-a.Done(j.qa)
			require.ErrorIs(t, must.Get(a.Cause(j.qa))(t), ErrQPFailed)
		})
		require.NoError(t, a.DestroyQP(j.qa))
		require.NoError(t, a.DeregMR(mr))
	})
	run("while it is disconnected", func(t *testing.T, a, b *cmHost, l *Listener) {
		j := join(t, a.Device, b.Device, l, DialConfig{})
		b.off.Store(true)
		within(t, 0, func() {
			require.NoError(t, a.Disconnect(j.qa))
			<-a.Done(j.qa)
			require.ErrorIs(t, must.Get(a.Cause(j.qa))(t), ErrDisconnected)
			require.NoError(t, a.DestroyQP(j.qa))
		})
	})
}

// TestConnectionsUnderLoss: with 5 % of all packets lost, each Dial returns
// within its deadline, succeeds only if the peer's program accepted, and
// neither end believes for longer than the bound in a connection that the other
// has given up.
func TestConnectionsUnderLoss(t *testing.T) {
	seeds := 1000
	if testing.Short() || amount.Race {
		seeds = 100
	}
	var made, refused, half, failed int
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			m, r, h := lossyTry(t, uint64(seed)+1)
			made, refused, half, failed = made+m, refused+r, half+h, failed+1-m-r-h
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed+1)
		}
	}
	fmt.Printf("soak: connections under loss: %d seeds, %d made, %d refused, %d made at one end only, %d failed\n", seeds, made, refused, half, failed)
	require.Positive(t, made)
	require.Positive(t, refused)
	require.Positive(t, failed)
}

// lossyTry makes a connection, or not.
func lossyTry(t *testing.T, seed uint64) (made, refused, half int) {
	r := rand.New(rand.NewPCG(seed, 0))
	a, b := twoDevices(t, fmt.Sprintf("&loss=5%%&delay=%dus&seed=%d", 50+r.IntN(3000), seed))
	deadline := []time.Duration{20 * time.Millisecond, 300 * time.Millisecond, 5 * time.Second}[r.IntN(3)]
	interval := 300 * time.Millisecond
	l := listening(t, b, ListenConfig{KeepAlive: interval})
	type end struct {
		qp  QP
		err error
	}
	accepted := make(chan end, 1)
	accepts, hesitates := r.IntN(4) > 0, deadline*time.Duration(r.IntN(12))/10*time.Duration(r.IntN(2))
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	go func() {
		req, err := l.Accept(ctx)
		if err != nil {
			accepted <- end{err: err}
			return
		}
		time.Sleep(hesitates)
		if !accepts {
			accepted <- end{err: errors.Join(errNotTaken, req.Reject(0, nil))}
			return
		}
		qp, err := req.Accept(t.Context(), nil) // with a deadline of its own
		accepted <- end{qp, err}
	}()
	start := time.Now()
	qa, err := a.Dial(ctx, dialable(b, l), DialConfig{KeepAlive: interval})
	require.LessOrEqual(t, time.Since(start), deadline)
	peer := <-accepted
	bound := keepAliveBound(interval)
	switch {
	case err == nil && peer.err == nil:
		made = 1
		time.Sleep(2 * bound)
		require.NoError(t, must.Get(a.Cause(qa))(t), "it stands, in spite of the losses")
		require.NoError(t, a.Disconnect(qa))
		start = time.Now()
		<-b.Done(peer.qp)
		require.LessOrEqual(t, time.Since(start), bound)
		require.NoError(t, a.DestroyQP(qa))
		require.NoError(t, b.DestroyQP(peer.qp))
	case err == nil:
		require.True(t, accepts, "it succeeded though the peer's program refused")
		half = 1
		start = time.Now()
		<-a.Done(qa)
		require.LessOrEqual(t, time.Since(start), bound)
		require.NoError(t, a.DestroyQP(qa))
	case peer.err == nil:
		half = 1
		start = time.Now()
		<-b.Done(peer.qp)
		require.LessOrEqual(t, time.Since(start), bound)
		require.NoError(t, b.DestroyQP(peer.qp))
	case errors.Is(err, ErrRefused):
		require.False(t, accepts)
		refused = 1
	default:
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	return made, refused, half
}

var errNotTaken = errors.New("not taken")
