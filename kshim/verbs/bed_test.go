package verbs

import (
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/stretchr/testify/require"
)

// bed is a context with the objects that most tests need.
type bed struct {
	*fake
	c      *Context
	pd     *PD
	scq    *CQ
	rcq    *CQ
	qp     *QP
	kernel *fakeQP
}

func newBed(t testing.TB, init QPInit) *bed {
	b := &bed{fake: newFake(t)}
	b.c = b.open()
	var err error
	b.pd, err = b.c.AllocPD()
	require.NoError(t, err)
	b.scq, err = b.c.CreateCQ(64)
	require.NoError(t, err)
	b.rcq, err = b.c.CreateCQ(64)
	require.NoError(t, err)
	if init.SendCQ == nil {
		init.SendCQ = b.scq
	}
	if init.RecvCQ == nil {
		init.RecvCQ = b.rcq
	}
	b.qp, err = b.pd.CreateQP(init)
	require.NoError(t, err)
	b.kernel = b.kernelQP(b.qp)
	return b
}

func (b *bed) modify(states ...abi.QPState) {
	b.t.Helper()
	for _, s := range states {
		require.NoError(b.t, b.qp.Modify(&QPAttr{State: s}, abi.QPMaskState))
		require.Equal(b.t, s, b.qp.State())
	}
}

func (b *bed) connect() *bed {
	b.modify(abi.QPSInit, abi.QPSRTR, abi.QPSRTS)
	b.taken()
	return b
}

// poll takes all completions out.
func poll(t testing.TB, cq *CQ) []WC {
	t.Helper()
	wc := make([]WC, 256)
	n, err := cq.Poll(wc)
	require.NoError(t, err)
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
