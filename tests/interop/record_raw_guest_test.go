//go:build guest && linux

package interop

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/host"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// raw is rxe below uapi, for what that does not offer.
type raw struct {
	pd  *verbs.PD
	cq  *verbs.CQ
	mr  *verbs.MR
	mem []byte
	f   family
}

func newRaw(t *testing.T, f family) *raw {
	kernel := must.Get(host.New(host.Options{}))(t)
	ctx := must.Get(verbs.Open(kernel, "rxe0"))(t)
	t.Cleanup(func() { require.NoError(t, ctx.Close()) })
	r := &raw{f: f, mem: pattern(1 << 14)}
	r.pd = must.Get(ctx.AllocPD())(t)
	r.cq = must.Get(ctx.CreateCQ(64))(t)
	r.mr = must.Get(r.pd.RegMR(r.mem, abi.AccessLocalWrite))(t)
	return r
}

func (r *raw) newQP(t *testing.T, typ abi.QPType) *verbs.QP {
	qp := must.Get(r.pd.CreateQP(verbs.QPInit{Type: typ, SendCQ: r.cq, RecvCQ: r.cq, MaxSendWR: 16, MaxRecvWR: 1, SigAll: true}))(t)
	t.Cleanup(func() { require.NoError(t, qp.Destroy()) })
	return qp
}

// vector is the way to an address.
func (r *raw) vector(to netip.Addr) abi.QPDest {
	return abi.QPDest{DGID: to.As16(), SGIDIndex: uint8(gidIndex(r.f.rxe)), HopLimit: 17, IsGlobal: 1, PortNum: 1}
}

// connect brings a reliable or an unreliable connection to RTS.
func (r *raw) connect(t *testing.T, qp *verbs.QP, typ abi.QPType, mtu abi.MTU, to netip.Addr, num, psn uint32) {
	require.NoError(t, qp.Modify(&verbs.QPAttr{State: abi.QPSInit, PortNum: 1, AccessFlags: abi.AccessRemoteWrite},
		abi.QPMaskState|abi.QPMaskPkeyIndex|abi.QPMaskPort|abi.QPMaskAccessFlags))
	rtr := verbs.QPAttr{State: abi.QPSRTR, PathMTU: mtu, DestQPNum: num, RQPSN: psn, MinRNRTimer: 12, AV: r.vector(to)}
	rts := verbs.QPAttr{State: abi.QPSRTS, SQPSN: rawPSN, Timeout: 18, RetryCnt: 7, RNRRetry: 7}
	toRTR := abi.QPMaskState | abi.QPMaskAV | abi.QPMaskPathMTU | abi.QPMaskDestQPN | abi.QPMaskRQPSN
	toRTS := abi.QPMaskState | abi.QPMaskSQPSN
	if typ == abi.QPTRC {
		toRTR |= abi.QPMaskMaxDestRdAtomic | abi.QPMaskMinRNRTimer
		toRTS |= abi.QPMaskTimeout | abi.QPMaskRetryCnt | abi.QPMaskRNRRetry | abi.QPMaskMaxQPRdAtomic
	}
	require.NoError(t, qp.Modify(&rtr, toRTR))
	require.NoError(t, qp.Modify(&rts, toRTS))
}

const (
	rawPSN  = 0xfffffe // wraps soon
	nobody  = 0x00beef // a queue pair that the soft side does not have
	rawQKey = 0x11111111
)

// send posts one request of n bytes and waits for its completion.
func (r *raw) send(t *testing.T, qp *verbs.QP, wr verbs.SendWR, n int) abi.WCStatus {
	wr.SGE = []verbs.SGE{{Addr: r.mr.Addr(), Length: uint32(n), LKey: r.mr.LKey()}}
	must.Get(qp.Post([]verbs.SendWR{wr}))(t)
	var wc [1]verbs.WC
	must.Get(r.cq.Wait(wait(t), wc[:]))(t)
	return wc[0].Status
}

// unreliable records over IPv6 what rxe sends and the soft RNIC need not
// answer: unreliable connections, datagrams to a multicast group, and the SEND
// with invalidate, whose key the soft RNIC refuses to revoke.
func unreliable(t *testing.T, c *capture, f family) {
	soft := newDevice(t, "soft", openSoft(t, softName(f, 0, plain)), 1<<16)
	r := newRaw(t, f)

	uc := r.newQP(t, abi.QPTUC)
	r.connect(t, uc, abi.QPTUC, abi.MTU1024, f.softAddr(0), nobody, 0)
	for _, op := range []abi.WROpcode{abi.WRSend, abi.WRSendWithImm, abi.WRRDMAWrite, abi.WRRDMAWriteWithImm} {
		for _, n := range []int{0, 5, 1024, 3*1024 + 2} {
			c.step("rxe: UC %v, %d bytes", op, n)
			require.Equal(t, abi.WCSuccess, r.send(t, uc, verbs.SendWR{Opcode: op, Imm: 0x01020304, RemoteAddr: 0x1000, RKey: 0x77}, n))
		}
	}

	ud := r.newQP(t, abi.QPTUD)
	require.NoError(t, ud.Modify(&verbs.QPAttr{State: abi.QPSInit, PortNum: 1, QKey: rawQKey},
		abi.QPMaskState|abi.QPMaskPkeyIndex|abi.QPMaskPort|abi.QPMaskQKey))
	require.NoError(t, ud.Modify(&verbs.QPAttr{State: abi.QPSRTR}, abi.QPMaskState))
	require.NoError(t, ud.Modify(&verbs.QPAttr{State: abi.QPSRTS, SQPSN: rawPSN}, abi.QPMaskState|abi.QPMaskSQPSN))
	group := netip.MustParseAddr("ff0e::77:1")
	ah := must.Get(r.pd.CreateAH(verbs.AHAttr{DGID: group.As16(), SGIDIndex: uint8(gidIndex(f.rxe)), HopLimit: 17, IsGlobal: 1, PortNum: 1}))(t)
	for _, op := range []abi.WROpcode{abi.WRSend, abi.WRSendWithImm} {
		for _, n := range []int{0, 5, 1024} {
			c.step("rxe: UD %v to the group %v, %d bytes", op, group, n)
			require.Equal(t, abi.WCSuccess, r.send(t, ud, verbs.SendWR{Opcode: op, Imm: 0x01020304, AHNum: ah.Num(), RemoteQPN: 0xffffff, RemoteQKey: rawQKey}, n))
		}
	}
	require.NoError(t, ah.Destroy())

	for _, n := range []int{5, 1024 + 3} {
		rc := r.newQP(t, abi.QPTRC)
		e := soft.newEnd(t, uapi.QPConfig{MTU: 1024})
		ep := must.Get(e.ctx.LocalEndpoint(e.qp))(t)
		r.connect(t, rc, abi.QPTRC, abi.MTU1024, f.softAddr(0), ep.QPN, ep.PSN)
		require.NoError(t, e.ctx.ConnectQP(e.qp, uapi.Endpoint{
			Addr: netip.AddrPortFrom(f.rxe, uapi.RoCEPort), QPN: rc.Num(), PSN: rawPSN, MTU: 1024, MaxRdAtomic: 1,
		}))
		must.Get(e.ctx.PostRecv(e.qp, e.mr, 0, 4096))(t)
		c.step("rxe: SEND with invalidate, %d bytes, of a key that cannot be revoked", n)
		require.Equal(t, abi.WCSuccess, r.send(t, rc, verbs.SendWR{Opcode: abi.WRSendWithInv, InvalidateRKey: e.region.RKey}, n), "the ACK goes out before the key is looked at")
		require.Equal(t, uapi.WCRemInvReqErr, e.next(t).Status)
	}
}
