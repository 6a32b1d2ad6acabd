package uapi

import (
	"errors"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// PostWrite posts an RDMA WRITE operation: length bytes at localOffset of the
// region go to remoteAddr of the peer, whose region's rkey allows it. It
// returns the work request's id, which comes back in WC.WRID.
//
// Errors of all posts:
//   - EBADF: a bad handle
//   - EINVAL: a range outside the region, a region in another protection domain
//     than the queue pair, a length above DeviceInfo.MaxMessage, a queue pair
//     that is not connected, a READ or atomic on a connection of which one side
//     allows none
//   - ENOMEM: the queue is full
//
// On an error nothing was posted. A refusal by the peer is a completion's
// status.
func (d *Device) PostWrite(qp QP, mr MR, localOffset, remoteAddr uint64, rkey uint32, length uint64) (WRID, error) {
	sge := [1]SGE{{MR: mr, Offset: localOffset, Length: length}}
	wr := WR{Op: OpWrite, Flags: Signaled, SGE: sge[:], RemoteAddr: remoteAddr, RKey: rkey}
	return d.postOne("PostWrite", qp, &wr)
}

// PostWriteImm posts an RDMA WRITE that also uses up a receive of the peer,
// whose completion carries imm and the length.
func (d *Device) PostWriteImm(qp QP, mr MR, localOffset, remoteAddr uint64, rkey uint32, length uint64, imm uint32) (WRID, error) {
	sge := [1]SGE{{MR: mr, Offset: localOffset, Length: length}}
	wr := WR{Op: OpWriteImm, Flags: Signaled, SGE: sge[:], RemoteAddr: remoteAddr, RKey: rkey, Imm: imm}
	return d.postOne("PostWriteImm", qp, &wr)
}

// PostRead posts an RDMA READ operation: length bytes at remoteAddr of the
// peer come to localOffset of the region, which needs AccessLocalWrite.
func (d *Device) PostRead(qp QP, mr MR, localOffset, remoteAddr uint64, rkey uint32, length uint64) (WRID, error) {
	sge := [1]SGE{{MR: mr, Offset: localOffset, Length: length}}
	wr := WR{Op: OpRead, Flags: Signaled, SGE: sge[:], RemoteAddr: remoteAddr, RKey: rkey}
	return d.postOne("PostRead", qp, &wr)
}

// PostSend posts an RDMA SEND operation (message passing): the first length
// bytes of the region go into the peer's next receive. While the peer has none
// posted, the request waits.
func (d *Device) PostSend(qp QP, mr MR, length uint64) (WRID, error) {
	sge := [1]SGE{{MR: mr, Length: length}}
	wr := WR{Op: OpSend, Flags: Signaled, SGE: sge[:]}
	return d.postOne("PostSend", qp, &wr)
}

// PostSendAt is PostSend of length bytes at localOffset of the region.
func (d *Device) PostSendAt(qp QP, mr MR, localOffset, length uint64) (WRID, error) {
	sge := [1]SGE{{MR: mr, Offset: localOffset, Length: length}}
	wr := WR{Op: OpSend, Flags: Signaled, SGE: sge[:]}
	return d.postOne("PostSendAt", qp, &wr)
}

// PostSendImm is PostSend with 32 bits that the receive's completion carries.
func (d *Device) PostSendImm(qp QP, mr MR, length uint64, imm uint32) (WRID, error) {
	sge := [1]SGE{{MR: mr, Length: length}}
	wr := WR{Op: OpSendImm, Flags: Signaled, SGE: sge[:], Imm: imm}
	return d.postOne("PostSendImm", qp, &wr)
}

// PostRecv posts a receive: the peer's next message, of at most length bytes,
// comes to localOffset of the region, which needs AccessLocalWrite. It may be
// posted from LocalEndpoint on, before the queue pair is connected. A message
// that is longer fails on both sides. A queue pair that was made with
// recvDepth 0 answers ENOMEM, like any full queue.
func (d *Device) PostRecv(qp QP, mr MR, localOffset, length uint64) (WRID, error) {
	sge := [1]SGE{{MR: mr, Offset: localOffset, Length: length}}
	wr := WR{Op: OpRecv, SGE: sge[:]}
	return d.postOne("PostRecv", qp, &wr)
}

// PostFetchAdd posts an atomic addition to the 8 aligned bytes at remoteAddr
// of the peer, whose region needs AccessRemoteAtomic. The old value comes to
// localOffset of the region. Values are in the peer's machine's byte order.
func (d *Device) PostFetchAdd(qp QP, mr MR, localOffset, remoteAddr uint64, rkey uint32, add uint64) (WRID, error) {
	sge := [1]SGE{{MR: mr, Offset: localOffset, Length: 8}}
	wr := WR{Op: OpFetchAdd, Flags: Signaled, SGE: sge[:], RemoteAddr: remoteAddr, RKey: rkey, CompareAdd: add}
	return d.postOne("PostFetchAdd", qp, &wr)
}

// PostCompareSwap posts an atomic compare-and-swap on the 8 aligned bytes at
// remoteAddr of the peer: swap is stored if they equal compare. The old value
// comes to localOffset of the region in any case.
func (d *Device) PostCompareSwap(qp QP, mr MR, localOffset, remoteAddr uint64, rkey uint32, compare, swap uint64) (WRID, error) {
	sge := [1]SGE{{MR: mr, Offset: localOffset, Length: 8}}
	wr := WR{Op: OpCompareSwap, Flags: Signaled, SGE: sge[:], RemoteAddr: remoteAddr, RKey: rkey, CompareAdd: compare, Swap: swap}
	return d.postOne("PostCompareSwap", qp, &wr)
}

// Post posts work requests in order, sends and receives (OpRecv) as they come,
// with one doorbell for each run of sends, and returns how many were posted.
// If that is less than len(wrs), the error is the next one's; those before it
// are on their way.
//
// An unsignaled request that succeeds makes no completion, and its slot comes
// back when the completion of a later signaled one is polled: with no signaled
// request among the outstanding ones, a full queue stays full.
func (d *Device) Post(qp QP, wrs []WR) (int, error) {
	q, err := d.pair(qp)
	if err != nil {
		return 0, opError("Post", qpName(qp), err)
	}
	posted := 0
	for posted < len(wrs) && err == nil {
		var n int
		n, err = q.post(wrs[posted:], false)
		posted += n
	}
	if err != nil {
		return posted, opError("Post", qpName(qp), err)
	}
	return posted, nil
}

// postOne posts a request under the next id of the queue pair.
func (d *Device) postOne(op string, qp QP, wr *WR) (WRID, error) {
	q, err := d.pair(qp)
	if err != nil {
		return -1, opError(op, qpName(qp), err)
	}
	one := [1]WR{*wr}
	if _, err = q.post(one[:], true); err != nil {
		return -1, opError(op, qpName(qp), err)
	}
	return one[0].ID, nil
}

// postBatch bounds how much is translated at a time.
const postBatch = 128

// post posts the longest run of one direction at the start of wrs. It gives the
// first an id of the queue pair's if number says so. Preconditions: wrs is not
// empty.
func (q *queuePair) post(wrs []WR, number bool) (n int, err error) {
	receives := wrs[0].Op == OpRecv
	run := 1
	for run < len(wrs) && run < postBatch && (wrs[run].Op == OpRecv) == receives {
		run++
	}
	mu := &q.sends.mu
	if receives {
		mu = &q.recvs.mu
	}
	mu.Lock()
	var next uint64
	if number { // with mu held: the ids of a direction are in the order of its posts
		next = q.ids.Add(1)
		wrs[0].ID = WRID((next - 1) & (1<<63 - 1))
	}
	if receives {
		n, err = q.postRecvs(wrs[:run])
	} else {
		n, err = q.postSends(wrs[:run])
	}
	if number && n == 0 { // used again, unless the other direction took the next one
		q.ids.CompareAndSwap(next, next-1)
	}
	mu.Unlock()
	if err != nil {
		err = q.device.ended(err, &q.dead, "the queue pair")
		if !q.connected.Load() && errors.Is(err, syscall.EINVAL) && n == 0 {
			err = q.notConnected(receives, err)
		}
	}
	return n, err
}

// postSends posts requests of its direction. Preconditions: the lane's lock is
// held.
func (q *queuePair) postSends(wrs []WR) (int, error) {
	if q.config.SendDepth == 0 {
		return 0, errs.Explain(syscall.ENOMEM, "it was made without room for sends")
	}
	l := &q.sends
	l.empty()
	var bad error
	for i := range wrs {
		var s verbs.SendWR
		if bad = q.translate(&wrs[i], &s); bad != nil {
			break
		}
		l.wrs = append(l.wrs, s)
	}
	if len(l.wrs) == 0 {
		return 0, bad
	}
	n, err := q.verbs.Post(l.wrs)
	for i := len(l.wrs) - 1; i >= n; i-- {
		q.unpost(&wrs[i])
	}
	if err == nil {
		err = bad
	}
	return n, err
}

// postRecvs posts requests of its direction. Preconditions: the lane's lock is
// held.
func (q *queuePair) postRecvs(wrs []WR) (int, error) {
	if q.srq != nil {
		return 0, errs.Explain(syscall.EINVAL, "it takes the receives of %s: use PostSRQRecv", srqName(q.config.SRQ))
	}
	if q.config.RecvDepth == 0 {
		return 0, errs.Explain(syscall.ENOMEM, "it was made without room for receives")
	}
	l := &q.recvs
	l.empty()
	var bad error
	for i := range wrs {
		var list []verbs.SGE
		if bad = q.checkReceive(&wrs[i]); bad != nil {
			break
		}
		if list, bad = q.device.gather(&l.sges, wrs[i].SGE, q.config.RecvSGE, maxReceive, q.config.PD); bad != nil {
			break
		}
		l.wrs = append(l.wrs, verbs.RecvWR{ID: uint64(wrs[i].ID), SGE: list})
	}
	if len(l.wrs) == 0 {
		return 0, bad
	}
	n, err := q.verbs.PostRecv(l.wrs)
	if err == nil {
		err = bad
	}
	return n, err
}

// translate resolves the handles of a send request. Preconditions: sends.mu is
// held.
func (q *queuePair) translate(wr *WR, s *verbs.SendWR) error {
	const known = Fence | Signaled | Solicited | Inline
	switch {
	case wr.Op > OpSendInv:
		return errs.Explain(syscall.EINVAL, "%v cannot be posted", wr.Op)
	case wr.Flags&^known != 0:
		return errs.Explain(syscall.EINVAL, "flags %v are unknown", wr.Flags)
	case wr.Flags&Inline != 0 && wr.Op > OpSendImm && wr.Op != OpSendInv:
		return errs.Explain(syscall.EINVAL, "%v cannot be inline", wr.Op)
	}
	*s = verbs.SendWR{
		ID:             uint64(wr.ID),
		Opcode:         abi.WROpcode(wr.Op),
		Flags:          abi.SendFlags(wr.Flags),
		RemoteAddr:     wr.RemoteAddr,
		RKey:           wr.RKey,
		InvalidateRKey: wr.RKey,
		Imm:            wr.Imm,
		CompareAdd:     wr.CompareAdd,
		Swap:           wr.Swap,
	}
	err := q.checkType(wr, s)
	if err != nil {
		return err
	}
	if q.config.SignalAll {
		s.Flags |= abi.SendSignaled
	}
	if wr.Op == OpBindMW || wr.Op == OpLocalInv {
		return q.changeKey(wr, s)
	}
	if wr.Flags&Inline != 0 {
		s.Inline, err = q.gatherInline(wr.SGE)
		return err
	}
	if s.SGE, err = q.device.gather(&q.sends.sges, wr.SGE, q.config.SendSGE, q.device.limits.message, q.config.PD); err != nil {
		return err
	}
	if wr.Op == OpCompareSwap || wr.Op == OpFetchAdd {
		if len(s.SGE) != 1 || s.SGE[0].Length != 8 {
			return errs.Explain(syscall.EINVAL, "an atomic's old value takes one piece of 8 bytes")
		}
	}
	return nil
}

// checkAnswers refuses a READ or atomic that nothing would ever answer, since
// one side of the connection allows none at a time. Posted it would fail as
// WCLocQPOpErr and end the queue pair; rdma_rxe would let it wait for ever.
func (q *queuePair) checkAnswers(op Op) error {
	switch {
	case op != OpRead && op != OpCompareSwap && op != OpFetchAdd, !q.connected.Load(),
		q.config.MaxRdAtomic > 0 && q.remote.MaxRdAtomic > 0:
		return nil
	case q.config.MaxRdAtomic == 0:
		return errs.Explain(syscall.EINVAL, "%v: its QPConfig has MaxRdAtomic -1, so that it has no READ or atomic outstanding", op)
	}
	return errs.Explain(syscall.EINVAL, "%v: the peer answers none: it offered no resources for READs and atomics when the queue pair was connected (MaxRdAtomic of its QPConfig, responder_resources of rdma_cm)", op)
}

// gather resolves a scatter/gather list of a queue in the domain pd and appends
// it to sges. Empty pieces are left out: devices differ in the meaning of
// length 0.
func (d *Device) gather(sges *[]verbs.SGE, list []SGE, most int, longest uint64, pd PD) ([]verbs.SGE, error) {
	if len(list) > most {
		return nil, errs.Explain(syscall.EINVAL, "%d pieces; the queue was made for %d", len(list), most)
	}
	start := len(*sges)
	var total uint64
	for i := range list {
		r, err := d.locate(&list[i], longest-total)
		if err == nil && r.info.PD != pd {
			err = otherDomain(mrName(list[i].MR), r.info.PD, pd)
		}
		if err != nil {
			return nil, err
		}
		if total += list[i].Length; list[i].Length > 0 {
			*sges = append(*sges, verbs.SGE{Addr: r.info.Addr + list[i].Offset, Length: uint32(list[i].Length), LKey: r.info.LKey})
		}
	}
	return (*sges)[start:len(*sges):len(*sges)], nil
}

// gatherInline copies the pieces together. Preconditions: sends.mu is held.
func (q *queuePair) gatherInline(list []SGE) ([]byte, error) {
	inline := &q.sends.inline
	start := len(*inline)
	var total uint64
	for i := range list {
		r, err := q.device.locate(&list[i], q.device.limits.message-total)
		if err != nil {
			return nil, err
		}
		total += list[i].Length
		if total > uint64(q.config.Inline) {
			return nil, errs.Explain(syscall.EINVAL, "%d bytes inline; the queue pair was made for %d", total, q.config.Inline)
		}
		*inline = append(*inline, r.buf[list[i].Offset:list[i].Offset+list[i].Length]...)
	}
	return (*inline)[start:len(*inline):len(*inline)], nil
}

// maxReceive is the most bytes that a receive's buffers may have together:
// IBA's longest message (9.7.6), on every device.
const maxReceive = 1 << 31

// locate checks a piece: its handle, its bounds, and that it takes no more
// than the room that is left in a message.
func (d *Device) locate(piece *SGE, room uint64) (*regionState, error) {
	region, err := d.region(piece.MR)
	if err != nil {
		return nil, err
	}
	r := region.state.Load()
	if piece.Offset > r.info.Length || piece.Length > r.info.Length-piece.Offset {
		return nil, errs.Explain(syscall.EINVAL, "%s has %d bytes; offset %d and length %d go past them",
			mrName(piece.MR), r.info.Length, piece.Offset, piece.Length)
	}
	if piece.Length > room {
		return nil, errs.Explain(syscall.EINVAL, "the message is longer than the device's maximum of %d bytes", d.limits.message)
	}
	return r, nil
}

// notConnected is the error of a post before the connection; it says which call
// comes first.
func (q *queuePair) notConnected(receives bool, err error) error {
	switch {
	case receives && !q.inited.Load():
		return errs.Explain(syscall.EINVAL, "it is in RESET: call LocalEndpoint or ConnectQP before posting receives")
	case !receives:
		if e := (*errs.Explained)(nil); errors.As(err, &e) {
			return err // the request itself was wrong
		}
		q.refused.Store(true)
		return errs.Explain(syscall.EINVAL, "it is not connected: call ConnectQP first")
	}
	return err
}
