//go:build guest && linux

package interop

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// TestRefusedByRule: calls, completions and events of the kernel's own device
// are spoiled by rules of its name, and its queue pair is in ERR for the kernel
// as for the program.
func TestRefusedByRule(t *testing.T) {
	f := families[0]
	open := func(t *testing.T, rules string) (rxe, soft *end) {
		index := gidIndex(f.rxe)
		d := must.Get(uapi.Open("rxe0?fault="+rules, uapi.OpenConfig{GIDIndex: &index}))(t)
		t.Cleanup(func() { require.NoError(t, d.Close()) })
		return newPair(t, newDevice(t, "rxe", d, 1<<12), newDevice(t, "soft", openSoft(t, softName(f, 0, "")), 1<<12), uapi.QPConfig{})
	}
	write := func(e, to *end, id uapi.WRID) uapi.WR {
		return uapi.WR{ID: id, Op: uapi.OpWrite, Flags: uapi.Signaled, RemoteAddr: to.region.Addr, RKey: to.region.RKey,
			SGE: []uapi.SGE{{MR: e.mr, Length: 64}}}
	}
	t.Run("calls", func(t *testing.T) {
		d := must.Get(uapi.Open("rxe0?fault=call=CREATE_CQ nth=2 errno=ENOMEM", uapi.OpenConfig{}))(t)
		must.Get(d.CreateCQ(8))(t)
		must.Fail(d.CreateCQ(8))(t, syscall.ENOMEM)
		require.NoError(t, d.Close())
	})
	t.Run("completions", func(t *testing.T) {
		rxe, soft := open(t, "wc=RDMA_WRITE nth=3 status=REM_OP_ERR")
		for id := range uapi.WRID(5) {
			rxe.post(t, write(rxe, soft, id))
		}
		for id, status := range []uapi.Status{uapi.WCSuccess, uapi.WCSuccess, uapi.WCRemOpErr, uapi.WCWRFlushErr, uapi.WCWRFlushErr} {
			require.EqualValues(t, id, rxe.ends(t, status).WRID)
		}
		require.Equal(t, uapi.StateError, must.Get(rxe.device.QueryQP(rxe.qp))(t).State)
		soft.post(t, write(soft, rxe, 9))
		soft.ends(t, uapi.WCRetryExcErr)
	})
	t.Run("events", func(t *testing.T) {
		rxe, soft := open(t, "event=PORT_ERR after=1;event=QP_FATAL after=2;event=DEVICE_FATAL after=2")
		events := rxe.device.Events(t.Context())
		for id := range uapi.WRID(2) {
			rxe.post(t, write(rxe, soft, id))
			rxe.ends(t, uapi.WCSuccess)
		}
		for _, want := range []uapi.EventType{uapi.EventPortErr, uapi.EventQPFatal, uapi.EventDeviceFatal} {
			require.Equal(t, want, (<-events).Type)
		}
		must.Fail(rxe.device.CreateCQ(8))(t, syscall.EIO)
		must.Fail(rxe.device.WaitCQ(wait(t), rxe.qp, make([]uapi.WC, 1)))(t, syscall.EIO)
	})
}
