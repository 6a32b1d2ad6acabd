//go:build guest && linux

package interop

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/rdmacm"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
)

// windowHolder has a window, and a region that it is bound to a piece of; the
// peer uses it.
type windowHolder struct {
	*cmEnd
	peer   *cmEnd
	mem    []byte
	region *verbs.MR
	key    uint32 // the window's present one
	onRXE  bool
}

const windowAt, windowLength = 1000, 2000 // of the region

// windowTests are what a holder does with a window, and what the peer may do by
// its key then. A window of type 2 does not stay bound: rdma_rxe of Linux 6.1
// cannot destroy its queue pair then. Nor is a free one revoked, which ends
// that kernel.
var windowTests = []struct {
	name string
	typ  uint8
	run  func(t *testing.T, h *windowHolder)
}{
	{"type 1", 1, func(t *testing.T, h *windowHolder) {
		h.bind(t, abi.AccessRemoteWrite|abi.AccessRemoteRead|abi.AccessRemoteAtomic, windowAt)
		h.written(t, h.key, windowAt, windowLength)
		h.readBack(t, windowAt+100, 1000)
		h.counted(t, windowAt+windowLength-8)
		h.outside(t, windowAt+windowLength-7)
	}},
	{"type 1 bound again", 1, func(t *testing.T, h *windowHolder) {
		h.bind(t, abi.AccessRemoteWrite, windowAt)
		former := h.key
		h.bind(t, abi.AccessRemoteWrite, windowAt+windowLength)
		h.written(t, h.key, windowAt+windowLength, 10)
		h.refused(t, former, windowAt)
	}},
	{"type 1 to read only", 1, func(t *testing.T, h *windowHolder) {
		h.bind(t, abi.AccessRemoteRead, windowAt)
		h.readBack(t, windowAt, windowLength)
		h.refused(t, h.key, windowAt)
	}},
	{"type 1 before its begin", 1, func(t *testing.T, h *windowHolder) {
		h.bind(t, abi.AccessRemoteWrite, windowAt)
		h.outside(t, windowAt-1)
	}},
	{"type 2 revoked", 2, func(t *testing.T, h *windowHolder) {
		h.bind(t, abi.AccessRemoteWrite, windowAt)
		h.written(t, h.key, windowAt, windowLength)
		h.revoke(t)
		h.refused(t, h.key, windowAt)
	}},
	{"type 2 revoked and bound again", 2, func(t *testing.T, h *windowHolder) {
		h.bind(t, abi.AccessRemoteWrite, windowAt)
		former := h.key
		h.revoke(t)
		h.bind(t, abi.AccessRemoteWrite, windowAt)
		h.written(t, h.key, windowAt+1, 1999)
		h.refused(t, former, windowAt)
	}},
	{"type 2 revoked by the peer", 2, func(t *testing.T, h *windowHolder) {
		h.bind(t, abi.AccessRemoteWrite, windowAt)
		h.written(t, h.key, windowAt, 8)
		h.revokedByPeer(t)
		h.refused(t, h.key, windowAt)
	}},
}

// TestWindows: memory windows of rxe used by the soft RNIC, and those of the
// soft RNIC used by rxe.
func TestWindows(t *testing.T) {
	for i, c := range windowTests {
		for j, holder := range []string{"rxe", "soft"} {
			t.Run(c.name+" of "+holder, func(t *testing.T) {
				soft, rxe := connected(t, families[(i+j)%len(families)])
				h := &windowHolder{cmEnd: rxe, peer: soft, mem: make([]byte, 8192), onRXE: holder == "rxe"}
				if holder == "soft" {
					h.cmEnd, h.peer = soft, rxe
				}
				h.region = must.Get(h.pd.RegMR(h.mem, abi.AccessLocalWrite|abi.AccessRemoteWrite|abi.AccessRemoteRead|abi.AccessRemoteAtomic|abi.AccessMWBind))(t)
				mw := must.Get(h.pd.AllocMW(c.typ))(t)
				t.Cleanup(func() { require.NoError(t, mw.Dealloc()) }) // also bound: before its queue pair
				h.key = mw.RKey()
				c.run(t, h)
			})
		}
	}
}

// connected are programs on the soft RNIC and on rxe with connected queue
// pairs.
func connected(t *testing.T, f family) (soft, rxe *cmEnd) {
	soft, rxe = cmPrograms(t, f, 6)
	ctx := wait(t)
	l := must.Get(rxe.ch.Listen(netip.AddrPortFrom(f.rxe, 0), 1, rdmacm.Options{}))(t)
	defer l.Close()
	served := make(chan error, 1)
	go func() {
		r, err := l.Accept(ctx)
		if err == nil {
			t.Cleanup(func() { _ = r.Destroy() })
			err = r.Accept(ctx, rxe.qp, cmParam)
		}
		served <- err
	}()
	id := must.Get(soft.call(ctx, l.Addr(), cmParam))(t)
	t.Cleanup(func() { _ = id.Destroy() })
	require.NoError(t, <-served)
	return soft, rxe
}

// work posts a request and waits for its completion.
func (e *cmEnd) work(t *testing.T, wr verbs.SendWR) verbs.WC {
	wr.Flags = abi.SendSignaled
	must.Get(e.qp.Post([]verbs.SendWR{wr}))(t)
	ctx := wait(t)
	var wc [1]verbs.WC
	must.Get(e.cq.Wait(ctx, wc[:]))(t)
	return wc[0]
}

// succeeds is work that does.
func (e *cmEnd) succeeds(t *testing.T, wr verbs.SendWR) {
	wc := e.work(t, wr)
	require.Equal(t, abi.WCSuccess, wc.Status, "%v: %+v", wr.Opcode, wc)
}

// bind binds the window to a piece of the region.
func (h *windowHolder) bind(t *testing.T, access abi.AccessFlags, at int) {
	next := h.key&^0xff | (h.key+1)&0xff
	h.succeeds(t, verbs.SendWR{Opcode: abi.WRBindMW, Bind: verbs.BindMW{
		Addr: h.region.Addr() + uint64(at), Length: windowLength, MRLKey: h.region.LKey(), MWRKey: h.key, RKey: next, Access: access,
	}})
	h.key = next
}

func (h *windowHolder) revoke(t *testing.T) {
	h.succeeds(t, verbs.SendWR{Opcode: abi.WRLocalInv, InvalidateRKey: h.key})
}

// revokedByPeer has the peer revoke the window by a message.
func (h *windowHolder) revokedByPeer(t *testing.T) {
	must.Get(h.qp.PostRecv([]verbs.RecvWR{{ID: 1}}))(t)
	h.peer.succeeds(t, verbs.SendWR{Opcode: abi.WRSendWithInv, InvalidateRKey: h.key})
	wc := h.completion(t)
	require.NotZero(t, wc.Flags&abi.WCWithInvalidate)
	require.Equal(t, h.key, wc.InvalidateRKey)
}

// request is the peer's, by a key.
func (h *windowHolder) request(op abi.WROpcode, key uint32, at, n int) verbs.SendWR {
	return verbs.SendWR{Opcode: op, RKey: key, RemoteAddr: h.region.Addr() + uint64(at),
		SGE: []verbs.SGE{{Addr: h.peer.mr.Addr(), Length: uint32(n), LKey: h.peer.mr.LKey()}}}
}

// written: the peer may write by a key, and what it writes comes there.
func (h *windowHolder) written(t *testing.T, key uint32, at, n int) {
	want := pattern(n)
	copy(h.peer.page, want)
	clear(h.mem)
	h.peer.succeeds(t, h.request(abi.WRRDMAWrite, key, at, n))
	require.Equal(t, want, h.mem[at:at+n])
	require.Equal(t, make([]byte, len(h.mem)-n), append(h.mem[:at:at], h.mem[at+n:]...), "written outside")
	count(1, n)
}

// readBack: the peer may read by the key.
func (h *windowHolder) readBack(t *testing.T, at, n int) {
	copy(h.mem[at:], pattern(n))
	h.peer.succeeds(t, h.request(abi.WRRDMARead, h.key, at, n))
	require.Equal(t, h.mem[at:at+n], h.peer.page[:n])
	count(1, n)
}

// counted: the peer may add by the key.
func (h *windowHolder) counted(t *testing.T, at int) {
	binary.NativeEndian.PutUint64(h.mem[at:], 40)
	add := h.request(abi.WRAtomicFetchAndAdd, h.key, at, 8)
	add.CompareAdd = 2
	h.peer.succeeds(t, add)
	require.EqualValues(t, 40, binary.NativeEndian.Uint64(h.peer.page))
	require.EqualValues(t, 42, binary.NativeEndian.Uint64(h.mem[at:]))
	count(1, 8)
}

// outside: the peer may not write 8 bytes of which not all are in the window.
// Where rxe holds it, the region's bounds count (rxe_resp.c:check_rkey).
func (h *windowHolder) outside(t *testing.T, at int) {
	if !h.onRXE {
		h.refused(t, h.key, at)
	}
}

// refused: the peer may not write 8 bytes by a key, and nothing changes.
func (h *windowHolder) refused(t *testing.T, key uint32, at int) {
	was := append([]byte(nil), h.mem...)
	wc := h.peer.work(t, h.request(abi.WRRDMAWrite, key, at, 8))
	require.Equal(t, abi.WCRemAccessErr, wc.Status)
	require.Equal(t, was, h.mem)
}
