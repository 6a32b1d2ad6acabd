package rdmacm

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/kerneltest"
	"github.com/rdmashim/rdmashim/tests/must"
)

// TestNoMoreEvents: a kernel that gives none any more ends all waiting, with
// its reason.
func TestNoMoreEvents(t *testing.T) {
	k := newFake(t)
	k.Silence(true)
	a := k.open()
	id := must.Get(a.NewID())(t)
	l := must.Get(a.Listen(server, 0, Options{}))(t)
	ends := make(chan error, 3)
	go func() { ends <- id.ResolveAddr(t.Context(), nowhere, server, 0) }()
	go func() { _, err := id.Next(t.Context()); ends <- err }()
	go func() { _, err := l.Accept(t.Context()); ends <- err }()
	k.fail(abi.UCMCmdGetEvent, syscall.EACCES)
	a.inject(abi.UCMEventResp{})
	for range 3 {
		err := <-ends
		require.ErrorIs(t, err, syscall.EACCES)
		require.ErrorContains(t, err, "no more events")
	}
	require.ErrorIs(t, context.Cause(id.Context()), syscall.EACCES)
	late := must.Get(a.NewID())(t)
	must.Fail(late.Next(t.Context()))(t, syscall.EACCES)
	require.NoError(t, late.Destroy())
	require.NoError(t, id.Destroy())
	require.NoError(t, l.Close())
	require.Zero(t, k.IDs())
}

// TestRefusedCommands: each is an error of its caller, and nothing is left.
func TestRefusedCommands(t *testing.T) {
	for cmd, op := range map[abi.UCMCommand]string{abi.UCMCmdCreateID: "create id", abi.UCMCmdSetOption: "set option of id 1",
		abi.UCMCmdResolveAddr: "resolve address 10.0.0.1:7471", abi.UCMCmdResolveRoute: "resolve route to 10.0.0.1:7471",
		abi.UCMCmdInitQPAttr: "ask for the queue pair's attributes of 10.0.0.1:7471", abi.UCMCmdConnect: "connect to 10.0.0.1:7471", abi.UCMCmdAccept: ""} {
		t.Run(cmd.String(), func(t *testing.T) {
			k := newFake(t)
			a, b := k.open(), k.open()
			l := must.Get(b.Listen(server, 0, Options{}))(t)
			k.fail(cmd, syscall.ENOMEM)
			ends := make(chan error, 1)
			go func() {
				id, err := a.Resolve(t.Context(), nowhere, server, Options{TOS: 1})
				if err == nil {
					_, err = id.Connect(t.Context(), newFakeQP(1), ConnParam{})
					_ = id.Destroy()
				}
				ends <- err
			}()
			if cmd == abi.UCMCmdAccept {
				r := must.Get(l.Accept(t.Context()))(t)
				require.ErrorIs(t, r.Accept(t.Context(), newFakeQP(2), ConnParam{}), syscall.ENOMEM)
				require.NoError(t, r.Destroy())
				require.ErrorIs(t, <-ends, syscall.ECONNREFUSED)
			} else {
				err := <-ends
				require.ErrorIs(t, err, syscall.ENOMEM)
				require.EqualError(t, err, "cm: "+op+": cannot allocate memory", "which call it was is said once")
			}
			require.NoError(t, l.Close())
			require.Zero(t, k.IDs())
		})
	}
}

// TestRefusedDestroy: the id is still there and can be destroyed later.
func TestRefusedDestroy(t *testing.T) {
	k := newFake(t)
	a := k.open()
	id := must.Get(a.NewID())(t)
	k.fail(abi.UCMCmdDestroyID, syscall.EACCES)
	require.ErrorIs(t, id.Destroy(), syscall.EACCES)
	k.fail(abi.UCMCmdDestroyID, nil)
	require.NoError(t, id.Destroy())
}

func TestAShortWrite(t *testing.T) {
	k := newFake(t)
	a := k.open()
	k.Do(func() { k.Short = 1 })
	must.Fail(a.NewID())(t, syscall.EIO)
}

// TestMisplacedEvents: events for no id, of unknown kinds, out of order and too
// many.
func TestMisplacedEvents(t *testing.T) {
	k := newFake(t)
	k.Silence(true)
	a := k.open()
	id := must.Get(a.NewID())(t)
	for _, uid := range []uint64{0, 77, 1 << 63} {
		for ev := range abi.UCMEvent(20) {
			if ev != abi.UCMEventConnectRequest {
				a.inject(abi.UCMEventResp{UID: uid, ID: 0, Event: ev})
			}
		}
	}
	// A request to an id that is no listener: the new id must not stay.
	orphan := must.Get(a.NewID())(t)
	a.inject(abi.UCMEventResp{UID: id.uid, ID: orphan.num, Event: abi.UCMEventConnectRequest})
	id.inject(abi.UCMEventEstablished, 0)
	full := abi.UCMEventResp{UID: id.uid, ID: id.num, Event: abi.UCMEventConnectResponse}
	(&abi.UCMConnParam{PrivateDataLen: 255}).Put(full.Param[:])
	a.inject(full)
	ev := must.Get(id.Next(t.Context()))(t)
	require.Equal(t, abi.UCMEventEstablished, ev.Type)
	ev = must.Get(id.Next(t.Context()))(t)
	require.Len(t, ev.Peer.Private, 255)
	require.Equal(t, 1, k.IDs(), "the orphan was destroyed")

	for range maxEvents + 10 {
		id.inject(abi.UCMEventAddrChange, 0)
	}
	<-id.Context().Done()
	for range maxEvents {
		must.Get(id.Next(t.Context()))(t)
	}
	must.Fail(id.Next(t.Context()))(t, syscall.EOVERFLOW)
	require.NoError(t, id.Destroy())
}

// TestCloseInTheMiddle of everything.
func TestCloseInTheMiddle(t *testing.T) {
	for range 50 {
		k := newFake(t)
		a, b := k.open(), k.open()
		l := must.Get(b.Listen(server, 0, Options{}))(t)
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				r, err := l.Accept(t.Context())
				if err != nil {
					return
				}
				_ = r.Accept(t.Context(), newFakeQP(2), ConnParam{})
			}
		})
		for range 4 {
			wg.Go(func() {
				for {
					id, err := a.Resolve(t.Context(), nowhere, server, Options{})
					if err != nil {
						return
					}
					_, _ = id.Connect(t.Context(), newFakeQP(1), ConnParam{})
					_ = id.Destroy()
				}
			})
		}
		n := rand.IntN(200)
		seen := make(chan struct{})
		k.Do(func() {
			k.Before = func(*kerneltest.Call) {
				k.Do(func() {
					if n--; n == 0 {
						close(seen)
					}
				})
			}
			if n == 0 {
				close(seen)
			}
		})
		<-seen
		require.NoError(t, b.Close())
		require.NoError(t, a.Close())
		wg.Wait()
		require.Zero(t, k.IDs())
		k.Do(func() { require.Zero(t, k.Pins) })
		must.Fail(a.NewID())(t, net.ErrClosed)
	}
}

// FuzzEvents: whatever GET_EVENT answers, the client neither panics nor hangs,
// and can be closed.
func FuzzEvents(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4})
	f.Add(make([]byte, 2*abi.UCMEventRespSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		k := newFake(t)
		a := k.open()
		l := must.Get(a.Listen(server, 2, Options{}))(t)
		id := must.Get(a.NewID())(t)
		for len(b) > 0 {
			one := make([]byte, abi.UCMEventRespSize)
			b = b[copy(one, b):]
			k.Do(func() { k.Opened[0].Give(one) })
		}
		id.inject(abi.UCMEventAddrResolved, 0)
		for { // the last one comes, unless one before ended the id
			ev, err := id.Next(t.Context())
			if err != nil || ev.Type == abi.UCMEventAddrResolved {
				break
			}
			_ = ev.Err()
		}
		_ = l.Close()
		_ = id.Destroy()
		require.NoError(t, a.Close())
	})
}

// TestCancelAtEveryCommand: at whichever command of either side the caller
// gives up, it is told so or has its connection, the other side ends, and
// nothing is left.
func TestCancelAtEveryCommand(t *testing.T) {
	made := false
	for n := 1; !made; n++ {
		require.Less(t, n, 1000, "the connection is never made")
		k := newFake(t)
		a, b := k.open(), k.open()
		l := must.Get(b.Listen(server, 0, Options{}))(t)
		ended := make(chan error, 1)
		go func() {
			r, err := l.Accept(t.Context())
			if err == nil {
				err = r.Accept(t.Context(), newFakeQP(2), ConnParam{})
				if err == nil {
					<-r.Context().Done()
				}
				_ = r.Destroy()
			}
			ended <- err
		}()
		ctx, cancel := context.WithCancel(t.Context())
		k.Do(func() {
			left := n
			k.Before = func(c *kerneltest.Call) {
				if c.Cmd != abi.UCMCmdGetEvent {
					k.Do(func() {
						if left--; left == 0 {
							cancel()
						}
					})
				}
			}
		})
		id, err := a.Resolve(ctx, nowhere, server, Options{})
		if err == nil {
			_, err = id.Connect(ctx, newFakeQP(1), ConnParam{})
			if made = err == nil && ctx.Err() == nil; made {
				cancel()
			}
			require.NoError(t, id.Destroy())
		}
		if err != nil {
			require.ErrorIs(t, err, context.Canceled, "at command %d", n)
		}
		require.NoError(t, l.Close())
		<-ended
		require.Zero(t, k.IDs(), "at command %d", n)
		cancel()
	}
}
