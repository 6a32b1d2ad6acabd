package uapi_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

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

// A completion queue that cannot hold all that its queue pairs can have
// outstanding is refused, with the numbers. A queue that is large enough holds
// all of it, also when all of it completes.
func TestCompletionQueueTooSmall(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	cq := must.Get(a.CreateCQ(10))(t)
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
	other := must.Get(a.CreateCQ(4))(t)
	refused(uapi.QPConfig{SendCQ: cq, RecvCQ: other, SendDepth: 4, RecvDepth: 5}, "has 4 entries", "make it 5")
	refused(uapi.QPConfig{SendCQ: cq, RecvCQ: other, SendDepth: 5, RecvDepth: 4}, "has 10 entries", "make it 11")
	q := must.Get(a.CreateQPWith(uapi.QPConfig{SendCQ: cq, RecvCQ: other, SendDepth: 4, RecvDepth: 4}))(t)
	refused(uapi.QPConfig{RecvCQ: other, RecvDepth: 1}, "make it 5")
	require.NoError(t, a.DestroyQP(q))
	require.NoError(t, a.DestroyCQ(other), "what was refused does not use it")

	// A queue pair that is destroyed gives its share back, and a completion
	// queue can grow, but not shrink below the entries that are claimed.
	q = must.Get(a.CreateQPWith(uapi.QPConfig{SendCQ: cq, SendDepth: 4}))(t)
	require.NoError(t, a.DestroyQP(q))
	require.NoError(t, a.ResizeCQ(cq, 11))
	qb := mustQP(t, a, uapi.QPConfig{SendCQ: cq, SendDepth: 5})
	require.NoError(t, a.ResizeCQ(cq, 11))
	err := a.ResizeCQ(cq, 10)
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
			must.Get(a.Post(posts.qp, []uapi.WR{{Op: posts.op, SGE: []uapi.SGE{{MR: mr, Length: 8}}}}))(t)
			want++
		}
	}
	require.NoError(t, a.Disconnect(qa))
	require.NoError(t, a.Disconnect(qb))
	wc := make([]uapi.WC, 16)
	for want > 0 {
		n := must.Get(a.WaitQueue(within(t), cq, wc))(t)
		want -= n
	}
	require.Zero(t, want)
	require.NoError(t, a.DestroyQP(qa))
	require.NoError(t, a.DestroyQP(qb))
	require.NoError(t, a.DestroyCQ(cq))
}
