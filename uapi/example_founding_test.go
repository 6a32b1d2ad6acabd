package uapi_test

import (
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
