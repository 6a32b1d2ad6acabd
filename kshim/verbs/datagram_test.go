package verbs

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/kerneltest"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/tests/must"
)

// TestFailedDatagram: after a datagram that could not be sent the kernel is
// asked for the queue pair's state, also when a caller waits for receives that
// the kernel would not flush.
func TestFailedDatagram(t *testing.T) {
	for _, stops := range []bool{true, false} {
		inBubble(t, func(t *testing.T, b *bed) {
			b.qp.typ = abi.QPTUD
			got := make(chan []uint64, 1)
			go func() {
				wc := make([]WC, 4)
				n, _ := b.rcq.Wait(t.Context(), wc)
				got <- ids(wc[:n])
			}()
			must.Get(b.qp.PostRecv(recvs(9)))(t)
			synctest.Wait()
			b.do(func() {
				b.dev.Bell = func(qp *kerneltest.QP) {
					qp.EachSend(func(w *ring.SendWQE) {
						b.ksc.Add(&ring.WC{ID: w.WR.ID, Status: abi.WCLocQPOpErr, QPN: qp.Num()})
					})
					if stops {
						qp.SetState(abi.QPSErr)
					}
				}
			})
			must.Get(b.qp.Post(sends(sig, 1)))(t)
			require.Equal(t, []uint64{1}, ids(poll(t, b.scq)))
			synctest.Wait()
			if !stops {
				require.Equal(t, abi.QPSRTS, b.qp.State())
				require.Empty(t, got)
				b.do(b.kernel.Fail)
			}
			require.Equal(t, []uint64{9}, <-got)
			require.Equal(t, abi.QPSErr, b.qp.State())
		})
	}
}
