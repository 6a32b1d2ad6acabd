package uapi_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// A sentence of the founding document of this API (testdata/rdma-api.txt) and
// the test that holds it. TestFoundingDocument checks that none is missing.
type sentence struct {
	text string
	test func(t *testing.T, x, y *uapitest.End)
}

const (
	localWrite  = uapi.AccessLocalWrite
	remoteWrite = uapi.AccessRemoteWrite
	remoteRead  = uapi.AccessRemoteRead
)

var sentences = []sentence{
	// rdma_reg_mr
	{"Register a memory region for RDMA operations.", func(t *testing.T, x, y *uapitest.End) {
		buf := []byte("registered")
		mr, _ := mustMR(t, x.Context, buf, 0)
		x.Must(x.PostWrite(x.QP, mr, 0, x.Peer.Addr, x.Peer.RKey, 10))
		require.NoError(t, x.Next(1)[0].Err())
		require.Equal(t, "registered", string(y.Buf[:10]))
	}},
	{"Starting virtual address of memory region", func(t *testing.T, x, y *uapitest.End) {
		// The region begins at the slice's first byte: offset 0 is that byte.
		buf := make([]byte, 100)
		mr, info := mustMR(t, x.Context, buf[10:20], localWrite|remoteWrite)
		require.NotZero(t, info.Addr)
		copy(y.Buf, "0123456789")
		y.Must(y.PostWrite(y.QP, y.MR, 0, info.Addr, info.RKey, 10))
		require.NoError(t, y.Next(1)[0].Err())
		require.Equal(t, "0123456789", string(buf[10:20]))
		require.Equal(t, make([]byte, 10), buf[:10])
		require.NoError(t, x.DeregMR(mr))
	}},
	{"Size of memory region in bytes", func(t *testing.T, x, y *uapitest.End) {
		_, info := mustMR(t, x.Context, make([]byte, 4097), localWrite|remoteWrite)
		require.Equal(t, uint64(4097), info.Length)
		y.Must(y.PostWrite(y.QP, y.MR, 0, info.Addr+4096, info.RKey, 2))
		require.Equal(t, uapi.WCRemAccessErr, y.Next(1)[0].Status, "one byte too far")
	}},
	{"Bitwise OR of:", func(t *testing.T, x, y *uapitest.End) {
		_, info := mustMR(t, x.Context, make([]byte, 8), localWrite|remoteWrite|remoteRead)
		require.Equal(t, localWrite|remoteWrite|remoteRead, info.Access)
		y.Must(y.PostWrite(y.QP, y.MR, 0, info.Addr, info.RKey, 8))
		y.Must(y.PostRead(y.QP, y.MR, 0, info.Addr, info.RKey, 8))
		for _, wc := range y.Next(2) {
			require.NoError(t, wc.Err())
		}
	}},
	{"Allow local writes", func(t *testing.T, x, y *uapitest.End) {
		allowed, _ := mustMR(t, x.Context, make([]byte, 8), localWrite)
		x.Must(x.PostRead(x.QP, allowed, 0, x.Peer.Addr, x.Peer.RKey, 8))
		require.NoError(t, x.Next(1)[0].Err())
		forbidden, _ := mustMR(t, x.Context, make([]byte, 8), remoteRead)
		x.Must(x.PostRead(x.QP, forbidden, 0, x.Peer.Addr, x.Peer.RKey, 8))
		require.Equal(t, uapi.WCLocProtErr, x.Next(1)[0].Status)
	}},
	{"Allow remote writes", func(t *testing.T, x, y *uapitest.End) {
		_, allowed := mustMR(t, y.Context, make([]byte, 8), localWrite|remoteWrite)
		_, forbidden := mustMR(t, y.Context, make([]byte, 8), localWrite|remoteRead)
		x.Must(x.PostWrite(x.QP, x.MR, 0, allowed.Addr, allowed.RKey, 8))
		require.NoError(t, x.Next(1)[0].Err())
		x.Must(x.PostWrite(x.QP, x.MR, 0, forbidden.Addr, forbidden.RKey, 8))
		require.Equal(t, uapi.WCRemAccessErr, x.Next(1)[0].Status)
	}},
	{"Allow remote reads", func(t *testing.T, x, y *uapitest.End) {
		_, allowed := mustMR(t, y.Context, []byte("readable"), remoteRead)
		_, forbidden := mustMR(t, y.Context, []byte("secret.."), localWrite|remoteWrite)
		x.Must(x.PostRead(x.QP, x.MR, 0, allowed.Addr, allowed.RKey, 8))
		require.NoError(t, x.Next(1)[0].Err())
		require.Equal(t, "readable", string(x.Buf[:8]))
		x.Must(x.PostRead(x.QP, x.MR, 0, forbidden.Addr, forbidden.RKey, 8))
		require.Equal(t, uapi.WCRemAccessErr, x.Next(1)[0].Status)
		require.Equal(t, "readable", string(x.Buf[:8]))
	}},
	{"Memory region handle (>=0) on success, -1 on error", func(t *testing.T, x, y *uapitest.End) {
		mr, err := x.RegMR(make([]byte, 4096), localWrite|remoteWrite)
		require.NoError(t, err)
		require.GreaterOrEqual(t, mr, uapi.MR(0))
		require.NoError(t, x.DeregMR(mr))
		for _, buf := range [][]byte{nil, {}} {
			mr, err = x.RegMR(buf, localWrite)
			require.ErrorIs(t, err, syscall.EINVAL)
			require.Equal(t, uapi.MR(-1), mr)
		}
	}},
	// rdma_dereg_mr
	{"Deregister a previously registered memory region.", func(t *testing.T, x, y *uapitest.End) {
		mr, info := mustMR(t, y.Context, make([]byte, 8), localWrite|remoteWrite)
		x.Must(x.PostWrite(x.QP, x.MR, 0, info.Addr, info.RKey, 8))
		require.NoError(t, x.Next(1)[0].Err())
		require.NoError(t, y.DeregMR(mr))
		x.Must(x.PostWrite(x.QP, x.MR, 0, info.Addr, info.RKey, 8))
		require.Equal(t, uapi.WCRemAccessErr, x.Next(1)[0].Status)
	}},
	{"Handle returned from `rdma_reg_mr()`", func(t *testing.T, x, y *uapitest.End) {
		require.ErrorIs(t, x.DeregMR(y.MR), syscall.EBADF, "another context's handle")
		_, err := x.QueryMR(x.MR)
		require.NoError(t, err)
	}},
	// "0 on success, -1 on error" stands for deregistering and destroying.
	{"0 on success, -1 on error", func(t *testing.T, x, y *uapitest.End) {
		mr, err := x.RegMR(make([]byte, 1), 0)
		require.NoError(t, err)
		require.NoError(t, x.DeregMR(mr))
		require.ErrorIs(t, x.DeregMR(mr), syscall.EBADF)
		qp, err := x.CreateQP(1, 1)
		require.NoError(t, err)
		require.NoError(t, x.DestroyQP(qp))
		require.ErrorIs(t, x.DestroyQP(qp), syscall.EBADF)
	}},
	// rdma_create_qp
	{"Create a queue pair for RDMA communication.", func(t *testing.T, x, y *uapitest.End) {
		qa, qb := mustQP(t, x.Context, uapi.QPConfig{SendDepth: 1}), mustQP(t, y.Context, uapi.QPConfig{})
		connectPair(t, x.Context, qa, y.Context, qb)
		x.Must(x.PostWrite(qa, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 8))
		require.NoError(t, next(t, x.Context, qa).Err())
	}},
	{"Number of entries in send completion queue", func(t *testing.T, x, y *uapitest.End) {
		qa, qb := mustQP(t, x.Context, uapi.QPConfig{SendDepth: 3}), mustQP(t, y.Context, uapi.QPConfig{})
		connectPair(t, x.Context, qa, y.Context, qb)
		for range 3 {
			x.Must(x.PostWrite(qa, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1))
		}
		_, err := x.PostWrite(qa, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1)
		require.ErrorIs(t, err, syscall.ENOMEM, "exactly three")
		require.NoError(t, next(t, x.Context, qa).Err())
		x.Must(x.PostWrite(qa, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1))
		for range 3 {
			require.NoError(t, next(t, x.Context, qa).Err())
		}
	}},
	{"Number of entries in receive completion queue", func(t *testing.T, x, y *uapitest.End) {
		qp, err := x.CreateQP(1, 3)
		require.NoError(t, err)
		defer x.DestroyQP(qp)
		_, err = x.LocalEndpoint(qp)
		require.NoError(t, err)
		for range 3 {
			x.Must(x.PostRecv(qp, x.MR, 0, 8))
		}
		id, err := x.PostRecv(qp, x.MR, 0, 8)
		require.ErrorIs(t, err, syscall.ENOMEM, "exactly three")
		require.Equal(t, uapi.WRID(-1), id)
	}},
	{"Queue pair number (>=0) on success, -1 on error", func(t *testing.T, x, y *uapitest.End) {
		qp, err := x.CreateQP(64, 64)
		require.NoError(t, err)
		defer x.DestroyQP(qp)
		require.GreaterOrEqual(t, qp, uapi.QP(0))
		e, err := x.LocalEndpoint(qp)
		require.NoError(t, err)
		require.Equal(t, uint32(qp), e.QPN, "the handle is the number on the wire")
		for _, sizes := range [][2]int{{-1, 1}, {1, -1}, {1 << 30, 1}, {1, 1 << 30}} {
			qp, err := x.CreateQP(sizes[0], sizes[1])
			require.ErrorIs(t, err, syscall.EINVAL)
			require.Equal(t, uapi.QP(-1), qp)
		}
	}},
	// rdma_destroy_qp
	{"Destroy a queue pair.", func(t *testing.T, x, y *uapitest.End) {
		qp, err := x.CreateQP(1, 1)
		require.NoError(t, err)
		require.NoError(t, x.DestroyQP(qp))
		_, err = x.QueryQP(qp)
		require.ErrorIs(t, err, syscall.EBADF)
		n, err := x.PollCQ(qp, make([]uapi.WC, 1))
		require.ErrorIs(t, err, syscall.EBADF)
		require.Equal(t, -1, n)
	}},
	{"Queue pair number from `rdma_create_qp()`", func(t *testing.T, x, y *uapitest.End) {
		for _, qp := range []uapi.QP{0, -1, 1 << 24, 1 << 30, -1 << 31} {
			require.ErrorIs(t, x.DestroyQP(qp), syscall.EBADF, "%d", qp)
		}
	}},
	// rdma_post_write
	{"Post an RDMA WRITE operation.", func(t *testing.T, x, y *uapitest.End) {
		copy(x.Buf, "written")
		x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 7))
		wc := x.Next(1)[0]
		require.NoError(t, wc.Err())
		require.Equal(t, uapi.WCOpWrite, wc.Opcode)
		require.Equal(t, "written", string(y.Buf[:7]))
	}},
	{"Queue pair to use", func(t *testing.T, x, y *uapitest.End) {
		other := mustQP(t, x.Context, uapi.QPConfig{SendDepth: 1})
		x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1))
		require.Equal(t, x.QP, x.Next(1)[0].QP)
		_, err := x.PostWrite(other, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1)
		require.ErrorIs(t, err, syscall.EINVAL, "the other one is not connected")
	}},
	{"Local memory region handle", func(t *testing.T, x, y *uapitest.End) {
		for _, mr := range []uapi.MR{0, -1, y.MR, 1 << 30} {
			id, err := x.PostWrite(x.QP, mr, 0, x.Peer.Addr, x.Peer.RKey, 1)
			require.ErrorIs(t, err, syscall.EBADF, "%d", mr)
			require.Equal(t, uapi.WRID(-1), id)
		}
	}},
	{"Offset within local memory region", func(t *testing.T, x, y *uapitest.End) {
		copy(x.Buf, "..here")
		x.Must(x.PostWrite(x.QP, x.MR, 2, x.Peer.Addr, x.Peer.RKey, 4))
		require.NoError(t, x.Next(1)[0].Err())
		require.Equal(t, "here", string(y.Buf[:4]))
		size := uint64(len(x.Buf))
		for _, c := range [][2]uint64{{size, 1}, {size - 1, 2}, {0, size + 1}, {1<<64 - 1, 2}, {2, 1<<64 - 1}} {
			_, err := x.PostWrite(x.QP, x.MR, c[0], x.Peer.Addr, x.Peer.RKey, c[1])
			require.ErrorIs(t, err, syscall.EINVAL, "offset %d length %d", c[0], c[1])
		}
	}},
	{"Remote virtual address", func(t *testing.T, x, y *uapitest.End) {
		copy(x.Buf, "there")
		x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr+100, x.Peer.RKey, 5))
		require.NoError(t, x.Next(1)[0].Err())
		require.Equal(t, "there", string(y.Buf[100:105]))
		x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr-1, x.Peer.RKey, 5))
		require.Equal(t, uapi.WCRemAccessErr, x.Next(1)[0].Status)
	}},
	{"Remote key for access validation", func(t *testing.T, x, y *uapitest.End) {
		x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey^1, 5))
		require.Equal(t, uapi.WCRemAccessErr, x.Next(1)[0].Status)
		require.Equal(t, make([]byte, 5), y.Buf[:5])
	}},
	{"Number of bytes to write", func(t *testing.T, x, y *uapitest.End) {
		for i := range x.Buf {
			x.Buf[i] = 0xa5
		}
		x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1000))
		wc := x.Next(1)[0]
		require.NoError(t, wc.Err())
		require.Equal(t, uint64(1000), wc.ByteLen)
		require.Equal(t, x.Buf[:1000], y.Buf[:1000])
		require.Zero(t, y.Buf[1000])
	}},
	{"Work request ID (>=0) on success, -1 on error", func(t *testing.T, x, y *uapitest.End) {
		seen := make(map[uapi.WRID]bool)
		for range 10 {
			for _, id := range []uapi.WRID{
				x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1)),
				x.Must(x.PostRecv(x.QP, x.MR, 0, 1)),
			} {
				require.GreaterOrEqual(t, id, uapi.WRID(0))
				require.False(t, seen[id])
				seen[id] = true
			}
			require.True(t, seen[x.Next(1)[0].WRID])
		}
		id, err := x.PostSend(x.QP, 0, 1)
		require.Error(t, err)
		require.Equal(t, uapi.WRID(-1), id)
	}},
	{"Write to remote address 0x80000000", func(t *testing.T, x, y *uapitest.End) {
		// No program registered that memory; see also TestFoundingExample.
		x.Must(x.PostWrite(x.QP, x.MR, 0, 0x80000000, x.Peer.RKey, 1024))
		require.Equal(t, uapi.WCRemAccessErr, x.Next(1)[0].Status)
	}},
	// rdma_post_send
	{"Post an RDMA SEND operation (message passing).", func(t *testing.T, x, y *uapitest.End) {
		y.Must(y.PostRecv(y.QP, y.MR, 0, 100))
		copy(x.Buf, "message")
		x.Must(x.PostSend(x.QP, x.MR, 7))
		sent, received := x.Next(1)[0], y.Next(1)[0]
		require.NoError(t, sent.Err())
		require.NoError(t, received.Err())
		require.Equal(t, uapi.WCOpSend, sent.Opcode)
		require.Equal(t, uapi.WCOpRecv, received.Opcode)
		require.Equal(t, "message", string(y.Buf[:received.ByteLen]))
	}},
	{"Local memory region containing message", func(t *testing.T, x, y *uapitest.End) {
		mr, _ := mustMR(t, x.Context, []byte("contained"), 0)
		y.Must(y.PostRecv(y.QP, y.MR, 0, 100))
		x.Must(x.PostSend(x.QP, mr, 9))
		require.NoError(t, x.Next(1)[0].Err())
		require.NoError(t, y.Next(1)[0].Err())
		require.Equal(t, "contained", string(y.Buf[:9]))
	}},
	{"Message length in bytes", func(t *testing.T, x, y *uapitest.End) {
		for _, n := range []uint64{0, 1, 4096, 4097, uapitest.Size} {
			y.Must(y.PostRecv(y.QP, y.MR, 0, uapitest.Size))
			x.Must(x.PostSend(x.QP, x.MR, n))
			require.NoError(t, x.Next(1)[0].Err())
			require.Equal(t, n, y.Next(1)[0].ByteLen)
		}
		_, err := x.PostSend(x.QP, x.MR, uapitest.Size+1)
		require.ErrorIs(t, err, syscall.EINVAL)
	}},
	// rdma_poll_cq
	{"Poll completion queue for completed operations.", func(t *testing.T, x, y *uapitest.End) {
		var wc [2]uapi.WC
		n, err := x.PollCQ(x.QP, wc[:])
		require.NoError(t, err)
		require.Zero(t, n, "nothing was posted")
		id := x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1))
		require.Equal(t, id, x.Next(1)[0].WRID)
		n, err = x.PollCQ(x.QP, wc[:])
		require.NoError(t, err)
		require.Zero(t, n, "a completion comes once")
	}},
	{"Queue pair to poll", func(t *testing.T, x, y *uapitest.End) {
		other := mustQP(t, x.Context, uapi.QPConfig{SendDepth: 1})
		connectPair(t, x.Context, other, y.Context, mustQP(t, y.Context, uapi.QPConfig{}))
		x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1))
		require.Equal(t, x.QP, x.Next(1)[0].QP)
		n, err := x.PollCQ(other, make([]uapi.WC, 1))
		require.NoError(t, err)
		require.Zero(t, n)
	}},
	{"Array to store completion entries", func(t *testing.T, x, y *uapitest.End) {
		ids := []uapi.WRID{
			x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1)),
			x.Must(x.PostRead(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 2)),
		}
		wc := x.Next(2)
		require.Equal(t, ids[0], wc[0].WRID)
		require.Equal(t, ids[1], wc[1].WRID)
	}},
	{"Maximum number of completions to retrieve", func(t *testing.T, x, y *uapitest.End) {
		for range 5 {
			x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1))
		}
		last := x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1))
		var all []uapi.WC
		for len(all) < 6 {
			wc := make([]uapi.WC, 2)
			n, err := x.PollCQ(x.QP, wc)
			require.NoError(t, err)
			require.LessOrEqual(t, n, 2)
			all = append(all, wc[:n]...)
		}
		require.Equal(t, last, all[5].WRID)
		n, err := x.PollCQ(x.QP, nil)
		require.ErrorIs(t, err, syscall.EINVAL, "none can be retrieved")
		require.Equal(t, -1, n)
	}},
	{"Number of completions found (>=0), -1 on error", func(t *testing.T, x, y *uapitest.End) {
		n, err := x.PollCQ(x.QP, make([]uapi.WC, 10))
		require.NoError(t, err)
		require.Equal(t, 0, n)
		n, err = x.PollCQ(0, make([]uapi.WC, 10))
		require.ErrorIs(t, err, syscall.EBADF)
		require.Equal(t, -1, n)
	}},
	// struct rdma_wc
	{"Work request ID", func(t *testing.T, x, y *uapitest.End) {
		id := x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1))
		require.Equal(t, id, x.Next(1)[0].WRID)
		id = x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, 0, 1))
		require.Equal(t, id, x.Next(1)[0].WRID, "also of one that failed")
	}},
	{"Completion status", func(t *testing.T, x, y *uapitest.End) {
		x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1))
		require.Equal(t, uapi.WCSuccess, x.Next(1)[0].Status)
		x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, 0, 1))
		require.Equal(t, uapi.WCRemAccessErr, x.Next(1)[0].Status)
	}},
	{"Operation type", func(t *testing.T, x, y *uapitest.End) {
		y.Must(y.PostRecv(y.QP, y.MR, 0, 8))
		y.Must(y.PostRecv(y.QP, y.MR, 0, 8))
		x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1))
		x.Must(x.PostRead(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1))
		x.Must(x.PostFetchAdd(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1))
		x.Must(x.PostCompareSwap(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1, 2))
		x.Must(x.PostSend(x.QP, x.MR, 1))
		x.Must(x.PostWriteImm(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1, 7))
		var ops []uapi.Opcode
		for _, wc := range append(x.Next(6), y.Next(2)...) {
			require.NoError(t, wc.Err())
			ops = append(ops, wc.Opcode)
		}
		require.Equal(t, []uapi.Opcode{uapi.WCOpWrite, uapi.WCOpRead, uapi.WCOpFetchAdd, uapi.WCOpCompareSwap, uapi.WCOpSend, uapi.WCOpWrite,
			uapi.WCOpRecv, uapi.WCOpRecvWriteImm}, ops)
	}},
	{"Number of bytes transferred", func(t *testing.T, x, y *uapitest.End) {
		x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 5000))
		require.Equal(t, uint64(5000), x.Next(1)[0].ByteLen)
		x.Must(x.PostRead(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 6000))
		require.Equal(t, uint64(6000), x.Next(1)[0].ByteLen)
	}},
	// Status values
	{"Operation completed successfully", func(t *testing.T, x, y *uapitest.End) {
		x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 1))
		wc := x.Next(1)[0]
		require.Equal(t, uapi.WCSuccess, wc.Status)
		require.Equal(t, "SUCCESS (completed successfully)", wc.Status.String())
		require.NoError(t, wc.Err())
	}},
	{"Local protection error", func(t *testing.T, x, y *uapitest.End) {
		// The region is not locally writable.
		mr, _ := mustMR(t, x.Context, make([]byte, 8), 0)
		x.Must(x.PostRead(x.QP, mr, 0, x.Peer.Addr, x.Peer.RKey, 8))
		wc := x.Next(1)[0]
		require.Equal(t, uapi.WCLocProtErr, wc.Status)
		require.Equal(t, 4, int(wc.Status))
		require.Contains(t, wc.Status.String(), "LOC_PROT_ERR")
	}},
	{"Remote access error", func(t *testing.T, x, y *uapitest.End) {
		x.Must(x.PostRead(x.QP, x.MR, 0, x.Peer.Addr, 0, 8))
		wc := x.Next(1)[0]
		require.Equal(t, uapi.WCRemAccessErr, wc.Status)
		require.Equal(t, 10, int(wc.Status))
		require.Contains(t, wc.Status.String(), "REM_ACCESS_ERR")
	}},
	{"General error", func(t *testing.T, x, y *uapitest.End) {
		// The soft RNIC has a more specific status for everything; the number
		// and name are the kernel's.
		require.Equal(t, 21, int(uapi.WCGeneralErr))
		require.Equal(t, "GENERAL_ERR (general error)", uapi.WCGeneralErr.String())
	}},
	// Error handling
	{"All RDMA functions return -1 on error.", func(t *testing.T, x, y *uapitest.End) {
		mr, err := x.RegMR(nil, 0)
		require.Error(t, err)
		require.Equal(t, uapi.MR(-1), mr)
		qp, err := x.CreateQP(-1, -1)
		require.Error(t, err)
		require.Equal(t, uapi.QP(-1), qp)
		id, err := x.PostWrite(0, 0, 0, 0, 0, 0)
		require.Error(t, err)
		require.Equal(t, uapi.WRID(-1), id)
		id, err = x.PostSend(0, 0, 0)
		require.Error(t, err)
		require.Equal(t, uapi.WRID(-1), id)
		n, err := x.PollCQ(0, nil)
		require.Error(t, err)
		require.Equal(t, -1, n)
		require.Error(t, x.DeregMR(0))
		require.Error(t, x.DestroyQP(0))
	}},
	{"Use `errno` (future enhancement) or check return values carefully.", func(t *testing.T, x, y *uapitest.End) {
		_, err := x.PostSend(x.QP, 0, 1)
		var errno syscall.Errno
		require.ErrorAs(t, err, &errno)
		require.Equal(t, syscall.EBADF, errno)
		var op *uapi.OpError
		require.ErrorAs(t, err, &op)
		require.Equal(t, "PostSend", op.Op)
	}},
	{"Invalid memory region handle", func(t *testing.T, x, y *uapitest.End) {
		_, err := x.PostSend(x.QP, 12345, 1)
		require.ErrorIs(t, err, syscall.EBADF)
		require.ErrorContains(t, err, "mr 12345")
	}},
	{"Invalid queue pair number", func(t *testing.T, x, y *uapitest.End) {
		_, err := x.PostSend(0, x.MR, 1)
		require.ErrorIs(t, err, syscall.EBADF)
		require.ErrorContains(t, err, "qp 0")
	}},
	{"Memory region not registered", func(t *testing.T, x, y *uapitest.End) {
		mr, _ := mustMR(t, x.Context, make([]byte, 1), 0)
		require.NoError(t, x.DeregMR(mr))
		_, err := x.PostSend(x.QP, mr, 1)
		require.ErrorIs(t, err, syscall.EBADF)
	}},
	{"Insufficient permissions", func(t *testing.T, x, y *uapitest.End) {
		_, info := mustMR(t, y.Context, make([]byte, 8), localWrite)
		x.Must(x.PostFetchAdd(x.QP, x.MR, 0, info.Addr, info.RKey, 1))
		require.Equal(t, uapi.WCRemAccessErr, x.Next(1)[0].Status)
		_, err := x.RegMR(make([]byte, 8), remoteWrite)
		require.ErrorIs(t, err, syscall.EINVAL, "remote writing needs local writing")
	}},
	{"Queue full", func(t *testing.T, x, y *uapitest.End) {
		for range uapitest.Depth {
			x.Must(x.PostRecv(x.QP, x.MR, 0, 1))
		}
		_, err := x.PostRecv(x.QP, x.MR, 0, 1)
		require.ErrorIs(t, err, syscall.ENOMEM)
	}},
	// Notes
	{"For best performance, align memory regions to page boundaries (4096 bytes)", func(t *testing.T, x, y *uapitest.End) {
		mem, err := uapi.Alloc(100)
		require.NoError(t, err)
		mr, info := mustMR(t, x.Context, mem, localWrite)
		require.Zero(t, info.Addr%4096)
		require.ErrorIs(t, uapi.Free(mem), syscall.EBUSY)
		require.NoError(t, x.DeregMR(mr))
		require.NoError(t, uapi.Free(mem))
		_, info = mustMR(t, x.Context, make([]byte, 100)[1:], localWrite)
		require.NotZero(t, info.Addr, "and any other memory does, too")
	}},
	{"RDMA operations are asynchronous - always poll for completions", func(t *testing.T, x, y *uapitest.End) {
		y.Must(y.PostRecv(y.QP, y.MR, 0, 8))
		n, err := y.PollCQ(y.QP, make([]uapi.WC, 1))
		require.NoError(t, err)
		require.Zero(t, n, "the post returned before there was a message")
		x.Must(x.PostSend(x.QP, x.MR, 8))
		require.NoError(t, y.Next(1)[0].Err())
		require.NoError(t, x.Next(1)[0].Err())
	}},
	{"Always deregister memory regions and destroy queue pairs before exit", func(t *testing.T, x, y *uapitest.End) {
		// OpenHandles lists the handles that a program forgets, and Close
		// destroys them.
		c, err := uapi.Open("sim")
		require.NoError(t, err)
		_, err = c.RegMR(make([]byte, 10), 0)
		require.NoError(t, err)
		_, err = c.CreateQP(1, 1)
		require.NoError(t, err)
		left := c.OpenHandles()
		require.Len(t, left, 2)
		require.Contains(t, left[0], "mr ")
		require.Contains(t, left[0], "founding_test.go:")
		require.Contains(t, left[1], "qp ")
		require.NoError(t, c.Close())
		require.Empty(t, c.OpenHandles())
	}},
	{"A process can create multiple queue pairs for parallel operations", func(t *testing.T, x, y *uapitest.End) {
		const pairs = 8
		for i := range pairs {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				qa, qb := mustQP(t, x.Context, uapi.QPConfig{SendDepth: 8}), mustQP(t, y.Context, uapi.QPConfig{})
				connectPair(t, x.Context, qa, y.Context, qb)
				for range 8 {
					at := uint64(i) * 4096
					_, err := x.PostWrite(qa, x.MR, at, x.Peer.Addr+at, x.Peer.RKey, 4096)
					require.NoError(t, err)
				}
				for range 8 {
					require.NoError(t, next(t, x.Context, qa).Err())
				}
			})
		}
	}},
}

// The seven calls in the order in which the document has them; each has a
// description, parameters and a result above.

func TestFoundingSentences(t *testing.T) {
	for _, s := range sentences {
		t.Run(s.text, func(t *testing.T) {
			t.Parallel()
			eachDevice(t, func(t *testing.T, a, b *uapi.Context) {
				x, y := uapitest.Connect(t, a, b)
				s.test(t, x, y)
			})
		})
	}
}

// Every sentence of the document is in the table above.
func TestFoundingDocument(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "rdma-api.txt"))
	require.NoError(t, err)
	held := make(map[string]bool)
	for _, s := range sentences {
		held[s.text] = true
	}
	found := foundingSentences(string(text))
	require.Greater(t, len(found), 50)
	used := make(map[string]bool)
	for _, s := range found {
		require.True(t, held[s], "no test holds: %s", s)
		used[s] = true
	}
	for s := range held {
		require.True(t, used[s], "the document does not say: %s", s)
	}
}

var (
	foundingItem  = regexp.MustCompile("^\\s*-\\s+`[a-zA-Z_]+`: (.*)$")
	foundingField = regexp.MustCompile(`^\*\*(Description|Returns|Page Alignment|Synchronization|Cleanup|Multiple QPs)\*\*: (.*)$`)
	foundingNote  = regexp.MustCompile(`^\d+\. \*\*[A-Za-z ]+\*\*: (.*)$`)
	foundingError = regexp.MustCompile(`^- ([A-Z].*)$`)
	foundingWC    = regexp.MustCompile(`^    (?:int|uint64) [a-z_]+; +// (.*)$`)
)

// foundingSentences takes the statements out of the document: descriptions,
// parameters, results, fields, statuses, errors and notes. Its example
// programs are held by TestFoundingExample and the Examples.
func foundingSentences(text string) []string {
	var found []string
	code := false
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "```") {
			code = !code
			continue
		}
		if code {
			if m := foundingWC.FindStringSubmatch(line); m != nil {
				found = append(found, m[1])
			}
			if m := strings.TrimSpace(line); strings.HasPrefix(m, "// Write to remote") {
				found = append(found, strings.TrimPrefix(m, "// "))
			}
			continue
		}
		for _, form := range []*regexp.Regexp{foundingItem, foundingNote, foundingError} {
			if m := form.FindStringSubmatch(line); m != nil {
				found = append(found, m[1])
			}
		}
		if m := foundingField.FindStringSubmatch(line); m != nil {
			found = append(found, m[2])
		}
		if rest, ok := strings.CutPrefix(line, "All RDMA functions return -1 on error. "); ok {
			found = append(found, "All RDMA functions return -1 on error.", rest)
		}
	}
	return found
}
