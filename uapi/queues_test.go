package uapi_test

import (
	"errors"
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
			_, err = a.PostSend(qa, local, 8) // the peer has no receive for it
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

// A queue that is full, or has no room at all, is ENOMEM, and its message does
// not speak of memory.
func TestQueuesWithoutRoom(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	for _, depth := range []int{0, 1} {
		x, _ := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: depth, RecvDepth: depth}, 4096)
		for range depth {
			x.Must(x.PostSend(x.QP, x.MR, 8)) // the peer has no receive for it
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
