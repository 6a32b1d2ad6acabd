//go:build guest && linux

package guesttest

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/emu"
	"github.com/rdmashim/rdmashim/kshim/host"
	"github.com/rdmashim/rdmashim/rnic"
	"github.com/rdmashim/rdmashim/rnic/link/sim"
	"github.com/rdmashim/rdmashim/tests/must"
)

// raw gives commands by hand, also those that no client would give. A page of
// pinned memory holds the responses.
type raw struct {
	t    testing.TB
	k    kshim.Kernel
	f    kshim.File
	page []byte
	addr uint64
}

// newRaw opens the first device of a kernel and makes a context on it.
func newRaw(t testing.TB, k kshim.Kernel) *raw {
	t.Helper()
	f := must.Get(k.Open("/dev/infiniband/uverbs0"))(t)
	r := &raw{t: t, k: k, f: f, page: make([]byte, 4096)}
	var release func()
	r.addr, release = f.Pin(r.page)
	t.Cleanup(func() {
		require.NoError(t, f.Close())
		release()
	})
	var resp abi.GetContextResp
	require.NoError(t, r.do(abi.CmdGetContext, &abi.GetContext{Response: r.addr}, abi.GetContextSize, abi.GetContextRespSize))
	require.NoError(t, resp.Parse(r.page))
	async := must.Get(k.Adopt(int32(resp.AsyncFD)))(t)
	t.Cleanup(func() { require.NoError(t, async.Close()) })
	return r
}

// do writes a command whose response has out bytes of room at the page's start.
// Bytes beyond the request are put behind it.
func (r *raw) do(cmd abi.Command, req abi.Struct, size, out int, more ...byte) error {
	b := make([]byte, abi.CmdHdrSize+size, abi.CmdHdrSize+size+len(more))
	req.Put(b[abi.CmdHdrSize:])
	b = append(b, more...)
	(&abi.CmdHdr{Command: cmd, InWords: uint16(len(b) / 4), OutWords: uint16(out / 4)}).Put(b)
	_, err := r.f.Write(b)
	return err
}

func (r *raw) pd() uint32 {
	r.t.Helper()
	require.NoError(r.t, r.do(abi.CmdAllocPD, &abi.AllocPD{Response: r.addr}, abi.AllocPDSize, abi.AllocPDRespSize))
	var resp abi.AllocPDResp
	require.NoError(r.t, resp.Parse(r.page))
	return resp.PDHandle
}

func (r *raw) cq(cqe uint32) uint32 {
	r.t.Helper()
	req := &abi.CreateCQ{Response: r.addr, UserHandle: 1, CQE: cqe, CompChannel: -1}
	require.NoError(r.t, r.do(abi.CmdCreateCQ, req, abi.CreateCQSize, abi.CreateCQRespSize+abi.RXECreateCQRespSize))
	var resp abi.CreateCQResp
	require.NoError(r.t, resp.Parse(r.page))
	return resp.CQHandle
}

func (r *raw) qp(pd, cq uint32) abi.CreateQPResp {
	r.t.Helper()
	req := &abi.CreateQP{
		Response: r.addr, UserHandle: 2, PDHandle: pd, SendCQHandle: cq, RecvCQHandle: cq,
		MaxSendWR: 4, MaxRecvWR: 4, MaxSendSGE: 1, MaxRecvSGE: 1, QPType: abi.QPTRC,
	}
	require.NoError(r.t, r.do(abi.CmdCreateQP, req, abi.CreateQPSize, abi.CreateQPRespSize+abi.RXECreateQPRespSize))
	var resp abi.CreateQPResp
	require.NoError(r.t, resp.Parse(r.page))
	return resp
}

func (r *raw) modify(req abi.ModifyQP) error {
	return r.do(abi.CmdModifyQP, &req, abi.ModifyQPSize, 0)
}

// toInit, toRTR and toRTS connect a queue pair to nobody.
func (r *raw) toInit(qp uint32) error {
	return r.modify(abi.ModifyQP{QPHandle: qp, QPState: abi.QPSInit, PortNum: 1,
		AttrMask: abi.QPMaskState | abi.QPMaskPort | abi.QPMaskPkeyIndex | abi.QPMaskAccessFlags})
}

func (r *raw) toRTR(qp uint32, gid abi.GIDEntry) error {
	return r.modify(abi.ModifyQP{QPHandle: qp, QPState: abi.QPSRTR, PathMTU: abi.MTU1024, MinRNRTimer: 12,
		Dest: abi.QPDest{DGID: gid.GID, SGIDIndex: uint8(gid.GIDIndex), HopLimit: 64, IsGlobal: 1, PortNum: 1},
		AttrMask: abi.QPMaskState | abi.QPMaskAV | abi.QPMaskPathMTU | abi.QPMaskDestQPN | abi.QPMaskRQPSN |
			abi.QPMaskMaxDestRdAtomic | abi.QPMaskMinRNRTimer})
}

func (r *raw) toRTS(qp uint32) error {
	return r.modify(abi.ModifyQP{QPHandle: qp, QPState: abi.QPSRTS, Timeout: 14, RetryCnt: 7,
		AttrMask: abi.QPMaskState | abi.QPMaskSQPSN | abi.QPMaskTimeout | abi.QPMaskRetryCnt | abi.QPMaskRNRRetry | abi.QPMaskMaxQPRdAtomic})
}

// gid is an entry that a queue pair may be connected over.
func (r *raw) gid() abi.GIDEntry {
	r.t.Helper()
	for _, name := range []string{"rxe0", "soft0"} {
		list, err := r.k.ReadDir("/sys/class/infiniband/" + name + "/ports/1/gids")
		if err != nil {
			continue
		}
		for i := range list {
			text := attribute(r.t, r.k, "/sys/class/infiniband/"+name+"/ports/1/gids/"+list[i])
			if a := netip.MustParseAddr(text); a.Is4In6() {
				var index uint32
				for _, d := range list[i] {
					index = index*10 + uint32(d-'0')
				}
				return abi.GIDEntry{GID: a.As16(), GIDIndex: index}
			}
		}
	}
	r.t.Fatal("no GID of an IPv4 address")
	return abi.GIDEntry{}
}

// kernels are the real one and an emulated one with a soft RNIC.
func kernels(t *testing.T) map[string]kshim.Kernel {
	t.Helper()
	real := must.Get(host.New(host.Options{}))(t)
	link, err := sim.NewNetwork(sim.Options{}).Attach(netip.MustParseAddrPort("10.9.0.1:4791"))
	require.NoError(t, err)
	device := must.Get(rnic.New(rnic.Config{Name: "soft0", Link: link, MTU: 1024}))(t)
	machine := emu.New()
	require.NoError(t, machine.Register(device))
	t.Cleanup(func() { require.NoError(t, machine.Unregister("soft0")) })
	return map[string]kshim.Kernel{"rxe": real, "emulator": machine.Process("guest")}
}
