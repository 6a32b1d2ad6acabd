package engine

import (
	"net/netip"
	"reflect"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// bring takes a fresh queue pair to a state.
func bring(t *testing.T, to abi.QPState) (*QP, *receives) {
	r := &receives{}
	q := New(Config{QPN: 1, PD: testPD, Regions: mem.NewTable([32]byte{1}), Receives: r, SendDepth: 4, MaxSendSGE: 1, MaxRecvSGE: 1})
	a := goodAttr()
	for _, s := range []struct {
		s abi.QPState
		m abi.QPAttrMask
	}{{abi.QPSInit, maskInit}, {abi.QPSRTR, maskRTR}, {abi.QPSRTS, maskRTS}, {abi.QPSSQD, abi.QPMaskState}} {
		if to == abi.QPSReset || to == abi.QPSErr {
			break
		}
		require.NoError(t, q.Modify(1, s.s, &a, s.m))
		if s.s == to {
			break
		}
	}
	if to == abi.QPSErr {
		require.NoError(t, q.Modify(1, to, &Attr{}, abi.QPMaskState))
	}
	require.Equal(t, to, q.State())
	return q, r
}

func goodAttr() Attr {
	return Attr{
		Access: allAccess, Peer: netip.MustParseAddrPort("10.0.0.2:4791"), DestQPN: 2, PathMTU: abi.MTU1024,
		RQPSN: 5, SQPSN: 6, MaxDestRdAtomic: 4, MaxRdAtomic: 4, MinRNRTimer: 12, Timeout: 14, RetryCnt: 7, RNRRetry: 7,
	}
}

// IBA 10.3.1: the transitions.
func TestTransitions(t *testing.T) {
	states := []abi.QPState{abi.QPSReset, abi.QPSInit, abi.QPSRTR, abi.QPSRTS, abi.QPSSQD, abi.QPSErr}
	allowed := map[[2]abi.QPState]bool{
		{abi.QPSReset, abi.QPSInit}: true, {abi.QPSInit, abi.QPSInit}: true, {abi.QPSInit, abi.QPSRTR}: true,
		{abi.QPSRTR, abi.QPSRTS}: true, {abi.QPSRTS, abi.QPSRTS}: true,
		{abi.QPSRTS, abi.QPSSQD}: true, {abi.QPSSQD, abi.QPSSQD}: true, {abi.QPSSQD, abi.QPSRTS}: true,
	}
	for _, from := range states {
		for _, to := range append(states, abi.QPSSQE, 99) {
			q, _ := bring(t, from)
			a := goodAttr()
			err := q.Modify(1, to, &a, maskInit|maskRTR|maskRTS)
			if allowed[[2]abi.QPState{from, to}] || to == abi.QPSReset || to == abi.QPSErr {
				require.NoError(t, err, "%v to %v", from, to)
				require.Equal(t, to, q.State())
			} else {
				require.ErrorIs(t, err, syscall.EINVAL, "%v to %v", from, to)
				require.Equal(t, from, q.State())
			}
		}
	}
}

func TestAttributeRanges(t *testing.T) {
	for name, edit := range map[string]func(*Attr){
		"MTU 0":          func(a *Attr) { a.PathMTU = 0 },
		"MTU 6":          func(a *Attr) { a.PathMTU = 6 },
		"no peer":        func(a *Attr) { a.Peer = netip.AddrPort{} },
		"QPN":            func(a *Attr) { a.DestQPN = 1 << 24 },
		"rd_atomic":      func(a *Attr) { a.MaxRdAtomic = 129 },
		"dest_rd_atomic": func(a *Attr) { a.MaxDestRdAtomic = 129 },
		"rnr timer":      func(a *Attr) { a.MinRNRTimer = 32 },
		"timeout":        func(a *Attr) { a.Timeout = 32 },
		"retry_cnt":      func(a *Attr) { a.RetryCnt = 8 },
		"rnr_retry":      func(a *Attr) { a.RNRRetry = 8 },
	} {
		q, _ := bring(t, abi.QPSInit)
		a := goodAttr()
		edit(&a)
		before := q.Attr()
		require.ErrorIs(t, q.Modify(1, abi.QPSRTR, &a, maskRTR|maskRTS), syscall.EINVAL, name)
		require.Equal(t, abi.QPSInit, q.State())
		require.Equal(t, before, q.Attr(), "nothing changes")
	}
}

// Attributes that the mask does not name stay; PSNs show where the queue pair
// is.
func TestAttrFollowsMask(t *testing.T) {
	n := newPair(t, cfg{psnA: 0xffffff, psnB: 7})
	a := goodAttr()
	a.MinRNRTimer, a.Access = 3, abi.AccessRemoteRead
	require.NoError(t, n.a.qp.Modify(n.now, abi.QPSRTS, &a, abi.QPMaskMinRNRTimer))
	got := n.a.qp.Attr()
	require.Equal(t, allAccess, got.Access)
	require.EqualValues(t, 3, got.MinRNRTimer)
	require.EqualValues(t, 0xffffff, got.SQPSN)
	n.complete(n.a, n.write(1, 10))
	require.EqualValues(t, 0, n.a.qp.Attr().SQPSN)
	require.EqualValues(t, 0, n.b.qp.Attr().RQPSN)
}

// A queue pair in ERR repeats its fatal NAK only until it is told to be in ERR.
func TestModifyToErrorEndsNAK(t *testing.T) {
	n := newPair(t, cfg{})
	bad := n.req(wire.RCSendMiddle, 0, 1024)
	require.Len(t, n.answer(bad), 1)
	require.Len(t, n.answer(bad), 1)
	require.NoError(t, n.b.qp.Modify(n.now, abi.QPSErr, &Attr{}, abi.QPMaskState))
	require.Empty(t, n.answer(bad))
}

// When the queue pair fails as requester, executed requests are still
// acknowledged; a request to send again is pointless.
func TestRequesterFailureKeepsAcks(t *testing.T) {
	n := newPair(t, cfg{})
	n.post(n.b, SendWR{ID: 1, Opcode: abi.WRSend})
	n.pump(n.b)
	fatal := wire.Packet{AETH: wire.AETH{Syndrome: nakOp}}
	fatal.BTH = wire.BTH{Opcode: wire.RCAck, PKey: wire.DefaultPKey}
	write := n.req(wire.RCWriteOnly, 0, 8)
	out := n.answer(write, n.req(wire.RCWriteOnly, 2, 8), &fatal)
	require.Equal(t, abi.QPSErr, n.b.qp.State())
	require.Len(t, out, 1)
	require.Equal(t, wire.SyndromeACK(31), out[0].AETH.Syndrome)
	require.Equal(t, write.PSN, out[0].PSN)
}

// States that take no packets.
func TestPacketsInOtherStates(t *testing.T) {
	for _, s := range []abi.QPState{abi.QPSReset, abi.QPSInit, abi.QPSErr} {
		q, _ := bring(t, s)
		for op := range 256 {
			p := wire.Packet{}
			p.BTH = wire.BTH{Opcode: wire.Opcode(op), PKey: wire.DefaultPKey, PSN: 5}
			q.Receive(1, netip.MustParseAddr("10.0.0.2"), &p)
		}
		b := NewBatch(4)
		require.False(t, q.Transmit(1, b))
		require.Empty(t, b.Packets)
		require.Equal(t, s, q.State())
	}
	q, _ := bring(t, abi.QPSRTR)
	p := wire.Packet{}
	p.BTH = wire.BTH{Opcode: wire.RCAck, PKey: wire.DefaultPKey, PSN: 6}
	q.Receive(1, netip.MustParseAddr("10.0.0.2"), &p)
	require.EqualValues(t, 1, q.Counters().DropState)
	wr := SendWR{Opcode: abi.WRSend}
	require.ErrorIs(t, q.Post(1, &wr), syscall.EINVAL)
	// The responder works already.
	p.Opcode, p.PSN, p.AckReq = wire.RCWriteOnly, 5, true
	q.Receive(1, netip.MustParseAddr("10.0.0.2"), &p)
	b := NewBatch(4)
	q.Transmit(1, b)
	require.Len(t, b.Packets, 1)
}

// Every counter has a name of its own, and all are added up.
func TestCounters(t *testing.T) {
	var c, sum Counters
	v := reflect.ValueOf(&c).Elem()
	for i := range v.NumField() {
		v.Field(i).SetUint(uint64(i) + 1)
	}
	sum.Add(&c)
	sum.Add(&c)
	values := map[uint64]int{}
	names := map[string]bool{}
	sum.Each(func(name string, value uint64) {
		require.False(t, names[name], name)
		names[name] = true
		values[value]++
	})
	require.Len(t, values, v.NumField(), "every field has a name")
	require.Len(t, names, v.NumField()+1)
}
