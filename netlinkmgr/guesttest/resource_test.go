//go:build guest && linux

package guesttest

import (
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/host"
	"github.com/rdmashim/rdmashim/kshim/rdmacm"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/must"
)

// busy is a link that this process uses: by the thread that made them, since
// the kernel notes that, a domain, a completion queue, a region, and a queue
// pair in INIT and one in RESET.
type busy struct {
	r      *netlinkmgr.Result
	addr   netip.Addr
	thread uint32
	kernel kshim.Kernel
	ctx    *verbs.Context
	pd     *verbs.PD
	cq     *verbs.CQ
	mr     *verbs.MR
	mem    []byte
	qp     [2]*verbs.QP
}

func makeBusy(t *testing.T) *busy {
	noLinks(t)
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	veth(t, "ta", "tb", "10.78.0.1/24")
	b := &busy{
		r: ensure(t, "ta", "rdma_ucm"), addr: netip.MustParseAddr("10.78.0.1"), thread: uint32(unix.Gettid()),
		kernel: must.Get(host.New(host.Options{}))(t), mem: make([]byte, 2*os.Getpagesize()),
	}
	b.ctx = must.Get(verbs.Open(b.kernel, b.r.Device))(t)
	t.Cleanup(func() { _ = b.ctx.Close() })
	b.pd = must.Get(b.ctx.AllocPD())(t)
	b.cq = must.Get(b.ctx.CreateCQ(63))(t)
	b.mr = must.Get(b.pd.RegMR(b.mem, abi.AccessLocalWrite|abi.AccessRemoteWrite))(t)
	for i := range b.qp {
		b.qp[i] = b.queuePair(t, nil)
	}
	require.NoError(t, b.qp[0].Modify(&verbs.QPAttr{State: abi.QPSInit, PortNum: 1},
		abi.QPMaskState|abi.QPMaskPkeyIndex|abi.QPMaskPort|abi.QPMaskAccessFlags))
	return b
}

// queuePair makes one, which takes the receives of srq if there is one.
func (b *busy) queuePair(t *testing.T, srq *verbs.SRQ) *verbs.QP {
	init := verbs.QPInit{SendCQ: b.cq, RecvCQ: b.cq, MaxSendWR: 4, MaxSendSGE: 1, SRQ: srq}
	if srq == nil {
		init.MaxRecvWR, init.MaxRecvSGE = 4, 1
	}
	return must.Get(b.pd.CreateQP(init))(t)
}

// connect makes a connection request from the link to itself, and waits until
// it has arrived. It is under way to the test's end.
func (b *busy) connect(t *testing.T) {
	server, client := must.Get(rdmacm.Open(b.kernel))(t), must.Get(rdmacm.Open(b.kernel))(t)
	l := must.Get(server.Listen(netip.AddrPortFrom(b.addr, 7471), 8, rdmacm.Options{}))(t)
	id := must.Get(client.Resolve(t.Context(), netip.AddrPortFrom(b.addr, 0), l.Addr(), rdmacm.Options{}))(t)
	var connecting sync.WaitGroup
	connecting.Go(func() { _, _ = id.Connect(t.Context(), b.qp[0], rdmacm.ConnParam{RetryCount: 7}) })
	t.Cleanup(func() {
		connecting.Wait()
		_, _ = client.Close(), server.Close()
	})
	must.Get(l.Accept(t.Context()))(t)
}

func TestResources(t *testing.T) {
	b := makeBusy(t)
	b.connect(t)
	m, d := manager(t), device(t, b.r.Device)
	self := netlinkmgr.Owner{PID: b.thread, Comm: comm(t)}

	qps := must.Get(m.QPs(t.Context(), d))(t)
	find := func(n uint32) netlinkmgr.QP {
		i := slices.IndexFunc(qps, func(q netlinkmgr.QP) bool { return q.LQPN == n })
		require.GreaterOrEqual(t, i, 0, "queue pair %d", n)
		return qps[i]
	}
	ready, fresh := find(b.qp[0].Num()), find(b.qp[1].Num())
	require.Equal(t, "INIT", ready.State.String())
	require.Equal(t, "RC", ready.Type.String())
	require.EqualValues(t, 1, *ready.Port)
	require.Equal(t, self, ready.Owner)
	require.Equal(t, "RESET", fresh.State.String())
	require.Equal(t, netlinkmgr.Owner{Kernel: true, Comm: "ib_core"}, find(1).Owner, "the kernel's own, for the connection manager")

	cqs := must.Get(m.CQs(t.Context(), d))(t)
	mine := slices.IndexFunc(cqs, func(q netlinkmgr.CQ) bool { return q.Owner == self })
	require.GreaterOrEqual(t, mine, 0)
	require.EqualValues(t, 63, cqs[mine].CQE)

	mrs := must.Get(m.MRs(t.Context(), d))(t)
	require.Len(t, mrs, 1)
	require.EqualValues(t, len(b.mem), mrs[0].Length)
	require.Equal(t, b.mr.LKey(), *mrs[0].LKey)
	require.Equal(t, b.mr.RKey(), *mrs[0].RKey)
	require.Equal(t, self, mrs[0].Owner)

	pds := must.Get(m.PDs(t.Context(), d))(t)
	require.True(t, slices.ContainsFunc(pds, func(p netlinkmgr.PD) bool { return p.Owner == self && *p.PDN == *mrs[0].PDN }))

	contexts := must.Get(m.Contexts(t.Context(), d))(t)
	require.Len(t, contexts, 1)
	require.Equal(t, self, contexts[0].Owner)

	ids := must.Get(m.CMIDs(t.Context(), d))(t)
	states := map[string]netip.AddrPort{}
	for _, i := range ids {
		require.Equal(t, "TCP", i.PortSpace.String())
		states[i.State.String()] = i.Src
	}
	require.ElementsMatch(t, []string{"LISTEN", "CONNECT"}, slices.Collect(maps.Keys(states)))
	require.Equal(t, "10.78.0.1:7471", states["LISTEN"].String())
	require.EqualValues(t, 7471, states["LISTEN"].Port())

	counts := must.Get(m.Summary(t.Context(), d))(t)
	got := map[string]int{}
	for _, c := range counts {
		got[c.Name] = int(c.Value)
	}
	require.Equal(t, map[string]int{"pd": len(pds), "cq": len(cqs), "qp": len(qps), "cm_id": len(ids), "mr": 1, "ctx": 1, "srq": 0}, got)

	// All of it goes with the file.
	_ = b.ctx.Close()
	contexts = must.Get(m.Contexts(t.Context(), d))(t)
	require.Empty(t, contexts)
}

func comm(t *testing.T) string {
	b := must.Get(os.ReadFile("/proc/self/comm"))(t)
	return strings.TrimSpace(string(b))
}

// TestCounters: they move when something is sent, and are sysfs's.
func TestCounters(t *testing.T) {
	b := makeBusy(t)
	m, d := manager(t), device(t, b.r.Device)
	read := func() map[string]uint64 {
		list := must.Get(m.Counters(t.Context(), d, 1))(t)
		all := map[string]uint64{}
		for _, c := range list {
			all[c.Name] = c.Value
		}
		return all
	}
	before := read()
	b.connect(t)
	after := read()
	require.Greater(t, after["sent_pkts"], before["sent_pkts"])
	require.Greater(t, after["rcvd_pkts"], before["rcvd_pkts"])

	files := must.Get(filepath.Glob("/sys/class/infiniband/" + b.r.Device + "/ports/1/hw_counters/*"))(t)
	var names []string
	for _, f := range files {
		if name := filepath.Base(f); name != "lifespan" {
			names = append(names, name)
			text := must.Get(os.ReadFile(f))(t)
			v := must.Get(strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64))(t)
			require.GreaterOrEqual(t, v, after[name])
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(after)), names)
}
