package emu

import (
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/rdmacm"
	"github.com/rdmashim/rdmashim/tests/must"
)

// TestCMPush: events are handed over, those first that waited, and count as
// read; the request of a peer waits for GET_EVENT.
func TestCMPush(t *testing.T) {
	bed := newCMBed(t)
	f := must.Get(bed.pb.Open("/dev/infiniband/rdma_cm"))(t)
	answer := make([]byte, 512)
	addr, release := f.Pin(answer)
	defer release()
	give := func(cmd abi.UCMCommand, in abi.Struct) error {
		b := make([]byte, abi.UCMHdrSize+abi.UCMAcceptSize)
		(&abi.UCMHdr{Cmd: cmd, In: abi.UCMAcceptSize, Out: 336}).Put(b)
		in.Put(b[abi.UCMHdrSize:])
		_, err := f.Write(b)
		return err
	}
	fetch := func() (ev abi.UCMEventResp, err error) {
		if err = give(abi.UCMCmdGetEvent, &abi.UCMGetEvent{Response: addr}); err == nil {
			err = ev.Parse(answer)
		}
		return ev, err
	}
	created := func(uid uint64) uint32 {
		require.NoError(t, give(abi.UCMCmdCreateID, &abi.UCMCreateID{UID: uid, Response: addr, PS: abi.UCMPSTCP, QPType: abi.QPTRC}))
		return le.Uint32(answer)
	}
	sockaddr := func(at netip.AddrPort) (s abi.SockaddrStorage, n uint16) {
		n = must.Get(s.Set(at))(t)
		return s, n
	}

	active := created(7)
	to, n := sockaddr(netip.MustParseAddrPort("10.0.0.1:9"))
	require.NoError(t, give(abi.UCMCmdResolveAddr, &abi.UCMResolveAddr{ID: active, TimeoutMS: 1000, DstSize: n, DstAddr: to}))
	var got []abi.UCMEvent
	f.(kshim.Pusher).Push(func(b []byte) {
		var ev abi.UCMEventResp
		require.NoError(t, ev.Parse(b))
		require.EqualValues(t, 7, ev.UID)
		got = append(got, ev.Event)
	})
	require.Equal(t, []abi.UCMEvent{abi.UCMEventAddrResolved}, got)
	require.NoError(t, give(abi.UCMCmdResolveRoute, &abi.UCMResolveRoute{ID: active, TimeoutMS: 1000}))
	require.Equal(t, []abi.UCMEvent{abi.UCMEventAddrResolved, abi.UCMEventRouteResolved}, got)
	must.Fail(fetch())(t, syscall.EAGAIN)

	passive := created(8)
	at, n := sockaddr(cmServer)
	require.NoError(t, give(abi.UCMCmdBind, &abi.UCMBind{ID: passive, AddrSize: n, Addr: at}))
	require.NoError(t, give(abi.UCMCmdListen, &abi.UCMListen{ID: passive, Backlog: 1}))
	id := must.Get(bed.a.Resolve(t.Context(), netip.AddrPort{}, cmServer, rdmacm.Options{}))(t)
	asked := make(chan error, 1)
	go func() {
		_, err := id.Connect(t.Context(), qpNumber(0), rdmacm.ConnParam{})
		asked <- err
	}()
	require.NoError(t, f.(kshim.Waiter).WaitReadable(t.Context()))
	ev := must.Get(fetch())(t)
	require.Equal(t, abi.UCMEventConnectRequest, ev.Event)
	require.EqualValues(t, 8, ev.UID)

	require.NoError(t, give(abi.UCMCmdDestroyID, &abi.UCMDestroyID{Response: addr, ID: active}))
	require.EqualValues(t, 2, le.Uint32(answer), "events that were given")
	require.NoError(t, f.Close())
	require.Error(t, <-asked)
	require.NoError(t, id.Destroy())
	require.Len(t, got, 2)
}
