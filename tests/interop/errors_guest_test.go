//go:build guest && linux

package interop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// failure is a request that must fail, and how.
type failure struct {
	name string
	wr   func(from, to *end) uapi.WR
	recv int // bytes of a receive of the responder; 0: none is posted
	// want is the requester's status: of soft against rxe, of rxe against soft.
	softAsks, rxeAsks uapi.Status
	// respond is the status of the responder's receive, likewise.
	rxeReceives, softReceives uapi.Status
}

func remote(op uapi.Op, n uint64, at func(to *end) (addr uint64, rkey uint32)) func(from, to *end) uapi.WR {
	return func(from, to *end) uapi.WR {
		addr, rkey := at(to)
		return uapi.WR{ID: 5, Op: op, Flags: uapi.Signaled, RemoteAddr: addr, RKey: rkey,
			SGE: []uapi.SGE{{MR: from.mr, Offset: uint64(from.half), Length: n}}}
	}
}

func badKey(to *end) (uint64, uint32) { return to.region.Addr, to.region.RKey ^ 0xff }
func beyond(to *end) (uint64, uint32) { return to.region.Addr + to.region.Length - 99, to.region.RKey }
func askew(to *end) (uint64, uint32)  { return to.region.Addr + 4, to.region.RKey }

// failures as the two kernels see them. Where they differ the soft RNIC follows
// the specification; docs/design/differences.md declares it.
var failures = []failure{
	{name: "WRITE with a bad key", wr: remote(uapi.OpWrite, 100, badKey), softAsks: uapi.WCRemAccessErr, rxeAsks: uapi.WCRemAccessErr},
	{name: "WRITE beyond the region", wr: remote(uapi.OpWrite, 100, beyond), softAsks: uapi.WCRemAccessErr, rxeAsks: uapi.WCRemAccessErr},
	{name: "READ with a bad key", wr: remote(uapi.OpRead, 100, badKey), softAsks: uapi.WCRemAccessErr, rxeAsks: uapi.WCRemAccessErr},
	{name: "READ beyond the region", wr: remote(uapi.OpRead, 100, beyond), softAsks: uapi.WCRemAccessErr, rxeAsks: uapi.WCRemAccessErr},
	{name: "misaligned atomic", wr: remote(uapi.OpFetchAdd, 8, askew), softAsks: uapi.WCRemInvReqErr, rxeAsks: uapi.WCRemInvReqErr},
	{name: "SEND longer than the receive", recv: 10, wr: func(from, _ *end) uapi.WR {
		return uapi.WR{ID: 5, Op: uapi.OpSend, Flags: uapi.Signaled, SGE: []uapi.SGE{{MR: from.mr, Length: 100}}}
	}, softAsks: uapi.WCRemOpErr, rxeReceives: uapi.WCLocQPOpErr, rxeAsks: uapi.WCRemInvReqErr, softReceives: uapi.WCLocLenErr},
}

// TestErrors makes requests fail in both directions, over both families: NAKs
// of one side are understood by the other, and both queue pairs end in ERR.
func TestErrors(t *testing.T) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			soft, rxe := devices(t, softName(f, 0, ""), f, 1<<16)
			for _, c := range failures {
				t.Run(c.name, func(t *testing.T) {
					fails(t, soft, rxe, c, c.softAsks, c.rxeReceives)
					fails(t, rxe, soft, c, c.rxeAsks, c.softReceives)
				})
			}
			for _, way := range [][2]*device{{soft, rxe}, {rxe, soft}} {
				t.Run(way[0].name+" waits for a receive", func(t *testing.T) { notReady(t, way[0], way[1]) })
				t.Run(way[0].name+" gives up waiting", func(t *testing.T) { neverReady(t, way[0], way[1]) })
				t.Run(way[0].name+" misses its peer", func(t *testing.T) { gone(t, way[0], way[1]) })
			}
		})
	}
	require.Zero(t, lab.kmsg.badICRCs(t), "rxe saw a bad ICRC although none was made")
}

func fails(t *testing.T, a, b *device, c failure, asks, receives uapi.Status) {
	from, to := newPair(t, a, b, uapi.QPConfig{})
	if c.recv > 0 {
		to.post(t, uapi.WR{ID: 9, Op: uapi.OpRecv, SGE: []uapi.SGE{{MR: to.mr, Length: uint64(c.recv)}}})
	}
	from.post(t, c.wr(from, to))
	wc := from.ends(t, asks)
	require.EqualValues(t, 5, wc.WRID)
	if c.recv > 0 {
		wc := to.next(t)
		require.EqualValues(t, 9, wc.WRID)
		require.Equal(t, receives, wc.Status, "%s receives: %v", to.name, wc)
	}
	for _, e := range []*end{from, to} {
		require.Eventually(t, func() bool {
			info, err := e.device.QueryQP(e.qp)
			return err == nil && info.State == uapi.StateError
		}, patience, 5*time.Millisecond, "%s's queue pair is not in ERR", e.name)
	}
	count(1, 0)
}

// rnrNAKs counts those that one side received.
func (e *end) rnrNAKs() uint64 {
	if e.name == "rxe" {
		return hwCounter("rcvd_rnr_err")
	}
	c, _ := e.device.Counters()
	return c["rcvd_rnr_err"]
}

// notReady posts the receive only after the requester was told to wait.
func notReady(t *testing.T, a, b *device) {
	from, to := newPair(t, a, b, uapi.QPConfig{MTU: 1024})
	time.Sleep(statsAge)
	before := from.rnrNAKs()
	want := pattern(3000)
	copy(from.source(), want)
	fill(to.target(), len(want))
	from.post(t, uapi.WR{ID: 5, Op: uapi.OpSend, Flags: uapi.Signaled, SGE: []uapi.SGE{{MR: from.mr, Length: 3000}}})
	require.Eventually(t, func() bool { return from.rnrNAKs() > before }, patience, 5*time.Millisecond, "%s received no RNR NAK", from.name)
	to.post(t, uapi.WR{ID: 9, Op: uapi.OpRecv, SGE: []uapi.SGE{{MR: to.mr, Offset: uint64(to.half + margin), Length: 3000}}})
	require.EqualValues(t, 3000, to.success(t, uapi.WCOpRecv).ByteLen)
	from.success(t, uapi.WCOpSend)
	holds(t, "the late receive", to.target(), want)
	count(1, 3000)
}

func neverReady(t *testing.T, a, b *device) {
	from, to := newPair(t, a, b, uapi.QPConfig{RNRRetry: 2})
	from.post(t, uapi.WR{ID: 5, Op: uapi.OpSend, Flags: uapi.Signaled, SGE: []uapi.SGE{{MR: from.mr, Length: 30}}})
	require.Equal(t, uapi.WCRNRRetryExcErr, from.next(t).Status)
	info := must.Get(to.device.QueryQP(to.qp))(t)
	require.Equal(t, uapi.StateRTS, info.State, "the responder goes on")
	count(1, 0)
}

// gone lets a peer vanish whose queue pair was connected.
func gone(t *testing.T, a, b *device) {
	from := a.newEnd(t, uapi.QPConfig{Timeout: 16 * time.Millisecond, Retry: 2})
	qp := must.Get(b.device.CreateQP(8, 8))(t)
	to := &end{name: b.name, device: b.device, qp: qp, region: b.region}
	connect(t, from, to)
	require.NoError(t, b.device.DestroyQP(qp))
	from.post(t, remote(uapi.OpWrite, 100, func(*end) (uint64, uint32) { return b.region.Addr, b.region.RKey })(from, to))
	require.Equal(t, uapi.WCRetryExcErr, from.next(t).Status)
	count(1, 0)
}
