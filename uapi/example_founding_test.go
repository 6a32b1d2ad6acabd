package uapi_test

import (
	"context"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// The founding document's complete example, line for line, on the package
// functions. It writes to memory that nobody registered, so its outcome cannot
// be success; package uapi's documentation says what it is instead. These
// tests share the default context and do not run in parallel.

// foundingExample is the document's program up to its cleanup. connect stands
// between creating the queue pair and posting; the document has nothing there.
func foundingExample(t *testing.T, connect func(qp uapi.QP)) (wc [1]uapi.WC, postErr error) {
	// Allocate and register memory
	sendBuf := make([]byte, 4096)
	copy(sendBuf, "Test message")
	recvBuf := make([]byte, 4096)

	sendMR, err := uapi.RegMR(sendBuf, uapi.AccessLocalWrite)
	require.NoError(t, err)
	recvMR, err := uapi.RegMR(recvBuf, uapi.AccessLocalWrite|uapi.AccessRemoteWrite)
	require.NoError(t, err)

	// Create queue pair
	qp, err := uapi.CreateQP(64, 64)
	require.NoError(t, err)
	connect(qp)

	// Post RDMA write
	remoteAddr := uint64(0x80000000) // Example remote address
	remoteRKey := uint32(12345)      // Example remote key

	wrID, postErr := uapi.PostWrite(qp, sendMR, 0, remoteAddr, remoteRKey, 12)

	// Poll for completion
	if postErr == nil {
		for {
			n, err := uapi.PollCQ(qp, wc[:])
			require.NoError(t, err)
			if n != 0 {
				break
			}
			// Spin waiting for completion
		}
		require.Equal(t, wrID, wc[0].WRID)
	}

	// Cleanup
	require.NoError(t, uapi.DestroyQP(qp))
	require.NoError(t, uapi.DeregMR(sendMR))
	require.NoError(t, uapi.DeregMR(recvMR))
	return wc, postErr
}

func TestFoundingExampleNotConnected(t *testing.T) {
	t.Setenv("RDMASHIM_DEVICE", "sim")
	t.Cleanup(func() { require.NoError(t, uapi.Close()) })
	_, err := foundingExample(t, func(uapi.QP) {})
	require.ErrorIs(t, err, syscall.EINVAL)
	require.ErrorContains(t, err, "ConnectQP")
}

func TestFoundingExampleConnected(t *testing.T) {
	for _, device := range []string{"sim", "soft?port=0"} {
		t.Run(device, func(t *testing.T) {
			t.Setenv("RDMASHIM_DEVICE", device)
			t.Cleanup(func() { require.NoError(t, uapi.Close()) })
			wc, err := foundingExample(t, func(qp uapi.QP) {
				c, err := uapi.Default()
				require.NoError(t, err)
				connectPair(t, c, qp, c, mustQP(t, c, uapi.QPConfig{}))
			})
			require.NoError(t, err)
			require.Equal(t, uapi.WCRemAccessErr, wc[0].Status)
		})
	}
}

// With a peer's queried address and key the same calls move the bytes.
func TestFoundingExampleWithQueriedKey(t *testing.T) {
	t.Setenv("RDMASHIM_DEVICE", "sim")
	t.Cleanup(func() { require.NoError(t, uapi.Close()) })
	send, recv := []byte("Test message"), make([]byte, 4096)
	sendMR, err := uapi.RegMR(send, uapi.AccessLocalWrite)
	require.NoError(t, err)
	recvMR, err := uapi.RegMR(recv, uapi.AccessLocalWrite|uapi.AccessRemoteWrite)
	require.NoError(t, err)
	info, err := uapi.QueryMR(recvMR)
	require.NoError(t, err)
	qp, err := uapi.CreateQP(64, 64)
	require.NoError(t, err)
	e, err := uapi.LocalEndpoint(qp)
	require.NoError(t, err)
	require.NoError(t, uapi.ConnectQP(qp, e))
	_, err = uapi.PostWrite(qp, sendMR, 0, info.Addr, info.RKey, 12)
	require.NoError(t, err)
	var wc [1]uapi.WC
	n, err := uapi.WaitCQ(within(t), qp, wc[:])
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, wc[0].Err())
	require.Equal(t, "Test message", string(recv[:12]))
}

// The default context opens what RDMASHIM_DEVICE names; its handles die with
// it, and the next use opens a new one.
func TestDefaultContext(t *testing.T) {
	t.Setenv("RDMASHIM_DEVICE", "sim?loss=nonsense")
	_, err := uapi.CreateQP(1, 1)
	require.ErrorIs(t, err, syscall.EINVAL)
	require.ErrorContains(t, err, "sim?loss=nonsense")

	t.Setenv("RDMASHIM_DEVICE", "sim?mtu=512")
	info, err := uapi.QueryDevice()
	require.NoError(t, err)
	require.Equal(t, 512, info.MTU)
	mr, err := uapi.RegMR(make([]byte, 10), 0)
	require.NoError(t, err)
	require.NoError(t, uapi.Close())
	require.NoError(t, uapi.Close())
	_, err = uapi.QueryMR(mr)
	require.ErrorIs(t, err, syscall.EBADF)
	require.NoError(t, uapi.Close())
}

// Every call answers EBADF for zero handles, without touching anything.
func TestZeroHandles(t *testing.T) {
	a, _ := uapitest.Pair(t, "")
	for name, err := range callsOn(a, 0, 0, 0) {
		require.ErrorIs(t, err, syscall.EBADF, name)
		var op *uapi.OpError
		require.ErrorAs(t, err, &op, name)
		require.Equal(t, name, op.Op)
	}
}

// Every package function does what the method of its name does, with the
// parameters in the same order.
func TestPackageFunctions(t *testing.T) {
	t.Setenv("RDMASHIM_DEVICE", "sim")
	t.Cleanup(func() { require.NoError(t, uapi.Close()) })
	buf := make([]byte, 4096)
	mr, err := uapi.RegMR(buf, uapitest.AllAccess)
	require.NoError(t, err)
	info, err := uapi.QueryMR(mr)
	require.NoError(t, err)
	cq, err := uapi.CreateCQ(64)
	require.NoError(t, err)
	qp, err := uapi.CreateQPWith(uapi.QPConfig{SendCQ: cq, SendDepth: 16, RecvDepth: 16})
	require.NoError(t, err)
	peer, err := uapi.CreateQP(16, 16)
	require.NoError(t, err)

	// The two meet over a pipe.
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	met := make(chan error, 1)
	go func() {
		_, err := uapi.ConnectOver(context.Background(), there, peer, nil, nil)
		met <- err
	}()
	_, err = uapi.ConnectOver(within(t), here, qp, []uapi.MR{mr}, nil)
	require.NoError(t, err)
	require.NoError(t, <-met)

	for range 2 {
		_, err = uapi.PostRecv(peer, mr, 3000, 100)
		require.NoError(t, err)
	}
	_, err = uapi.PostRecv(peer, mr, 3000, 100)
	require.NoError(t, err)
	copy(buf, "0123456789")
	var wc [1]uapi.WC
	wait := func(op uapi.Opcode, length uint64) {
		t.Helper()
		n, err := uapi.Wait(within(t), cq, wc[:])
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.NoError(t, wc[0].Err())
		require.Equal(t, op, wc[0].Opcode)
		require.Equal(t, length, wc[0].ByteLen)
	}
	_, err = uapi.PostWrite(qp, mr, 1, info.Addr+100, info.RKey, 4)
	require.NoError(t, err)
	wait(uapi.WCOpWrite, 4)
	require.Equal(t, "1234", string(buf[100:104]))
	_, err = uapi.PostWriteImm(qp, mr, 2, info.Addr+200, info.RKey, 5, 77)
	require.NoError(t, err)
	wait(uapi.WCOpWrite, 5)
	require.Equal(t, "23456", string(buf[200:205]))
	_, err = uapi.PostRead(qp, mr, 300, info.Addr+3, info.RKey, 6)
	require.NoError(t, err)
	wait(uapi.WCOpRead, 6)
	require.Equal(t, "345678", string(buf[300:306]))
	_, err = uapi.PostFetchAdd(qp, mr, 400, info.Addr+408, info.RKey, 9)
	require.NoError(t, err)
	wait(uapi.WCOpFetchAdd, 8)
	_, err = uapi.PostCompareSwap(qp, mr, 400, info.Addr+408, info.RKey, 9, 11)
	require.NoError(t, err)
	wait(uapi.WCOpCompareSwap, 8)
	word, err := uapi.Uint64At(buf, 408)
	require.NoError(t, err)
	require.Equal(t, uint64(11), word.Load())
	_, err = uapi.PostSend(qp, mr, 7)
	require.NoError(t, err)
	wait(uapi.WCOpSend, 7)
	_, err = uapi.PostSendImm(qp, mr, 8, 78)
	require.NoError(t, err)
	wait(uapi.WCOpSend, 8)
	for _, imm := range []uint32{77, 0, 78} {
		n, err := uapi.WaitCQ(within(t), peer, wc[:])
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, imm, wc[0].Imm)
	}
	n, err := uapi.Post(qp, []uapi.WR{{ID: 5, Op: uapi.OpWrite, Flags: uapi.Signaled, RemoteAddr: info.Addr, RKey: info.RKey}})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	wait(uapi.WCOpWrite, 0)

	state, err := uapi.QueryQP(qp)
	require.NoError(t, err)
	require.Equal(t, uapi.StateRTS, state.State)
	require.NoError(t, uapi.DisconnectQP(qp))
	n, err = uapi.Poll(cq, wc[:])
	require.NoError(t, err)
	require.Zero(t, n)
	require.NoError(t, uapi.DestroyQP(qp))
	require.NoError(t, uapi.DestroyQP(peer))
	require.NoError(t, uapi.DestroyCQ(cq))
	require.NoError(t, uapi.DeregMR(mr))
}
