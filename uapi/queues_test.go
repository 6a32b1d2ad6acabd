package uapi_test

import (
	"context"
	"errors"
	"math"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// write is a request to write one byte.
func write(x *uapitest.End, id uapi.WRID, flags uapi.SendFlags) uapi.WR {
	return uapi.WR{ID: id, Op: uapi.OpWrite, Flags: flags, SGE: []uapi.SGE{{MR: x.MR, Length: 1}}, RemoteAddr: x.Peer.Addr, RKey: x.Peer.RKey}
}

// A slot used by an unsignaled request comes back with the next signaled
// completion, and not before.
func TestUnsignaledSlots(t *testing.T) {
	t.Parallel()
	eachDevice(t, func(t *testing.T, a, b *uapi.Context) {
		x, _ := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: 4}, 4096)
		n, err := x.Post(x.QP, []uapi.WR{write(x, 1, 0), write(x, 2, 0), write(x, 3, uapi.Signaled), write(x, 4, 0), write(x, 5, 0)})
		require.ErrorIs(t, err, syscall.ENOMEM)
		require.Equal(t, 4, n)
		wc := x.Next(1)[0]
		require.NoError(t, wc.Err())
		require.Equal(t, uapi.WRID(3), wc.WRID, "unsignaled requests make no completion")
		// Three slots are free, the fourth request still holds one.
		n, err = x.Post(x.QP, []uapi.WR{write(x, 5, 0), write(x, 6, 0), write(x, 7, uapi.Signaled), write(x, 8, 0)})
		require.ErrorIs(t, err, syscall.ENOMEM)
		require.Equal(t, 3, n)
		require.Equal(t, uapi.WRID(7), x.Next(1)[0].WRID)
	})
}

func TestSignalAll(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	x, _ := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: 4, SignalAll: true}, 4096)
	_, err := x.Post(x.QP, []uapi.WR{write(x, 1, 0), write(x, 2, 0)})
	require.NoError(t, err)
	for i, wc := range x.Next(2) {
		require.Equal(t, uapi.WRID(i+1), wc.WRID)
	}
}

// After an error everything outstanding is flushed, unsignaled requests too.
func TestFlushAfterError(t *testing.T) {
	t.Parallel()
	eachDevice(t, func(t *testing.T, a, b *uapi.Context) {
		x, y := uapitest.Connect(t, a, b)
		for range 3 {
			y.Must(y.PostRecv(y.QP, y.MR, 0, 8))
			x.Must(x.PostRecv(x.QP, x.MR, 0, 8))
		}
		bad := write(x, 101, 0)
		bad.RKey ^= 1
		n, err := x.Post(x.QP, []uapi.WR{write(x, 100, uapi.Signaled), bad, write(x, 102, 0), write(x, 103, uapi.Signaled)})
		require.NoError(t, err)
		require.Equal(t, 4, n)
		wcs := x.Next(7)
		require.Equal(t, uapi.WRID(100), wcs[0].WRID)
		require.NoError(t, wcs[0].Err())
		sends := []uapi.WRID{}
		for _, wc := range wcs {
			if wc.WRID >= 100 {
				sends = append(sends, wc.WRID)
				if wc.WRID == 101 {
					require.Equal(t, uapi.WCRemAccessErr, wc.Status)
				} else if wc.WRID > 101 {
					require.Equal(t, uapi.WCWRFlushErr, wc.Status)
				}
			} else {
				require.Equal(t, uapi.WCWRFlushErr, wc.Status, "receives are flushed too")
			}
		}
		require.Equal(t, []uapi.WRID{100, 101, 102, 103}, sends)
		for _, wc := range y.Next(3) {
			require.Equal(t, uapi.WCWRFlushErr, wc.Status)
		}
		info, err := x.QueryQP(x.QP)
		require.NoError(t, err)
		require.Equal(t, uapi.StateError, info.State)

		// Requests that are posted from now on are flushed at once.
		id := x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1))
		wc := x.Next(1)[0]
		require.Equal(t, id, wc.WRID)
		require.Equal(t, uapi.WCWRFlushErr, wc.Status)
		id = x.Must(x.PostRecv(x.QP, x.MR, 0, 1))
		wc = x.Next(1)[0]
		require.Equal(t, id, wc.WRID)
		require.Equal(t, uapi.WCWRFlushErr, wc.Status)
	})
}

func TestDisconnectFlushes(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	x, y := uapitest.Connect(t, a, b)
	ids := []uapi.WRID{x.Must(x.PostRecv(x.QP, x.MR, 0, 8)), x.Must(x.PostRecv(x.QP, x.MR, 0, 8))}
	send := x.Must(x.PostSend(x.QP, x.MR, 8)) // the peer has no receive posted
	require.NoError(t, x.Disconnect(x.QP))
	var flushed []uapi.WRID
	for _, wc := range x.Next(3) {
		require.Equal(t, uapi.WCWRFlushErr, wc.Status)
		flushed = append(flushed, wc.WRID)
	}
	require.ElementsMatch(t, append(ids, send), flushed)
	require.NoError(t, x.Disconnect(x.QP), "again")
	_ = y
}

// Deregistering a region in use: the request that needs it fails, on either
// side.
func TestDeregisterInUse(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	x, y := uapitest.Connect(t, a, b)
	buf := make([]byte, 8)
	mr, _ := mustMR(t, y.Context, buf, uapi.AccessLocalWrite)
	y.Must(y.PostRecv(y.QP, mr, 0, 8))
	require.NoError(t, y.DeregMR(mr))
	copy(x.Buf, "too late")
	x.Must(x.PostSend(x.QP, x.MR, 8))
	require.Equal(t, uapi.WCLocProtErr, y.Next(1)[0].Status)
	require.Equal(t, uapi.WCRemOpErr, x.Next(1)[0].Status)
	require.Equal(t, make([]byte, 8), buf)
}

// Destroying a queue pair with work outstanding: no completion, no touch.
func TestDestroyWithWorkOutstanding(t *testing.T) {
	t.Parallel()
	eachDevice(t, func(t *testing.T, a, b *uapi.Context) {
		cq, err := a.CreateCQ(64)
		require.NoError(t, err)
		defer a.DestroyCQ(cq)
		mr, info := mustMR(t, b, make([]byte, 8), uapi.AccessLocalWrite|uapi.AccessRemoteWrite)
		local, _ := mustMR(t, a, make([]byte, 8), uapi.AccessLocalWrite)
		qa, err := a.CreateQPWith(uapi.QPConfig{SendCQ: cq, SendDepth: 16, RecvDepth: 16})
		require.NoError(t, err)
		qb := mustQP(t, b, uapi.QPConfig{RecvDepth: 1})
		connectPair(t, a, qa, b, qb)
		for range 16 {
			_, err = a.PostRecv(qa, local, 0, 8)
			require.NoError(t, err)
		}
		for range 8 {
			_, err = a.PostSend(qa, local, 8) // nobody receives it
			require.NoError(t, err)
		}
		require.ErrorIs(t, a.DestroyCQ(cq), syscall.EBUSY)
		require.NoError(t, a.DestroyQP(qa))
		n, err := a.Poll(cq, make([]uapi.WC, 64))
		require.NoError(t, err)
		require.Zero(t, n)
		_ = mr
		_ = info
	})
}

func TestSharedCompletionQueue(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	cq, err := a.CreateCQ(64)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.DestroyCQ(cq)) })
	buf, peer := make([]byte, 64), make([]byte, 64)
	mr, _ := mustMR(t, a, buf, uapi.AccessLocalWrite)
	_, info := mustMR(t, b, peer, uapi.AccessLocalWrite|uapi.AccessRemoteWrite)
	want := make(map[uapi.QP]int)
	var qps []uapi.QP
	for range 4 {
		qa := mustQP(t, a, uapi.QPConfig{SendCQ: cq, SendDepth: 8})
		connectPair(t, a, qa, b, mustQP(t, b, uapi.QPConfig{}))
		for range 8 {
			_, err := a.PostWrite(qa, mr, 0, info.Addr, info.RKey, 8)
			require.NoError(t, err)
		}
		want[qa] = 8
		qps = append(qps, qa)
	}
	got := make(map[uapi.QP]int)
	wc := make([]uapi.WC, 5)
	for total := 0; total < 32; {
		n, err := a.Wait(within(t), cq, wc)
		require.NoError(t, err)
		for _, c := range wc[:n] {
			require.NoError(t, c.Err())
			got[c.QP]++
		}
		total += n
	}
	require.Equal(t, want, got)

	q, err := a.QueryQP(qps[0])
	require.NoError(t, err)
	require.Equal(t, cq, q.SendCQ)
	require.Equal(t, cq, q.RecvCQ)
}

func TestTwoCompletionQueues(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	send, err := a.CreateCQ(8)
	require.NoError(t, err)
	recv, err := a.CreateCQ(8)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, a.DestroyCQ(send))
		require.NoError(t, a.DestroyCQ(recv))
	})
	buf := make([]byte, 64)
	mr, _ := mustMR(t, a, buf, uapi.AccessLocalWrite)
	qa := mustQP(t, a, uapi.QPConfig{SendCQ: send, RecvCQ: recv, SendDepth: 8, RecvDepth: 8})
	connectPair(t, a, qa, b, mustQP(t, b, uapi.QPConfig{}))
	_, err = a.PollCQ(qa, make([]uapi.WC, 1))
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = a.WaitCQ(t.Context(), qa, make([]uapi.WC, 1))
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = a.PostRecv(qa, mr, 0, 8)
	require.NoError(t, err)
	require.NoError(t, a.Disconnect(qa))
	wc := make([]uapi.WC, 1)
	n, err := a.Wait(within(t), recv, wc)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	n, err = a.Poll(send, wc)
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	info, err := a.QueryDevice()
	require.NoError(t, err)
	for _, n := range []int{0, -1, info.MaxCQE + 1, math.MaxInt32} {
		_, err := a.CreateCQ(n)
		require.ErrorIs(t, err, syscall.EINVAL, "%d entries", n)
	}
	foreign, err := b.CreateCQ(1)
	require.NoError(t, err)
	t.Cleanup(func() { b.DestroyCQ(foreign) })
	for name, config := range map[string]uapi.QPConfig{
		"depth":        {SendDepth: info.MaxDepth + 1},
		"both depths":  {SendDepth: info.MaxCQE, RecvDepth: info.MaxCQE},
		"pieces":       {SendSGE: info.MaxSGE + 1},
		"inline":       {Inline: 1 << 20},
		"timeout":      {Timeout: 32},
		"retry":        {Retry: 8},
		"rnr retry":    {RNRRetry: 8},
		"rnr timer":    {MinRNRTimer: 32},
		"rd atomic":    {MaxRdAtomic: 100000},
		"negative":     {Timeout: -2},
		"mtu":          {MTU: 1500},
		"mtu too high": {MTU: 8192},
		"access":       {Access: 1 << 20},
	} {
		_, err := a.CreateQPWith(config)
		require.ErrorIs(t, err, syscall.EINVAL, name)
	}
	_, err = a.CreateQPWith(uapi.QPConfig{SendCQ: foreign})
	require.ErrorIs(t, err, syscall.EBADF)
	_, err = a.CreateQPWith(uapi.QPConfig{RecvCQ: 99999})
	require.ErrorIs(t, err, syscall.EBADF)
	_, err = a.RegMR(make([]byte, 8), 1<<20)
	require.ErrorIs(t, err, syscall.EINVAL)
	require.Empty(t, a.OpenHandles())
}

func TestConnectRefuses(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	qa, qb := mustQP(t, a, uapi.QPConfig{}), mustQP(t, b, uapi.QPConfig{})
	e, err := b.LocalEndpoint(qb)
	require.NoError(t, err)
	require.ErrorIs(t, a.Disconnect(qa), syscall.ENOTCONN)
	require.ErrorIs(t, a.ConnectQP(qa, uapi.Endpoint{}), syscall.EINVAL)
	bad := e
	bad.QPN = 1 << 24
	require.ErrorIs(t, a.ConnectQP(qa, bad), syscall.EINVAL)
	require.NoError(t, a.ConnectQP(qa, e))
	require.ErrorIs(t, a.ConnectQP(qa, e), syscall.EISCONN)
	info, err := a.QueryQP(qa)
	require.NoError(t, err)
	require.Equal(t, uapi.StateRTS, info.State)
	require.Equal(t, e, info.Remote)
}

func TestConnectDefaultsAndNegotiation(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	qa := mustQP(t, a, uapi.QPConfig{})
	qb := mustQP(t, b, uapi.QPConfig{MTU: 512, MaxRdAtomic: 3, Timeout: 14, Retry: uapi.None, RNRRetry: 2, MinRNRTimer: uapi.None})
	connectPair(t, a, qa, b, qb)
	ia, err := a.QueryQP(qa)
	require.NoError(t, err)
	require.Equal(t, []int{512, 16, 6, 7, 12, 3}, []int{ia.MTU, ia.Timeout, ia.Retry, ia.RNRRetry, ia.MinRNRTimer, ia.MaxRdAtomic})
	ib, err := b.QueryQP(qb)
	require.NoError(t, err)
	require.Equal(t, []int{512, 14, 0, 2, 0, 3}, []int{ib.MTU, ib.Timeout, ib.Retry, ib.RNRRetry, ib.MinRNRTimer, ib.MaxRdAtomic})
}

// A queue pair connected to itself.
func TestConnectToItself(t *testing.T) {
	t.Parallel()
	eachDevice(t, func(t *testing.T, a, b *uapi.Context) {
		qp := mustQP(t, a, uapi.QPConfig{SendDepth: 4, RecvDepth: 4})
		connectPair(t, a, qp, a, qp)
		buf := []byte("to myself.........")
		mr, _ := mustMR(t, a, buf, uapi.AccessLocalWrite)
		recv, err := a.PostRecv(qp, mr, 9, 9)
		require.NoError(t, err)
		send, err := a.PostSend(qp, mr, 9)
		require.NoError(t, err)
		ids := []uapi.WRID{next(t, a, qp).WRID, next(t, a, qp).WRID}
		require.ElementsMatch(t, []uapi.WRID{recv, send}, ids)
		require.Equal(t, "to myselfto myself", string(buf))
	})
}

// A request that a queue pair connected to itself refuses has the status that
// any peer's refusal has: earlier requests succeed, later ones are flushed.
func TestRefusedByItself(t *testing.T) {
	t.Parallel()
	type list []uapi.Status
	for name, c := range map[string]struct {
		wr   uapi.WR
		recv uint64 // bytes of the receive that is posted, if any
		want list   // of the receive, and the sends
	}{
		"write": {uapi.WR{Op: uapi.OpWrite, RKey: 12345}, 0, list{uapi.WCSuccess, uapi.WCRemAccessErr, uapi.WCWRFlushErr}},
		"read":  {uapi.WR{Op: uapi.OpRead, RKey: 12345}, 0, list{uapi.WCSuccess, uapi.WCRemAccessErr, uapi.WCWRFlushErr}},
		"SEND that is too long": {uapi.WR{Op: uapi.OpSend}, 4,
			list{uapi.WCSuccess, uapi.WCLocLenErr, uapi.WCRemInvReqErr, uapi.WCWRFlushErr}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachDevice(t, func(t *testing.T, a, b *uapi.Context) {
				qp := mustQP(t, a, uapi.QPConfig{SendDepth: 4, RecvDepth: 4})
				connectPair(t, a, qp, a, qp)
				mr, info := mustMR(t, a, make([]byte, 16), uapi.AccessLocalWrite|uapi.AccessRemoteWrite)
				if c.recv > 0 {
					_, err := a.PostRecv(qp, mr, 0, c.recv)
					require.NoError(t, err)
				}
				sge := []uapi.SGE{{MR: mr, Length: 8}}
				good := uapi.WR{Op: uapi.OpWrite, Flags: uapi.Signaled, SGE: sge, RemoteAddr: info.Addr, RKey: info.RKey}
				bad := c.wr
				bad.SGE, bad.RemoteAddr = sge, info.Addr
				_, err := a.Post(qp, []uapi.WR{good, bad, good})
				require.NoError(t, err)
				var got list
				for range c.want {
					got = append(got, next(t, a, qp).Status)
				}
				require.ElementsMatch(t, c.want, got)
				state, err := a.QueryQP(qp)
				require.NoError(t, err)
				require.Equal(t, uapi.StateError, state.State)
			})
		})
	}
}

func TestReceivesAreTooEarlyInReset(t *testing.T) {
	t.Parallel()
	a, _ := uapitest.Pair(t, "")
	qp := mustQP(t, a, uapi.QPConfig{SendDepth: 1, RecvDepth: 1})
	mr, _ := mustMR(t, a, make([]byte, 8), uapi.AccessLocalWrite)
	_, err := a.PostRecv(qp, mr, 0, 8)
	require.ErrorIs(t, err, syscall.EINVAL)
	require.ErrorContains(t, err, "LocalEndpoint")
	_, err = a.LocalEndpoint(qp)
	require.NoError(t, err)
	_, err = a.PostRecv(qp, mr, 0, 8)
	require.NoError(t, err)
	_, err = a.PostSend(qp, mr, 8)
	require.ErrorIs(t, err, syscall.EINVAL)
	require.ErrorContains(t, err, "ConnectQP")
}

// A queue that is full, or has no room at all, is ENOMEM, and its message does
// not speak of memory.
func TestQueuesWithoutRoom(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	for _, depth := range []int{0, 1} {
		x, _ := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: depth, RecvDepth: depth}, 4096)
		for range depth {
			x.Must(x.PostSend(x.QP, x.MR, 8)) // nobody receives it
			x.Must(x.PostRecv(x.QP, x.MR, 0, 8))
		}
		_, sendErr := x.PostSend(x.QP, x.MR, 8)
		_, recvErr := x.PostRecv(x.QP, x.MR, 0, 8)
		for _, err := range []error{sendErr, recvErr} {
			require.ErrorIs(t, err, syscall.ENOMEM)
			require.NotContains(t, err.Error(), syscall.ENOMEM.Error())
		}
	}
}

// Waiting and polling return errors alike: an *OpError, with -1 of a queue pair
// and 0 of a completion queue.
func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := uapitest.Pair(t, "")
		x, y := uapitest.Connect(t, a, b)
		info, err := x.QueryQP(x.QP)
		require.NoError(t, err)
		wc := make([]uapi.WC, 1)
		told := func(op string, want, n int, is, err error) {
			t.Helper()
			require.ErrorIs(t, err, is)
			var of *uapi.OpError
			require.ErrorAs(t, err, &of)
			require.Equal(t, op, of.Op)
			require.Equal(t, want, n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		n, err := x.WaitCQ(ctx, x.QP, wc)
		told("WaitCQ", -1, n, context.DeadlineExceeded, err)
		var late interface{ Timeout() bool }
		require.ErrorAs(t, err, &late)
		require.True(t, late.Timeout())
		n, err = x.Wait(ctx, info.SendCQ, wc)
		told("Wait", -1, n, context.DeadlineExceeded, err)

		// No completion is lost: a later one is there later.
		id := x.Must(x.PostRecv(x.QP, x.MR, 0, 8))
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		n, err = x.WaitCQ(canceled, x.QP, wc)
		told("WaitCQ", -1, n, context.Canceled, err)
		y.Must(y.PostSend(y.QP, y.MR, 8))
		require.Equal(t, id, x.Next(1)[0].WRID)

		for _, none := range [][]uapi.WC{nil, {}} {
			n, err = x.PollCQ(x.QP, none)
			told("PollCQ", -1, n, syscall.EINVAL, err)
			n, err = x.WaitCQ(t.Context(), x.QP, none)
			told("WaitCQ", -1, n, syscall.EINVAL, err)
			n, err = x.Poll(info.SendCQ, none)
			told("Poll", -1, n, syscall.EINVAL, err)
			n, err = x.Wait(t.Context(), info.SendCQ, none)
			told("Wait", -1, n, syscall.EINVAL, err)
		}
		n, err = x.WaitCQ(t.Context(), 0, wc)
		told("WaitCQ", -1, n, syscall.EBADF, err)
	})
}

// Many waiters on one queue: each completion goes to one of them.
func TestManyWaiters(t *testing.T) {
	t.Parallel()
	eachDevice(t, func(t *testing.T, a, b *uapi.Context) {
		x, _ := uapitest.Connect(t, a, b)
		ctx, cancel := context.WithCancel(within(t))
		const waiters, total = 4, 400
		got := make(chan uapi.WRID, total)
		done := make(chan error, waiters)
		for range waiters {
			go func() {
				wc := make([]uapi.WC, 3)
				for {
					n, err := x.WaitCQ(ctx, x.QP, wc)
					if err != nil {
						done <- err
						return
					}
					for _, c := range wc[:n] {
						got <- c.WRID
					}
				}
			}()
		}
		seen := make(map[uapi.WRID]bool)
		posted := 0
		for len(seen) < total {
			for posted < total {
				if _, err := x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 8); err != nil {
					require.ErrorIs(t, err, syscall.ENOMEM)
					break
				}
				posted++
			}
			id := <-got
			require.False(t, seen[id])
			seen[id] = true
		}
		cancel()
		for range waiters {
			require.ErrorIs(t, <-done, context.Canceled)
		}
	})
}

func TestCloseAndDestroyWakeWaiters(t *testing.T) {
	for name, end := range map[string]func(x *uapitest.End) error{
		"Close":     func(x *uapitest.End) error { return x.Close() },
		"DestroyQP": func(x *uapitest.End) error { return x.DestroyQP(x.QP) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := uapitest.Pair(t, "")
				x, _ := uapitest.Connect(t, a, b)
				woken := make(chan error, 3)
				for range 3 {
					go func() {
						_, err := x.WaitCQ(context.Background(), x.QP, make([]uapi.WC, 1))
						woken <- err
					}()
				}
				synctest.Wait() // all of them wait
				require.NoError(t, end(x))
				for range 3 {
					err := <-woken
					require.ErrorIs(t, err, net.ErrClosed)
					require.ErrorIs(t, err, syscall.EBADF)
				}
			})
		})
	}
}

// A dead peer is noticed after (Retry+1) timeouts: in virtual time, exactly.
func TestDeadPeerIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := uapitest.Pair(t, "")
		x, y := uapitest.Connect(t, a, b)
		require.NoError(t, y.DestroyQP(y.QP))
		start := time.Now()
		x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 8))
		wc := x.Next(1)[0]
		require.Equal(t, uapi.WCRetryExcErr, wc.Status)
		timeout := time.Duration(4096<<16) * time.Nanosecond
		require.InDelta(t, (8 * timeout).Seconds(), time.Since(start).Seconds(), 0.5)
		err := wc.Err()
		require.ErrorIs(t, err, uapi.WCRetryExcErr)
		require.NotErrorIs(t, err, uapi.WCRemAccessErr)
		var wcErr *uapi.WCError
		require.True(t, errors.As(err, &wcErr))
		require.Equal(t, wc, wcErr.WC)
		require.Contains(t, err.Error(), "RETRY_EXC_ERR")
	})
}

// While the peer has no receive posted, a send waits; for ever by default.
func TestSendWaitsForReceive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := uapitest.Pair(t, "")
		x, y := uapitest.Connect(t, a, b)
		x.Must(x.PostSend(x.QP, x.MR, 8))
		time.Sleep(3 * time.Second)
		n, err := x.PollCQ(x.QP, make([]uapi.WC, 1))
		require.NoError(t, err)
		require.Zero(t, n)
		y.Must(y.PostRecv(y.QP, y.MR, 0, 8))
		require.NoError(t, x.Next(1)[0].Err())
		require.NoError(t, y.Next(1)[0].Err())
	})
}

func TestSendGivesUpAfterRNRRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := uapitest.Pair(t, "")
		x, _ := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: 1, RecvDepth: 1, RNRRetry: 3}, 4096)
		x.Must(x.PostSend(x.QP, x.MR, 8))
		require.Equal(t, uapi.WCRNRRetryExcErr, x.Next(1)[0].Status)
	})
}

// A completion queue that cannot hold all that its queue pairs can have
// outstanding is refused, with the numbers. A queue that is large enough holds
// all of it, also when all of it completes.
func TestCompletionQueueTooSmall(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	cq, err := a.CreateCQ(10)
	require.NoError(t, err)
	refused := func(config uapi.QPConfig, numbers ...string) {
		t.Helper()
		_, err := a.CreateQPWith(config)
		require.ErrorIs(t, err, syscall.EINVAL)
		for _, n := range numbers {
			require.ErrorContains(t, err, n)
		}
	}
	refused(uapi.QPConfig{SendCQ: cq, SendDepth: 11}, "has 10 entries", "0 can be outstanding", "11 on this one", "make it 11")
	refused(uapi.QPConfig{SendCQ: cq, SendDepth: 4, RecvDepth: 7}, "make it 11")
	qa := mustQP(t, a, uapi.QPConfig{RecvCQ: cq, SendDepth: 4, RecvDepth: 2})
	refused(uapi.QPConfig{SendCQ: cq, RecvDepth: 5}, "6 can be outstanding", "5 on this one", "make it 11")

	// Two of them: each holds its direction's.
	other, err := a.CreateCQ(4)
	require.NoError(t, err)
	refused(uapi.QPConfig{SendCQ: cq, RecvCQ: other, SendDepth: 4, RecvDepth: 5}, "has 4 entries", "make it 5")
	refused(uapi.QPConfig{SendCQ: cq, RecvCQ: other, SendDepth: 5, RecvDepth: 4}, "has 10 entries", "make it 11")
	q, err := a.CreateQPWith(uapi.QPConfig{SendCQ: cq, RecvCQ: other, SendDepth: 4, RecvDepth: 4})
	require.NoError(t, err)
	refused(uapi.QPConfig{RecvCQ: other, RecvDepth: 1}, "make it 5")
	require.NoError(t, a.DestroyQP(q))
	require.NoError(t, a.DestroyCQ(other), "what was refused does not use it")

	// A queue pair that is destroyed gives its share back, and a completion
	// queue can grow, but not shrink below the entries that are claimed.
	q, err = a.CreateQPWith(uapi.QPConfig{SendCQ: cq, SendDepth: 4})
	require.NoError(t, err)
	require.NoError(t, a.DestroyQP(q))
	require.NoError(t, a.ResizeCQ(cq, 11))
	qb := mustQP(t, a, uapi.QPConfig{SendCQ: cq, SendDepth: 5})
	require.NoError(t, a.ResizeCQ(cq, 11))
	err = a.ResizeCQ(cq, 10)
	require.ErrorIs(t, err, syscall.EINVAL)
	require.ErrorContains(t, err, "11 can be outstanding")

	// Unsignaled requests all complete when their queue pair fails.
	mr, _ := mustMR(t, a, make([]byte, 8), uapi.AccessLocalWrite)
	connectPair(t, a, qa, b, mustQP(t, b, uapi.QPConfig{}))
	connectPair(t, a, qb, b, mustQP(t, b, uapi.QPConfig{}))
	want := 0
	for _, posts := range []struct {
		qp uapi.QP
		op uapi.Op
		n  int
	}{{qa, uapi.OpRecv, 2}, {qa, uapi.OpSend, 4}, {qb, uapi.OpSend, 5}} {
		for range posts.n { // SENDs without a receive
			_, err := a.Post(posts.qp, []uapi.WR{{Op: posts.op, SGE: []uapi.SGE{{MR: mr, Length: 8}}}})
			require.NoError(t, err)
			want++
		}
	}
	require.NoError(t, a.Disconnect(qa))
	require.NoError(t, a.Disconnect(qb))
	wc := make([]uapi.WC, 16)
	for want > 0 {
		n, err := a.Wait(within(t), cq, wc)
		require.NoError(t, err)
		want -= n
	}
	require.Zero(t, want)
	require.NoError(t, a.DestroyQP(qa))
	require.NoError(t, a.DestroyQP(qb))
	require.NoError(t, a.DestroyCQ(cq))
}

// A receive whose memory may not be written fails on both sides.
func TestReceiveWithoutPermission(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	x, y := uapitest.Connect(t, a, b)
	mr, _ := mustMR(t, y.Context, []byte("constant"), uapi.AccessRemoteRead)
	y.Must(y.PostRecv(y.QP, mr, 0, 8))
	x.Must(x.PostSend(x.QP, x.MR, 8))
	require.Equal(t, uapi.WCLocProtErr, y.Next(1)[0].Status)
	require.Equal(t, uapi.WCRemOpErr, x.Next(1)[0].Status)
}

// A queue pair's own access limits its peer's requests, also where the region
// allows more.
func TestQueuePairAccess(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	for _, access := range []uapi.Access{uapi.AccessLocalWrite, uapi.AccessRemoteRead} {
		x, _ := uapitest.Connect(t, a, b)
		qa := mustQP(t, a, uapi.QPConfig{SendDepth: 1})
		qb := mustQP(t, b, uapi.QPConfig{Access: access})
		connectPair(t, a, qa, b, qb)
		x.Must(x.PostWrite(qa, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 8))
		require.Contains(t, []uapi.Status{uapi.WCRemAccessErr, uapi.WCRemInvReqErr}, next(t, a, qa).Status)
	}
}
