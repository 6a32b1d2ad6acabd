//go:build guest && linux

package interop

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// newQP makes a queue pair of a type on the program's device.
func (e *cmEnd) newQP(t *testing.T, typ abi.QPType) *verbs.QP {
	qp := must.Get(e.pd.CreateQP(verbs.QPInit{Type: typ, SendCQ: e.cq, RecvCQ: e.cq, MaxSendWR: 16, MaxRecvWR: 1, SigAll: true}))(t)
	t.Cleanup(func() { require.NoError(t, qp.Destroy()) })
	return qp
}

// vector is the way from rxe to an address of a family.
func vector(f family, to netip.Addr) abi.QPDest {
	return abi.QPDest{DGID: to.As16(), SGIDIndex: uint8(gidIndex(f.rxe)), HopLimit: 17, IsGlobal: 1, PortNum: 1}
}

// toRTS brings a reliable or an unreliable connection to RTS.
func toRTS(t *testing.T, qp *verbs.QP, typ abi.QPType, mtu abi.MTU, av abi.QPDest, num, psn uint32) {
	require.NoError(t, qp.Modify(&verbs.QPAttr{State: abi.QPSInit, PortNum: 1, AccessFlags: abi.AccessRemoteWrite},
		abi.QPMaskState|abi.QPMaskPkeyIndex|abi.QPMaskPort|abi.QPMaskAccessFlags))
	rtr := verbs.QPAttr{State: abi.QPSRTR, PathMTU: mtu, DestQPNum: num, RQPSN: psn, MinRNRTimer: 12, AV: av}
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

// sends has a queue pair send one request of n bytes, which succeeds.
func (e *cmEnd) sends(t *testing.T, qp *verbs.QP, wr verbs.SendWR, n int) {
	wr.SGE = []verbs.SGE{{Addr: e.mr.Addr(), Length: uint32(n), LKey: e.mr.LKey()}}
	must.Get(qp.Post([]verbs.SendWR{wr}))(t)
	e.completion(t)
}

// unreliable records over IPv6 what rxe sends and the soft RNIC need not
// answer: unreliable connections, datagrams to a multicast group, and the SEND
// with invalidate, whose key the soft RNIC refuses to revoke.
func unreliable(t *testing.T, c *capture, f family) {
	soft := newDevice(t, "soft", openSoft(t, softName(f, 0, plain)), 1<<16)
	r := newCMEnd(t, f, cmSides[0]) // rxe below uapi, for what that does not offer
	copy(r.page, pattern(len(r.page)))

	uc := r.newQP(t, abi.QPTUC)
	toRTS(t, uc, abi.QPTUC, abi.MTU1024, vector(f, f.softAddr(0)), nobody, 0)
	for _, op := range []abi.WROpcode{abi.WRSend, abi.WRSendWithImm, abi.WRRDMAWrite, abi.WRRDMAWriteWithImm} {
		for _, n := range []int{0, 5, 1024, 3*1024 + 2} {
			c.step("rxe: UC %v, %d bytes", op, n)
			r.sends(t, uc, verbs.SendWR{Opcode: op, Imm: 0x01020304, RemoteAddr: 0x1000, RKey: 0x77}, n)
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
			r.sends(t, ud, verbs.SendWR{Opcode: op, Imm: 0x01020304, AHNum: ah.Num(), RemoteQPN: 0xffffff, RemoteQKey: rawQKey}, n)
		}
	}
	require.NoError(t, ah.Destroy())

	for _, n := range []int{5, 1024 + 3} {
		rc := r.newQP(t, abi.QPTRC)
		e := soft.newEnd(t, uapi.QPConfig{MTU: 1024})
		ep := must.Get(e.device.LocalEndpoint(e.qp))(t)
		toRTS(t, rc, abi.QPTRC, abi.MTU1024, vector(f, f.softAddr(0)), ep.QPN, ep.PSN)
		require.NoError(t, e.device.ConnectQP(e.qp, uapi.Endpoint{
			Addr: netip.AddrPortFrom(f.rxe, uapi.RoCEPort), QPN: rc.Num(), PSN: rawPSN, MTU: 1024, MaxRdAtomic: 1,
		}))
		must.Get(e.device.PostRecv(e.qp, e.mr, 0, 4096))(t)
		c.step("rxe: SEND with invalidate, %d bytes, of a key that cannot be revoked", n)
		r.sends(t, rc, verbs.SendWR{Opcode: abi.WRSendWithInv, InvalidateRKey: e.region.RKey}, n) // the ACK goes out before the key is looked at
		require.Equal(t, uapi.WCRemInvReqErr, e.next(t).Status)
	}
}
