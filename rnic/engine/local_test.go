package engine

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// windowHost makes a window of type 2 at a host, whose region may be bound to.
func windowHost(t testing.TB, h *host) *mem.Window {
	access := allAccess | abi.AccessMWBind
	require.NoError(t, h.tab.Reregister(h.key(), mem.Change{Access: &access}))
	w, err := h.tab.AllocateWindow(testPD, true)
	require.NoError(t, err)
	return w
}

func (h *host) bind(id uint64, w *mem.Window) SendWR {
	return SendWR{ID: id, Opcode: abi.WRBindMW, Bind: mem.Bind{
		Window: w.Key(), Key: w.Key() + 1, LKey: h.key(), Addr: h.va(0), Length: regionLen, Access: allAccess &^ abi.AccessLocalWrite,
	}}
}

// TestLocalOperations: binding and revoking take effect between the requests
// around them, whatever is lost, doubled and reordered: completions come in
// order, and each binding when all before it is done.
func TestLocalOperations(t *testing.T) {
	for seed := range uint64(*networks) {
		rng := rand.New(rand.NewPCG(seed, 9))
		n := newPair(t, cfg{mtu: abi.MTU256, edit: func(_ int, c *Config) {
			if seed%2 == 0 {
				c.Stash = NewStash()
			}
		}})
		n.filter = func(*host, *wire.Packet) (int, Time) {
			return []int{0, 1, 1, 1, 1, 1, 1, 1, 1, 2}[rng.IntN(10)], Time(rng.IntN(3)) * latency
		}
		w := windowHost(t, n.a)
		var want []uint64
		key, bound := w.Key(), false
		for id := uint64(1); id <= 40; id++ {
			want = append(want, id)
			switch rng.IntN(5) {
			case 0:
				if bound {
					n.post(n.a, SendWR{ID: id, Opcode: abi.WRLocalInv, Invalidate: key})
				} else {
					wr := n.a.bind(id, w)
					wr.Bind.Window, wr.Bind.Key = key, key+1
					key = key&^0xff | (key+1)&0xff
					n.post(n.a, wr)
				}
				bound = !bound
			case 1:
				n.post(n.a, SendWR{ID: id, Opcode: abi.WRRDMARead, SGE: n.a.sge(0, 700), RemoteAddr: n.b.va(0), RKey: n.b.key()})
			default:
				n.post(n.a, SendWR{ID: id, Opcode: abi.WRRDMAWrite, SGE: n.a.sge(0, 1000), RemoteAddr: n.b.va(4096), RKey: n.b.key()})
			}
		}
		n.run(0)
		requireSuccess(t, n.a.wcs, want...)
		require.Equal(t, key, w.Key())
	}
}

// TestLocalOperationsFail: each fails with its status, and later requests are
// flushed.
func TestLocalOperationsFail(t *testing.T) {
	for _, x := range []struct {
		wr     SendWR
		status abi.WCStatus
	}{
		{SendWR{Opcode: abi.WRBindMW}, abi.WCMWBindErr},
		{SendWR{Opcode: abi.WRLocalInv}, abi.WCLocQPOpErr},
	} {
		n := newPair(t, cfg{})
		n.post(n.a, n.write(1, 100))
		x.wr.ID = 2
		n.post(n.a, x.wr)
		n.post(n.a, n.write(3, 100))
		n.run(0)
		require.Len(t, n.a.wcs, 3)
		require.Equal(t, abi.WCSuccess, n.a.wcs[0].Status)
		require.Equal(t, x.status, n.a.wcs[1].Status)
		require.Equal(t, abi.WCWRFlushErr, n.a.wcs[2].Status)
		require.Equal(t, abi.QPSErr, n.a.qp.State())
	}
}

// TestWindowOfQueuePair: a peer's SEND with invalidate revokes the window that
// its queue pair bound, and the peer of another queue pair has no use of it.
func TestWindowOfQueuePair(t *testing.T) {
	n := newPair(t, cfg{})
	w := windowHost(t, n.b)
	n.post(n.b, n.b.bind(1, w))
	n.run(0)
	requireSuccess(t, n.b.wcs, 1)
	wr := n.write(1, 100)
	wr.RKey = w.Key()
	n.post(n.a, wr)
	n.b.postRecv(7, 0, 100)
	n.post(n.a, SendWR{ID: 2, Opcode: abi.WRSendWithInv, Invalidate: w.Key()})
	n.run(0)
	requireSuccess(t, n.a.wcs, 1, 2)
	require.Equal(t, w.Key(), n.b.wcs[1].Invalidate)
	n.post(n.a, wr)
	n.run(0)
	require.Equal(t, abi.WCRemAccessErr, n.a.wcs[2].Status)

	n = newPair(t, cfg{})
	w = windowHost(t, n.b)
	b := n.b.bind(1, w).Bind
	require.NoError(t, n.b.tab.Bind(testPD, 99, &b), "by another queue pair")
	wr = n.write(1, 100)
	wr.RKey = w.Key()
	n.post(n.a, wr)
	n.run(0)
	require.Equal(t, abi.WCRemAccessErr, n.a.wcs[0].Status)
}
