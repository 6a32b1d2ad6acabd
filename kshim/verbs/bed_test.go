package verbs

import (
	"testing"
	"testing/synctest"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/kerneltest"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/stretchr/testify/require"
)

// bed is a context with the objects that most tests need, and the device's side
// of them.
type bed struct {
	*fake
	c        *Context
	pd       *PD
	scq      *CQ
	rcq      *CQ
	qp       *QP
	kernel   *kerneltest.QP
	ksc, krc *kerneltest.CQ
}

func newBed(t testing.TB, init QPInit) *bed {
	b := &bed{fake: newFake(t)}
	b.Record = true
	b.c = b.open()
	b.pd = must.Get(b.c.AllocPD())(t)
	b.scq = must.Get(b.c.CreateCQ(64))(t)
	b.rcq = must.Get(b.c.CreateCQ(64))(t)
	init.SendCQ, init.RecvCQ = b.scq, b.rcq
	b.qp = must.Get(b.pd.CreateQP(init))(t)
	b.kernel = b.dev.Last
	b.ksc, b.krc = b.kernel.Init.SendCQ.(*kerneltest.CQ), b.kernel.Init.RecvCQ.(*kerneltest.CQ)
	return b
}

// least is what a queue pair takes to a state.
var least = map[abi.QPState]abi.QPAttrMask{
	abi.QPSInit: abi.QPMaskState | abi.QPMaskPkeyIndex | abi.QPMaskPort | abi.QPMaskAccessFlags,
	abi.QPSRTR: abi.QPMaskState | abi.QPMaskAV | abi.QPMaskPathMTU | abi.QPMaskDestQPN | abi.QPMaskRQPSN |
		abi.QPMaskMaxDestRdAtomic | abi.QPMaskMinRNRTimer,
	abi.QPSRTS: abi.QPMaskState | abi.QPMaskTimeout | abi.QPMaskRetryCnt | abi.QPMaskRNRRetry | abi.QPMaskMaxQPRdAtomic | abi.QPMaskSQPSN,
}

// move takes a queue pair to a state.
func move(qp *QP, s abi.QPState) error {
	mask := least[s] | abi.QPMaskState
	if qp.State() == abi.QPSSQD {
		mask = abi.QPMaskState
	}
	return qp.Modify(&QPAttr{State: s, PortNum: 1, PathMTU: abi.MTU1024, AV: abi.QPDest{IsGlobal: 1, PortNum: 1}}, mask)
}

func (b *bed) modify(states ...abi.QPState) {
	b.t.Helper()
	for _, s := range states {
		require.NoError(b.t, move(b.qp, s))
		require.Equal(b.t, s, b.qp.State())
	}
}

func (b *bed) connect() *bed {
	b.modify(abi.QPSInit, abi.QPSRTR, abi.QPSRTS)
	b.Taken()
	return b
}

// inBubble runs a test in a bubble, with a connected bed.
func inBubble(t *testing.T, f func(t *testing.T, b *bed)) {
	synctest.Test(t, func(t *testing.T) { f(t, newBed(t, eight).connect()) })
}

// poll takes all completions out.
func poll(t testing.TB, cq *CQ) []WC {
	t.Helper()
	wc := make([]WC, 256)
	n := must.Get(cq.Poll(wc))(t)
	return wc[:n]
}

func ids(wc []WC) []uint64 {
	list := []uint64{}
	for _, c := range wc {
		list = append(list, c.ID)
	}
	return list
}

var eight = QPInit{MaxSendWR: 8, MaxRecvWR: 8}
