package engine

import "github.com/rdmashim/rdmashim/kshim/abi"

// Local operations, BIND_MW and LOCAL_INV, have no packet and no PSN. They take
// effect when all requests before them have completed, and those behind them
// wait (IBA 10.8.3.3 asks that of LOCAL_INV): nothing is in flight then, so
// that no repeated packet meets a key before or after its time.

// executeLocal carries out the local operation whose turn it is. False holds
// the queue.
func (q *QP) executeLocal(w *sendWR) bool {
	if q.req.cur != q.sq.head {
		return false
	}
	user := uint32(q.cfg.QPN)
	switch {
	case w.status != abi.WCSuccess:
	case w.kind.wc == abi.WCBindMW:
		if q.cfg.Regions.Bind(q.cfg.PD, user, &w.bind) != nil {
			w.status = abi.WCMWBindErr
		}
	case q.cfg.Regions.Invalidate(q.cfg.PD, user, w.invalidate) != nil:
		w.status = abi.WCLocQPOpErr // rxe_req.c:rxe_do_local_ops
	}
	if w.status != abi.WCSuccess {
		q.failLocal()
		return false
	}
	q.req.cur++
	q.sq.head++
	q.completeSend(w)
	return true
}

// ended reports whether a request's packets all lie before s. A local operation
// ends by executeLocal.
func (w *sendWR) ended(s seq) bool { return w.end <= s && !w.kind.local() }
