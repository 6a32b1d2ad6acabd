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
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/must"
)

// busy is a link that this process uses.
type busy struct {
	r      *netlinkmgr.Result
	verbs  *verbs
	addr   netip.Addr
	thread uint32 // the kernel notes the thread that made an object
}

// makeBusy makes a link with objects of each kind on it, and a connection
// request under way from the link to itself.
func makeBusy(t *testing.T) *busy {
	noLinks(t)
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	veth(t, "ta", "tb", "10.78.0.1/24")
	b := &busy{r: ensure(t, "ta", "rdma_ucm"), addr: netip.MustParseAddr("10.78.0.1"), thread: uint32(unix.Gettid())}
	b.verbs = openVerbs(t, b.r.UVerbs)
	return b
}

// connect asks for a connection and waits until the request has arrived.
func (b *busy) connect(t *testing.T) {
	port := netip.AddrPortFrom(b.addr, 7471)
	server, client := openCM(t), openCM(t)
	server.listen(port)
	client.connect(b.addr, port, b.verbs.qpn[0])
	require.EqualValues(t, evReq, server.event())
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
	ready, fresh := find(b.verbs.qpn[0]), find(b.verbs.qpn[1])
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
	require.EqualValues(t, len(b.verbs.mem), mrs[0].Length)
	require.Equal(t, b.verbs.lkey, *mrs[0].LKey)
	require.Equal(t, b.verbs.rkey, *mrs[0].RKey)
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
	b.verbs.close()
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
