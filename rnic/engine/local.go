package engine

import "github.com/rdmashim/rdmashim/kshim/abi"

// Local operations, BIND_MW and LOCAL_INV, have no packet and no PSN. Those
// behind them wait for them, and they complete in their turn (IBA 10.8.3.3).
//
// LOCAL_INV takes effect when all requests before it have completed: nothing is
// in flight then, so that no repeated packet meets a key after its time.
// BIND_MW takes effect when those before it have left. No packet of this side
// uses its key, so that repeating them does no harm; it waits for READs and
// atomics if it is fenced.

// executeLocal carries out the local operation whose turn it is, or passes one
// that was carried out before the requester went back. False holds the queue.
func (q *QP) executeLocal(w *sendWR) bool {
	oldest := q.req.cur == q.sq.head
	user := uint32(q.cfg.QPN)
	switch {
	case w.done || w.status != abi.WCSuccess:
	case w.kind.wc == abi.WCBindMW:
		if !q.passesFence(w) {
			return false
		}
		if q.cfg.Regions.Bind(q.cfg.PD, user, &w.bind) != nil {
			w.status = abi.WCMWBindErr
		}
	case !oldest:
		return false
	case q.cfg.Regions.Invalidate(q.cfg.PD, user, w.invalidate) != nil:
		w.status = abi.WCLocQPOpErr // rxe_req.c:rxe_do_local_ops
	}
	if w.status != abi.WCSuccess {
		q.failLocal()
		return false
	}
	w.done = true
	q.req.cur++
	if oldest {
		q.sq.head++
		q.completeSend(w)
	}
	return true
}

// ended reports whether a request's packets all lie before s. A local operation
// must be carried out, too.
func (w *sendWR) ended(s seq) bool { return w.end <= s && (w.done || !w.kind.local()) }
