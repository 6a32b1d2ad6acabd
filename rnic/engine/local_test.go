package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// newWindow makes a window of type 2, which can be bound once.
func (h *host) newWindow() *mem.Window {
	w, err := h.tab.AllocateWindow(testPD, true)
	require.NoError(h.t, err)
	return w
}

func (h *host) bind(id uint64, w *mem.Window) SendWR {
	return SendWR{ID: id, Opcode: abi.WRBindMW, Bind: mem.Bind{
		Window: w.Key(), Key: w.Key() + 1, LKey: h.key(), Addr: h.va(0), Length: 100, Access: abi.AccessRemoteRead,
	}}
}

// newBinders makes a pair whose regions take windows.
func newBinders(t *testing.T) *network {
	n := newPair(t, cfg{psnA: 100})
	mr, err := n.a.tab.Register(testPD, mem.Near(n.a.mem), n.a.va(0), allAccess|abi.AccessMWBind)
	require.NoError(t, err)
	n.a.mr = mr
	return n
}

// A window is bound as soon as the requests before it have left, those behind
// leave in the same flight, and all complete in their order. Repeated packets
// do not bind it again.
func TestBindPasses(t *testing.T) {
	for _, lost := range []wire.PSN{100, 101, 102} {
		n := newBinders(t)
		w := n.a.newWindow()
		n.post(n.a, n.write(1, 10))
		n.post(n.a, n.read(2, 10))
		n.post(n.a, n.a.bind(3, w))
		n.post(n.a, n.write(4, 10))
		n.filter = dropOnce(n.a, psnIs(lost))
		n.pump(n.a)
		require.Len(t, n.a.sent, 3)
		require.NoError(t, n.a.tab.Check(testPD, w.Key(), n.a.va(0), 1, abi.AccessRemoteRead))
		require.NoError(t, n.a.tab.Invalidate(testPD, uint32(n.a.qp.cfg.QPN), w.Key()))
		n.run(0)
		require.Greater(t, len(n.a.sent), 3)
		requireSuccess(t, n.a.wcs, 1, 2, 3, 4)
		require.Error(t, n.a.tab.Check(testPD, w.Key(), n.a.va(0), 1, abi.AccessRemoteRead), "it was bound again")
	}
}

// A key is revoked when all requests before have completed, those behind wait,
// and all complete in their order.
func TestInvalidateWaits(t *testing.T) {
	n := newBinders(t)
	w := n.a.newWindow()
	n.post(n.a, n.a.bind(1, w))
	n.run(0)
	n.post(n.a, n.write(2, 10))
	n.post(n.a, SendWR{ID: 3, Opcode: abi.WRLocalInv, Invalidate: w.Key()})
	n.post(n.a, n.write(4, 10))
	n.pump(n.a)
	require.Len(t, n.a.sent, 1, "what is behind it has left")
	require.NoError(t, n.a.tab.Check(testPD, w.Key(), n.a.va(0), 1, abi.AccessRemoteRead))
	n.run(0)
	require.Error(t, n.a.tab.Check(testPD, w.Key(), n.a.va(0), 1, abi.AccessRemoteRead))
	requireSuccess(t, n.a.wcs, 1, 2, 3, 4)
}

// A fenced binding waits for the READ before it, and one that fails ends the
// queue pair when those before it are complete.
func TestBindWaits(t *testing.T) {
	n := newBinders(t)
	w := n.a.newWindow()
	fenced := n.a.bind(2, w)
	fenced.Flags = abi.SendFence
	n.post(n.a, n.read(1, 10))
	n.post(n.a, fenced)
	key := w.Key()
	n.pump(n.a)
	require.Equal(t, key, w.Key())
	n.run(0)
	require.NotEqual(t, key, w.Key())

	n.post(n.a, n.write(3, 10))
	n.post(n.a, n.a.bind(4, w))
	n.post(n.a, n.write(5, 10))
	n.pump(n.a)
	require.Equal(t, abi.QPSRTS, n.a.qp.State())
	n.run(0)
	requireSuccess(t, n.a.wcs[:3], 1, 2, 3)
	require.Equal(t, []abi.WCStatus{abi.WCMWBindErr, abi.WCWRFlushErr}, statuses(n.a.wcs[3:]))
}
