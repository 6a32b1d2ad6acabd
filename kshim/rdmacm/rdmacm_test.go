package rdmacm

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/kerneltest"
	"github.com/rdmashim/rdmashim/tests/must"
)

var (
	nowhere = netip.AddrPort{}
	server  = netip.MustParseAddrPort("10.0.0.1:7471")
)

func TestConnection(t *testing.T) {
	k := newFake(t)
	a, b := k.open(), k.open()
	qb := newFakeQP(0x222)
	accepted := make(chan *Request, 1)
	listen(t, b, func(r *Request) {
		require.NoError(t, r.Init(qb))
		require.NoError(t, r.Accept(t.Context(), qb, ConnParam{Private: []byte("back"), ResponderResources: 9, InitiatorDepth: 1, MinRNRTimer: 12}))
		accepted <- r
	})
	id := must.Get(a.Resolve(t.Context(), nowhere, server, Options{TOS: 8}))(t)
	name := must.Get(id.Device())(t)
	require.Equal(t, "rxe0", name)
	qa := newFakeQP(0x111)
	peer, err := id.Connect(t.Context(), qa, ConnParam{Private: []byte("there"), ResponderResources: 4, InitiatorDepth: 2, RetryCount: 9, RNRRetryCount: 7})
	require.NoError(t, err)
	require.Equal(t, "back", string(peer.Private[:4]))
	require.Len(t, peer.Private, abi.UCMAcceptData)
	require.Equal(t, uint32(0x222), peer.QPN)
	r := <-accepted
	require.Equal(t, "there", string(r.Peer.Private[:5]))
	require.Equal(t, uint32(0x111), r.Peer.QPN)

	// The second INIT of the active side brings the accesses.
	require.Equal(t, []string{"INIT 0", "INIT REMOTE_WRITE|REMOTE_READ|REMOTE_ATOMIC", "RTR", "RTS"}, qa.seen)
	require.Equal(t, []string{"INIT REMOTE_WRITE|REMOTE_READ|REMOTE_ATOMIC", "RTR", "RTS"}, qb.seen)
	require.Equal(t, uint32(0x222), qa.last[abi.QPSRTR].DestQPNum)
	require.Equal(t, []uint8{2, 1}, []uint8{qb.last[abi.QPSRTR].MaxDestRdAtomic, qb.last[abi.QPSRTS].MaxRdAtomic}, "cut to the offer")
	require.Equal(t, []uint8{0, 12}, []uint8{qa.last[abi.QPSRTR].MinRNRTimer, qb.last[abi.QPSRTR].MinRNRTimer})
	asked := k.wire.Asked()
	require.Equal(t, uint8(8), asked.TOS)
	require.Equal(t, uint8(7), asked.Param.RetryCount)

	require.NoError(t, id.Context().Err())
	require.NoError(t, r.Context().Err())
	require.NoError(t, r.Disconnect())
	<-id.Context().Done()
	require.ErrorIs(t, context.Cause(id.Context()), syscall.ECONNRESET)
	<-r.Context().Done() // the reply came by itself
	require.ErrorIs(t, context.Cause(r.Context()), syscall.ENOTCONN)
	for _, end := range []*ID{id, r.ID} {
		ev, err := end.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, abi.UCMEventDisconnected, ev.Type)
		require.NoError(t, end.Destroy())
		require.ErrorIs(t, end.Destroy(), syscall.EBADF)
		for err == nil { // TIMEWAIT_EXIT may have come
			ev, err = end.Next(t.Context())
		}
		require.ErrorIs(t, err, syscall.EBADF)
	}
	require.Equal(t, 1, k.IDs(), "the listener")
}

// An acceptor that hears that the peer has gone, and never that it was
// connected, was connected: the peer may have written all that it had to.
func TestThePeersWordIsLost(t *testing.T) {
	k := newFake(t)
	k.After = func(c *kerneltest.Call) {
		var ev abi.UCMEventResp
		if c.Cmd == abi.UCMCmdGetEvent && ev.Parse(c.Out) == nil && ev.Event == abi.UCMEventEstablished {
			ev.Event = 99 // an unknown one
			ev.Put(c.Out)
		}
	}
	a, b := k.open(), k.open()
	accepted := make(chan *Request, 1)
	listen(t, b, func(r *Request) {
		require.NoError(t, r.Accept(t.Context(), newFakeQP(2), ConnParam{}))
		accepted <- r
	})
	id := must.Get(a.Resolve(t.Context(), nowhere, server, Options{}))(t)
	must.Get(id.Connect(t.Context(), newFakeQP(1), ConnParam{}))(t)
	require.NoError(t, id.Disconnect())
	r := <-accepted
	<-r.Context().Done()
	require.ErrorIs(t, context.Cause(r.Context()), syscall.ECONNRESET)
	ev := must.Get(r.Next(t.Context()))(t)
	require.Equal(t, abi.UCMEventDisconnected, ev.Type)
	require.NoError(t, r.Destroy())
	require.NoError(t, id.Destroy())
}

// TestThePeerGivesUp: a peer that has replied, and ends the connection before
// this side's queue pair is ready, has disconnected.
func TestThePeerGivesUp(t *testing.T) {
	k := newFake(t)
	a, b := k.open(), k.open()
	listen(t, b, func(r *Request) {
		_ = r.Accept(t.Context(), newFakeQP(2), ConnParam{})
		_ = r.Destroy()
	})
	asked := 0
	k.Do(func() {
		k.Before = func(c *kerneltest.Call) {
			if c.File == a.file && c.Cmd == abi.UCMCmdInitQPAttr {
				if asked++; asked == 2 { // after the reply
					k.fail(abi.UCMCmdInitQPAttr, syscall.EINVAL)
				}
			}
		}
	})
	id := must.Get(a.Resolve(t.Context(), nowhere, server, Options{}))(t)
	_, err := id.Connect(t.Context(), newFakeQP(1), ConnParam{})
	var gone *DisconnectedError
	require.ErrorAs(t, err, &gone)
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.ErrorContains(t, err, "peer disconnected")
	require.NoError(t, id.Destroy())
}

func TestReject(t *testing.T) {
	k := newFake(t)
	a, b := k.open(), k.open()
	rejected := make(chan struct{})
	listen(t, b, func(r *Request) {
		require.ErrorIs(t, r.Reject(abi.UCMRejNoResources, nil), syscall.EINVAL)
		require.ErrorIs(t, r.Reject(0, make([]byte, 149)), syscall.EINVAL)
		require.NoError(t, r.Reject(abi.UCMRejVendorOptionNotSupported, []byte("no")))
		close(rejected)
	})
	id := must.Get(a.Resolve(t.Context(), nowhere, server, Options{}))(t)
	_, err := id.Connect(t.Context(), newFakeQP(1), ConnParam{})
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	var r *RejectedError
	require.ErrorAs(t, err, &r)
	require.Equal(t, abi.UCMRejVendorOptionNotSupported, r.Reason)
	require.Equal(t, "no", string(r.Private[:2]))
	require.EqualError(t, err, "cm: connect to 10.0.0.1:7471: connection rejected: VENDOR_OPTION_NOT_SUPPORTED")
	require.NoError(t, id.Destroy())
	<-rejected
	require.Equal(t, 1, k.IDs())
}

func TestNobodyListens(t *testing.T) {
	k := newFake(t)
	a := k.open()
	id := must.Get(a.Resolve(t.Context(), nowhere, server, Options{}))(t)
	defer id.Destroy()
	_, err := id.Connect(t.Context(), newFakeQP(1), ConnParam{})
	require.EqualError(t, err, "cm: connect to 10.0.0.1:7471: connection refused: nobody listens there")
	_, err = id.Connect(t.Context(), newFakeQP(1), ConnParam{Private: make([]byte, 57)})
	require.ErrorIs(t, err, syscall.EINVAL)
}

// TestFailures: each event that tells of one is an error that names it.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		ev     abi.UCMEvent
		status int32
		is     error
		text   string
	}{
		{abi.UCMEventAddrError, -110, syscall.ETIMEDOUT, "address was not resolved"},
		{abi.UCMEventAddrError, -19, syscall.ENODEV, "address was not resolved"},
		{abi.UCMEventRouteError, -110, syscall.ETIMEDOUT, "route was not resolved"},
		{abi.UCMEventUnreachable, -110, syscall.ETIMEDOUT, "peer does not answer"},
		{abi.UCMEventUnreachable, 0, syscall.EHOSTUNREACH, "peer does not answer"},
		{abi.UCMEventConnectError, -22, syscall.EINVAL, "connection was not made"},
		{abi.UCMEventConnectError, -1 << 31, syscall.EIO, "connection was not made"},
		{abi.UCMEventDeviceRemoval, 0, syscall.ENODEV, "device has gone"},
		{abi.UCMEventRejected, -111, syscall.ECONNREFUSED, "REJECTED"},
		{abi.UCMEventDisconnected, 0, syscall.ECONNRESET, "peer disconnected"},
	} {
		t.Run(c.ev.String(), func(t *testing.T) {
			k := newFake(t)
			k.Silence(true)
			a := k.open()
			id := must.Get(a.NewID())(t)
			failed := make(chan error)
			go func() { failed <- id.ResolveAddr(t.Context(), nowhere, server, 0) }()
			id.inject(99, 0) // an unknown event is passed over
			id.inject(abi.UCMEventAddrChange, 0)
			id.inject(c.ev, c.status)
			err := <-failed
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.text)
			require.NoError(t, id.Destroy())
		})
	}
}

// TestDeadlines hold at every step, and an id that was given up is destroyed.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFake(t)
		a, b := k.open(), k.open()
		defer func() { require.NoError(t, a.Close()); require.NoError(t, b.Close()) }()
		l := must.Get(b.Listen(server, 1, Options{}))(t)
		within := func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), time.Second) }

		ctx, cancel := within()
		_, err := l.Accept(ctx)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)

		k.Silence(true)
		ctx, cancel = within()
		_, err = a.Resolve(ctx, nowhere, server, Options{})
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "10.0.0.1:7471")
		require.Equal(t, 1, k.IDs())
		_, err = a.Resolve(ctx, nowhere, server, Options{})
		require.ErrorIs(t, err, context.DeadlineExceeded, "before anything was asked")

		k.Silence(false)
		id := must.Get(a.Resolve(t.Context(), nowhere, server, Options{}))(t)
		k.wire.Silence(true)
		ctx, cancel = within()
		_, err = id.Connect(ctx, newFakeQP(1), ConnParam{})
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, id.Destroy())

		k.wire.Silence(false)
		id = must.Get(a.Resolve(t.Context(), nowhere, server, Options{}))(t)
		ctx, cancel = within()
		defer cancel()
		must.Fail(id.Connect(ctx, newFakeQP(1), ConnParam{}))(t, context.DeadlineExceeded) // no program accepts
		require.NoError(t, id.Destroy())
		r := must.Get(l.Accept(t.Context()))(t)
		err = r.Accept(t.Context(), newFakeQP(2), ConnParam{})
		require.ErrorIs(t, err, syscall.ECONNABORTED)
		require.ErrorContains(t, err, "the peer gave up")
		require.NoError(t, r.Destroy())
		require.NoError(t, l.Close())
		require.Zero(t, k.IDs())
	})
}

// TestMilliseconds: how long the kernel resolves is the caller's to say, and
// never longer than its context.
func TestMilliseconds(t *testing.T) {
	require.Equal(t, uint32(5000), milliseconds(t.Context(), 0))
	require.Equal(t, uint32(250), milliseconds(t.Context(), 250*time.Millisecond))
	require.Equal(t, uint32(1), milliseconds(t.Context(), time.Microsecond), "0 would be for ever")
	require.Equal(t, uint32(1<<31-1), milliseconds(t.Context(), 1<<62))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.LessOrEqual(t, milliseconds(ctx, time.Minute), uint32(100))
	cancel()
	past, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	require.Equal(t, uint32(1), milliseconds(past, 0))
}

// TestNumbersAreReused: an event of an id that is no more does not reach the
// next one, which has its number.
func TestNumbersAreReused(t *testing.T) {
	k := newFake(t)
	k.Silence(true)
	a := k.open()
	first := must.Get(a.NewID())(t)
	require.NoError(t, first.Destroy())
	second := must.Get(a.NewID())(t)
	require.Equal(t, first.num, second.num)
	require.NotEqual(t, first.uid, second.uid)
	first.inject(abi.UCMEventDisconnected, 0)
	second.inject(abi.UCMEventAddrChange, 0)
	ev := must.Get(second.Next(t.Context()))(t)
	require.Equal(t, abi.UCMEventAddrChange, ev.Type)
	require.NoError(t, second.Context().Err())
}

// TestAFailingQueuePair: the peer hears of it.
func TestAFailingQueuePair(t *testing.T) {
	for _, state := range []abi.QPState{abi.QPSInit, abi.QPSRTR, abi.QPSRTS} {
		for _, passive := range []bool{true, false} {
			t.Run(fmt.Sprint(state, passive), func(t *testing.T) {
				k := newFake(t)
				a, b := k.open(), k.open()
				qa, qb := newFakeQP(1), newFakeQP(2)
				bad := qa
				if passive {
					bad = qb
				}
				bad.fail[state] = syscall.ENOMEM
				served := make(chan error, 1)
				listen(t, b, func(r *Request) {
					served <- r.Accept(t.Context(), qb, ConnParam{})
					_ = r.Destroy()
				})
				id := must.Get(a.Resolve(t.Context(), nowhere, server, Options{}))(t)
				_, err := id.Connect(t.Context(), qa, ConnParam{})
				require.NoError(t, id.Destroy())
				if passive {
					require.ErrorIs(t, <-served, syscall.ENOMEM)
					require.ErrorIs(t, err, syscall.ECONNREFUSED)
				} else if require.ErrorIs(t, err, syscall.ENOMEM); state != abi.QPSInit {
					require.ErrorIs(t, <-served, syscall.ECONNREFUSED)
				}
			})
		}
	}
}

// TestManyAtOnce: ids of one channel do not disturb each other, and there is
// one goroutine for all.
func TestManyAtOnce(t *testing.T) {
	k := newFake(t)
	a, b := k.open(), k.open()
	listen(t, b, func(r *Request) {
		require.NoError(t, r.Accept(t.Context(), newFakeQP(r.Peer.QPN), ConnParam{}))
		context.AfterFunc(r.Context(), func() { _ = r.Destroy() })
	})
	var wg sync.WaitGroup
	for i := range uint32(200) {
		wg.Go(func() {
			id, err := a.Resolve(t.Context(), nowhere, server, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			peer, err := id.Connect(t.Context(), newFakeQP(i), ConnParam{})
			if err != nil || peer.QPN != i {
				t.Error(err, peer.QPN)
			}
			if err := id.Destroy(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Eventually(t, func() bool { return k.IDs() <= 1 }, time.Minute, time.Millisecond, "AfterFunc")
}

func TestOpen(t *testing.T) {
	k := newFake(t)
	k.Hidden = []string{node}
	_, err := Open(k)
	require.ErrorIs(t, err, syscall.ENOENT)
	require.ErrorContains(t, err, "rdma_ucm")
	k = newFake(t)
	k.Sys[versionFile] = "5\n"
	must.Fail(Open(k))(t, syscall.EPROTONOSUPPORT)
	k = newFake(t)
	k.Mute = true
	must.Fail(Open(k))(t, syscall.ENOTSUP)
	k = newFake(t)
	k.Hidden = []string{versionFile}
	c := k.open()
	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
	k.Do(func() { require.Zero(t, k.Pins) })
	must.Fail(c.NewID())(t, net.ErrClosed)
	must.Fail(c.Listen(server, 0, Options{}))(t, net.ErrClosed)
}

func TestDevice(t *testing.T) {
	k := newFake(t)
	a := k.open()
	id := must.Get(a.Resolve(t.Context(), nowhere, server, Options{}))(t)
	defer id.Destroy()
	const guid = "/sys/class/infiniband/%s/node_guid"
	k.Do(func() { // another of the same GUID, with another address
		k.Sys["/sys/class/infiniband_verbs/uverbs1/ibdev"] = "rxe1\n"
		k.Sys["/sys/class/infiniband_verbs/uverbs1/abi_version"] = "2\n"
		k.Sys[fmt.Sprintf(guid, "rxe1")] = "0200:0aff:fe00:0006\n"
		k.Sys["/sys/class/infiniband/rxe1/ports/1/gids/0"] = "0000:0000:0000:0000:0000:ffff:0a00:0002\n"
	})
	name := must.Get(id.Device())(t)
	require.Equal(t, "rxe0", name)
	k.Do(func() {
		k.Sys[fmt.Sprintf(guid, "rxe0")], k.Sys[fmt.Sprintf(guid, "rxe1")] = "0200:00ff:fe00:0009\n", "0200:00ff:fe00:0008\n"
	})
	_, err := id.Device()
	require.ErrorIs(t, err, syscall.ENODEV)
	require.ErrorContains(t, err, "rxe0 (020000fffe000009), rxe1 (020000fffe000008)")
}
