package verbs

import (
	"slices"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
)

// post adds a completion and fires the event if one was asked for.
func (cq *fakeCQ) post(k *fake, wc *ring.WC) {
	free, err := cq.p.Free()
	if err != nil || free == 0 {
		k.async(abi.EventCQErr, cq.user)
		return
	}
	_ = ring.EncodeWC(cq.p.Slot(0), wc)
	cq.p.Publish(1)
	if cq.armed {
		cq.armed = false
		ev := make([]byte, 8)
		(&abi.CompEvent{CQHandle: cq.user}).Put(ev)
		k.eventFile(1).events <- ev
	}
}

// eventFile is the n-th event file that was made: 0 asynchronous, 1
// completions.
func (k *fake) eventFile(n int) *fakeFile {
	var fds []int32
	for fd := range k.files {
		fds = append(fds, fd)
	}
	slices.Sort(fds)
	return k.files[fds[n]]
}

func (k *fake) async(typ abi.EventType, element uint64) {
	ev := make([]byte, 16)
	(&abi.AsyncEvent{Element: element, EventType: typ}).Put(ev)
	k.eventFile(0).events <- ev
}

// sends takes the requests out of the send queue.
func (qp *fakeQP) sends(f func(w *ring.SendWQE)) {
	n, err := qp.sqc.Ready()
	if err != nil {
		qp.k.t.Error(err)
	}
	var w ring.SendWQE
	for i := range n {
		if err := w.Decode(qp.sqc.Slot(i)); err != nil {
			qp.k.t.Error(err)
		}
		f(&w)
	}
	qp.sqc.Release(n)
}

// succeed completes signaled requests, the way Linux does: WITH_IMM on the
// sender's side and a byte count.
func (qp *fakeQP) succeed() {
	qp.sends(func(w *ring.SendWQE) {
		if w.WR.Flags&abi.SendSignaled != 0 {
			qp.scq.post(qp.k, &ring.WC{ID: w.WR.ID, Opcode: 77, ByteLen: w.Length, QPN: qp.num, Flags: abi.WCWithImm})
		}
	})
}

// failFirst completes the first request with an error status and nothing else,
// as Linux does, and goes to ERR.
func (qp *fakeQP) failFirst(status abi.WCStatus) {
	first := true
	qp.sends(func(w *ring.SendWQE) {
		s := abi.WCWRFlushErr
		if first {
			s = status
		}
		first = false
		qp.scq.post(qp.k, &ring.WC{ID: w.WR.ID, Status: s, QPN: qp.num})
	})
	qp.toErr()
}

func (qp *fakeQP) flushSends() {
	qp.sends(func(w *ring.SendWQE) {
		qp.scq.post(qp.k, &ring.WC{ID: w.WR.ID, Status: abi.WCWRFlushErr, QPN: qp.num})
	})
}

// toErr flushes the posted requests; requests posted later are not looked at.
func (qp *fakeQP) toErr() {
	qp.state = abi.QPSErr
	qp.flushSends()
	for qp.recv(&ring.WC{Status: abi.WCWRFlushErr}) {
	}
}

// recv completes the oldest receive.
func (qp *fakeQP) recv(wc *ring.WC) bool {
	n, err := qp.rqc.Ready()
	if err != nil {
		qp.k.t.Error(err)
	}
	if n == 0 {
		return false
	}
	var w ring.RecvWQE
	if err := w.Decode(qp.rqc.Slot(0)); err != nil {
		qp.k.t.Error(err)
	}
	qp.rqc.Release(1)
	c := *wc
	c.ID, c.QPN = w.WR.ID, qp.num
	qp.rcq.post(qp.k, &c)
	return true
}
