package uapi_test

import (
	"context"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// The founding document's complete example, line for line, on the package
// functions. It writes to memory that no program registered, so its outcome
// cannot be success; package uapi's documentation names the outcome. These
// tests share the default device and do not run in parallel.

// foundingExample is the document's program up to its cleanup. connect stands
// between creating the queue pair and posting; the document has nothing there.
func foundingExample(t *testing.T, connect func(qp uapi.QP)) (wc [1]uapi.WC, postErr, pollErr error) {
	// Allocate and register memory
	sendBuf := make([]byte, 4096)
	copy(sendBuf, "Test message")
	recvBuf := make([]byte, 4096)

	sendMR := must.Get(uapi.RegMR(sendBuf, uapi.AccessLocalWrite))(t)
	recvMR := must.Get(uapi.RegMR(recvBuf, uapi.AccessLocalWrite|uapi.AccessRemoteWrite))(t)

	// Create queue pair
	qp := must.Get(uapi.CreateQP(64, 64))(t)
	connect(qp)

	// Post RDMA write
	remoteAddr := uint64(0x80000000) // Example remote address
	remoteRKey := uint32(12345)      // Example remote key

	wrID, postErr := uapi.PostWrite(qp, sendMR, 0, remoteAddr, remoteRKey, 12)

	// Poll for completion
	for {
		var n int
		if n, pollErr = uapi.PollCQ(qp, wc[:]); n != 0 {
			break
		}
		// Spin waiting for completion
	}
	if postErr == nil {
		require.NoError(t, pollErr)
		require.Equal(t, wrID, wc[0].WRID)
	}

	// Cleanup
	require.NoError(t, uapi.DestroyQP(qp))
	require.NoError(t, uapi.DeregMR(sendMR))
	require.NoError(t, uapi.DeregMR(recvMR))
	return wc, postErr, pollErr
}

func TestFoundingExampleNotConnected(t *testing.T) {
	t.Setenv("RDMASHIM_DEVICE", "sim")
	t.Cleanup(func() { require.NoError(t, uapi.Close()) })
	for name, connect := range map[string]func(uapi.QP){
		"as it stands": func(uapi.QP) {},
		"with an endpoint that goes nowhere": func(qp uapi.QP) {
			must.Get(uapi.LocalEndpoint(qp))(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			wc, postErr, pollErr := foundingExample(t, connect)
			for _, err := range []error{postErr, pollErr} {
				require.ErrorIs(t, err, syscall.EINVAL)
				require.ErrorContains(t, err, "ConnectQP")
			}
			require.ErrorContains(t, pollErr, "never connected")
			require.NotEqual(t, uapi.WCSuccess, wc[0].Status, "what it prints next")
		})
	}
}

func TestFoundingExampleConnected(t *testing.T) {
	for _, device := range []string{"sim", "soft?port=0"} {
		for name, peer := range map[string]func(d *uapi.Device, qp uapi.QP) uapi.QP{
			"to another": func(d *uapi.Device, _ uapi.QP) uapi.QP { return mustQP(t, d, uapi.QPConfig{}) },
			"to itself":  func(_ *uapi.Device, qp uapi.QP) uapi.QP { return qp },
		} {
			t.Run(device+" "+name, func(t *testing.T) {
				t.Setenv("RDMASHIM_DEVICE", device)
				t.Cleanup(func() { require.NoError(t, uapi.Close()) })
				wc, postErr, _ := foundingExample(t, func(qp uapi.QP) {
					d := must.Get(uapi.Default())(t)
					connectPair(t, d, qp, d, peer(d, qp))
				})
				require.NoError(t, postErr)
				require.Equal(t, uapi.WCRemAccessErr, wc[0].Status)
			})
		}
	}
}

// Polling is -1 only where no completion can come: not while the queue pair is
// being connected, has receives, was connected, or shares its queue.
func TestPollBeforeConnecting(t *testing.T) {
	t.Parallel()
	a, b := uapitest.Pair(t, "")
	mr, _ := mustMR(t, a, make([]byte, 64), uapi.AccessLocalWrite)
	wc := make([]uapi.WC, 4)
	poll := func(qp uapi.QP, none bool) {
		t.Helper()
		n, err := a.PollCQ(qp, wc)
		if none {
			require.ErrorIs(t, err, syscall.EINVAL)
			require.ErrorContains(t, err, "never connected")
			require.Equal(t, -1, n)
			return
		}
		require.NoError(t, err)
		require.Zero(t, n)
	}
	qp := mustQP(t, a, uapi.QPConfig{SendDepth: 1, RecvDepth: 1})
	poll(qp, true)
	must.Get(a.LocalEndpoint(qp))(t)
	poll(qp, false) // the peer is about to be asked for its endpoint
	_, err := a.PostSend(qp, mr, 8)
	require.ErrorIs(t, err, syscall.EINVAL)
	poll(qp, true)
	must.Get(a.PostRecv(qp, mr, 0, 8))(t)
	poll(qp, false)
	connectPair(t, a, qp, b, mustQP(t, b, uapi.QPConfig{}))
	poll(qp, false)
	require.NoError(t, a.Disconnect(qp))
	n := must.Get(a.PollCQ(qp, wc))(t)
	require.Equal(t, 1, n)
	poll(qp, false)

	cq := must.Get(a.CreateCQ(2))(t)
	one, other := mustQP(t, a, uapi.QPConfig{SendCQ: cq, SendDepth: 1}), mustQP(t, a, uapi.QPConfig{SendCQ: cq, SendDepth: 1})
	poll(one, false)
	require.NoError(t, a.DestroyQP(other))
	poll(one, true)
	require.NoError(t, a.DestroyQP(one))
	require.NoError(t, a.DestroyCQ(cq))

	datagrams := mustQP(t, a, uapi.QPConfig{Type: uapi.TypeUD, SendDepth: 1})
	poll(datagrams, false)

	// A program that polls from another goroutine, with its receives posted.
	late := mustQP(t, a, uapi.QPConfig{RecvDepth: 1})
	must.Get(a.LocalEndpoint(late))(t)
	recv := must.Get(a.PostRecv(late, mr, 0, 8))(t)
	got := make(chan uapi.WC)
	go func() {
		var wc [1]uapi.WC
		for {
			if n, err := a.PollCQ(late, wc[:]); n != 0 {
				if err != nil {
					t.Error(err)
				}
				got <- wc[0]
				return
			}
		}
	}()
	qb := mustQP(t, b, uapi.QPConfig{SendDepth: 1})
	connectPair(t, a, late, b, qb)
	there, _ := mustMR(t, b, make([]byte, 8), 0)
	must.Get(b.PostSend(qb, there, 8))(t)
	require.Equal(t, recv, (<-got).WRID)
}

// The default device opens the device that RDMASHIM_DEVICE names; its handles
// die with it, and the next use opens a new one.
func TestDefaultDevice(t *testing.T) {
	t.Setenv("RDMASHIM_DEVICE", "sim?loss=nonsense")
	_, err := uapi.CreateQP(1, 1)
	require.ErrorIs(t, err, syscall.EINVAL)
	require.ErrorContains(t, err, "sim?loss=nonsense")

	t.Setenv("RDMASHIM_DEVICE", "sim?mtu=512")
	d := must.Get(uapi.Default())(t)
	info := must.Get(d.QueryDevice())(t)
	require.Equal(t, 512, info.MTU)
	mr := must.Get(uapi.RegMR(make([]byte, 10), 0))(t)
	require.NoError(t, uapi.Close())
	require.NoError(t, uapi.Close())
	_, err = uapi.QueryMR(mr)
	require.ErrorIs(t, err, syscall.EBADF)
	require.NoError(t, uapi.Close())
}

// Every call answers EBADF for zero handles, without touching anything.
func TestZeroHandles(t *testing.T) {
	a, _ := uapitest.Pair(t, "")
	for name, err := range callsOn(a, 0, 0, 0, 0) {
		require.ErrorIs(t, err, syscall.EBADF, name)
		var op *uapi.OpError
		require.ErrorAs(t, err, &op, name)
		require.Equal(t, name, op.Op)
	}
}

// Every package function does what the method of its name does, with the
// parameters in the same order, on the device that Default returns.
func TestPackageFunctions(t *testing.T) {
	t.Setenv("RDMASHIM_DEVICE", "sim")
	t.Cleanup(func() { require.NoError(t, uapi.Close()) })
	buf := make([]byte, 4096)
	mr := must.Get(uapi.RegMR(buf, uapitest.AllAccess))(t)
	info := must.Get(uapi.QueryMR(mr))(t)
	d := must.Get(uapi.Default())(t)
	cq := must.Get(d.CreateCQ(64))(t)
	qp := must.Get(d.CreateQPWith(uapi.QPConfig{SendCQ: cq, SendDepth: 16, RecvDepth: 16}))(t)
	peer := must.Get(uapi.CreateQP(16, 16))(t)

	// The two meet over a pipe.
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	met := make(chan error, 1)
	go func() {
		_, err := uapi.ConnectOver(context.Background(), there, peer, nil, nil)
		met <- err
	}()
	must.Get(uapi.ConnectOver(within(t), here, qp, []uapi.MR{mr}, nil))(t)
	require.NoError(t, <-met)

	must.Get(uapi.PostRecv(peer, mr, 3000, 100))(t)
	copy(buf, "0123456789")
	var wc [1]uapi.WC
	wait := func(op uapi.Opcode, length uint64) {
		t.Helper()
		n := must.Get(d.WaitQueue(within(t), cq, wc[:]))(t)
		require.Equal(t, 1, n)
		require.NoError(t, wc[0].Err())
		require.Equal(t, op, wc[0].Opcode)
		require.Equal(t, length, wc[0].ByteLen)
	}
	must.Get(uapi.PostWrite(qp, mr, 1, info.Addr+100, info.RKey, 4))(t)
	wait(uapi.WCOpWrite, 4)
	require.Equal(t, "1234", string(buf[100:104]))
	must.Get(uapi.PostRead(qp, mr, 300, info.Addr+3, info.RKey, 6))(t)
	wait(uapi.WCOpRead, 6)
	require.Equal(t, "345678", string(buf[300:306]))
	must.Get(uapi.PostSend(qp, mr, 7))(t)
	wait(uapi.WCOpSend, 7)
	n := must.Get(uapi.WaitCQ(within(t), peer, wc[:]))(t)
	require.Equal(t, 1, n)
	require.Equal(t, "0123456", string(buf[3000:3007]))
	n = must.Get(uapi.PollCQ(peer, wc[:]))(t)
	require.Zero(t, n)
	self := must.Get(uapi.CreateQP(1, 1))(t)
	require.NoError(t, uapi.ConnectQP(self, must.Get(uapi.LocalEndpoint(self))(t)))
	must.Get(uapi.PostWrite(self, mr, 0, info.Addr, info.RKey, 1))(t)
	require.NoError(t, uapi.DestroyQP(self))
	require.NoError(t, uapi.DestroyQP(qp))
	require.NoError(t, uapi.DestroyQP(peer))
	require.NoError(t, d.DestroyCQ(cq))
	require.NoError(t, uapi.DeregMR(mr))
}
