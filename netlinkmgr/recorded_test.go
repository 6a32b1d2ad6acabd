package netlinkmgr_test

import (
	"cmp"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netlinktest"
)

// TestRecordedKernel holds the decoding against bytes that Linux 6.1 sent.
func TestRecordedKernel(t *testing.T) {
	r := must.Get(netlinktest.Recorded())(t)
	m, ctx := r.Manager(), t.Context()

	d := must.Get(m.Device(ctx, "rxe0"))(t)
	guid := netlinkmgr.GUID(0x88e159fffe535275)
	require.Equal(t, netlinkmgr.Device{
		Index: 0, Name: "rxe0", Ports: 1, Caps: new(uint64(0x01223c76)), NodeGUID: &guid, SysImageGUID: &guid,
		NodeType: new(netlinkmgr.NodeType(1)), Protocol: "roce", AdaptiveMod: new(false),
	}, d)
	require.Equal(t, "88e1:59ff:fe53:5275", d.NodeGUID.String(), "as sysfs writes it")
	require.True(t, m.IsRXE(ctx, d))

	links := must.Get(m.Links(ctx))(t)
	require.Equal(t, []netlinkmgr.Port{{
		Device: "rxe0", Port: 1, State: new(netlinkmgr.PortActive), PhysState: new(netlinkmgr.PhysState(5)), NetDev: "ta", NetDevIndex: 5,
		Caps: links[0].Caps, // compared with iproute2's words elsewhere
	}}, links)

	c := must.Get(m.CharDev(ctx, d, "uverbs"))(t)
	require.Equal(t, "uverbs0", c.Name)
	require.EqualValues(t, 231<<8|192, c.Dev)
	require.EqualValues(t, 14, *c.Driver)

	s := must.Get(m.System(ctx))(t)
	require.Equal(t, netlinkmgr.System{NetNS: 1, CopyOnFork: true, PrivilegedQKey: new(false)}, s)

	counters := must.Get(m.Counters(ctx, d, 1))(t)
	require.Len(t, counters, 15)
	require.Equal(t, []netlinkmgr.Counter{{Name: "sent_pkts", Value: 1}, {Name: "rcvd_pkts", Value: 1}}, counters[:2])
	counts := must.Get(m.Summary(ctx, d))(t)
	require.Equal(t, []netlinkmgr.Counter{{Name: "pd", Value: 2}, {Name: "cq", Value: 2}, {Name: "qp", Value: 3}, {Name: "cm_id", Value: 3}, {Name: "mr", Value: 1}, {Name: "ctx", Value: 1}, {Name: "srq"}}, counts)
}

func TestRecordedObjects(t *testing.T) {
	r := must.Get(netlinktest.Recorded())(t)
	m, ctx := r.Manager(), t.Context()
	d := must.Get(m.Device(ctx, "rxe0"))(t)
	user := netlinkmgr.Owner{PID: 103, Comm: "guesttest.test"}
	core := netlinkmgr.Owner{Kernel: true, Comm: "ib_core"}
	rc := netlinkmgr.QPType(2)
	zero, one := new(uint32(0)), new(uint32(1))

	qps := must.Get(m.QPs(ctx, d))(t)
	require.Equal(t, []netlinkmgr.QP{
		{Port: one, LQPN: 17, PDN: one, RQPN: zero, RQPSN: zero, PathMig: new(netlinkmgr.PathMigState(0)), Type: rc, State: 1, Owner: user},
		{LQPN: 18, PDN: one, RQPN: zero, RQPSN: zero, PathMig: new(netlinkmgr.PathMigState(0)), Type: rc, State: 0, Owner: user},
		{Port: one, LQPN: 1, SQPSN: 1, Type: 1, State: 3, Owner: core},
	}, byNumber(qps))
	cqs := must.Get(m.CQs(ctx, d))(t)
	require.Equal(t, []netlinkmgr.CQ{
		{CQN: zero, CQE: 1023, Users: 2, PollCtx: new(netlinkmgr.PollContext(2)), AdaptiveMod: new(false), Owner: core},
		{CQN: one, CQE: 63, Users: 4, AdaptiveMod: new(false), CtxN: zero, Owner: user},
	}, cqs)
	mrs := must.Get(m.MRs(ctx, d))(t)
	require.Equal(t, []netlinkmgr.MR{{MRN: zero, RKey: new(uint32(0x2b7)), LKey: new(uint32(0x2b7)), Length: 8192, PDN: one, Owner: user}}, mrs)
	pds := must.Get(m.PDs(ctx, d))(t)
	require.Equal(t, []netlinkmgr.PD{
		{PDN: zero, LocalDMALKey: new(uint32(0x141)), Users: 2, Owner: core},
		{PDN: one, LocalDMALKey: zero, Users: 3, CtxN: zero, Owner: user},
	}, pds)
	contexts := must.Get(m.Contexts(ctx, d))(t)
	require.Equal(t, []netlinkmgr.Context{{Owner: user}}, contexts)
	ids := must.Get(m.CMIDs(ctx, d))(t)
	require.Len(t, ids, 3)
	require.Equal(t, netlinkmgr.CMID{
		Port: one, CMIDN: zero, State: 8, PortSpace: 0x106, Owner: user,
		Src: netip.MustParseAddrPort("10.78.0.1:7471"), Dst: netip.MustParseAddrPort("0.0.0.0:0"),
	}, ids[0])

	gids := must.Get(m.GIDs(ctx, "rxe0", 1))(t)
	require.Len(t, gids, 2, "the empty entry is none")
	require.Equal(t, "::ffff:10.78.0.1", gids[1].GID.String())
	require.True(t, gids[1].Best)
	require.False(t, gids[0].Usable, "the address behind the default GID is not on the device here")
}

// byNumber puts a device's own queue pair last and the others by number.
func byNumber(list []netlinkmgr.QP) []netlinkmgr.QP {
	key := func(q netlinkmgr.QP) uint32 { return q.LQPN | map[bool]uint32{true: 1 << 24}[q.Owner.Kernel] }
	return slices.SortedFunc(slices.Values(list), func(a, b netlinkmgr.QP) int { return cmp.Compare(key(a), key(b)) })
}
