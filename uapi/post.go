package uapi

import (
	"errors"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// Write posts an RDMA WRITE: the local piece goes to the first bytes of the
// peer's region; Region.Slice names others. It returns the work request's id,
// which comes back in WC.WRID.
//
// Errors of all posts:
//   - EBADF: a bad handle
//   - EINVAL: a range outside the region, a region in another protection domain
//     than the queue pair, a length above DeviceInfo.MaxMessage, a queue pair
//     that is not connected, a READ or atomic on a connection of which one side
//     allows none
//   - ENOMEM: the queue is full
//
// Those on a Region also have EINVAL for more bytes than the peer's region has,
// and for an operation that it does not allow.
//
// On an error nothing was posted. A refusal by the peer is a completion's
// status.
func (d *Device) Write(qp QP, local SGE, remote Region) (WRID, error) {
	return d.postRegion("Write", qp, local, remote, WR{Op: OpWrite})
}

// WriteImm posts an RDMA WRITE that also uses up a receive of the peer, whose
// completion carries imm and the length.
func (d *Device) WriteImm(qp QP, local SGE, remote Region, imm uint32) (WRID, error) {
	return d.postRegion("WriteImm", qp, local, remote, WR{Op: OpWriteImm, Imm: imm})
}

// Read posts an RDMA READ: the first local.Length bytes of the peer's region
// come to the local piece, whose region needs AccessLocalWrite.
func (d *Device) Read(qp QP, local SGE, remote Region) (WRID, error) {
	return d.postRegion("Read", qp, local, remote, WR{Op: OpRead})
}

// FetchAdd posts an atomic addition to the first 8 bytes of the peer's region,
// whose address is a multiple of 8, else EINVAL. The old value comes to the
// local piece, of 8 bytes. Values are in the peer's machine's byte order.
func (d *Device) FetchAdd(qp QP, local SGE, remote Region, add uint64) (WRID, error) {
	return d.postRegion("FetchAdd", qp, local, remote, WR{Op: OpFetchAdd, CompareAdd: add})
}

// CompareSwap posts an atomic compare-and-swap where FetchAdd adds: swap is
// stored if the 8 bytes equal compare. The old value comes to the local piece
// in any case.
func (d *Device) CompareSwap(qp QP, local SGE, remote Region, compare, swap uint64) (WRID, error) {
	return d.postRegion("CompareSwap", qp, local, remote, WR{Op: OpCompareSwap, CompareAdd: compare, Swap: swap})
}

// PostWrite is Write in the founding document's form, whose numbers nothing
// checks before the peer does: length bytes at localOffset of the region go to
// remoteAddr of the peer, whose region's rkey allows it.
func (d *Device) PostWrite(qp QP, mr MR, localOffset, remoteAddr uint64, rkey uint32, length uint64) (WRID, error) {
	return d.postOne("PostWrite", qp, SGE{mr, localOffset, length}, WR{Op: OpWrite, RemoteAddr: remoteAddr, RKey: rkey})
}

// PostRead is Read in the form of PostWrite: length bytes at remoteAddr of the
// peer come to localOffset of the region.
func (d *Device) PostRead(qp QP, mr MR, localOffset, remoteAddr uint64, rkey uint32, length uint64) (WRID, error) {
	return d.postOne("PostRead", qp, SGE{mr, localOffset, length}, WR{Op: OpRead, RemoteAddr: remoteAddr, RKey: rkey})
}

// PostSend posts an RDMA SEND operation (message passing): the first length
// bytes of the region go into the peer's next receive. While the peer has none
// posted, the request waits.
func (d *Device) PostSend(qp QP, mr MR, length uint64) (WRID, error) {
	return d.postOne("PostSend", qp, SGE{mr, 0, length}, WR{Op: OpSend})
}

// PostSendAt is PostSend of length bytes at localOffset of the region.
func (d *Device) PostSendAt(qp QP, mr MR, localOffset, length uint64) (WRID, error) {
	return d.postOne("PostSendAt", qp, SGE{mr, localOffset, length}, WR{Op: OpSend})
}

// PostSendImm is PostSend with 32 bits that the receive's completion carries.
func (d *Device) PostSendImm(qp QP, mr MR, length uint64, imm uint32) (WRID, error) {
	return d.postOne("PostSendImm", qp, SGE{mr, 0, length}, WR{Op: OpSendImm, Imm: imm})
}

// PostRecv posts a receive: the peer's next message, of at most length bytes,
// comes to localOffset of the region, which needs AccessLocalWrite. It may be
// posted from LocalEndpoint on, before the queue pair is connected. A message
// that is longer fails on both sides. A queue pair that was made with
// recvDepth 0 answers ENOMEM, like any full queue.
func (d *Device) PostRecv(qp QP, mr MR, localOffset, length uint64) (WRID, error) {
	return d.postOne("PostRecv", qp, SGE{mr, localOffset, length}, WR{Op: OpRecv})
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

// postRegion is postOne at the start of a peer's region, which it checks.
func (d *Device) postRegion(op string, qp QP, local SGE, remote Region, wr WR) (WRID, error) {
	if err := remote.admit(wr.Op, local.Length); err != nil {
		return -1, opError(op, qpName(qp), err)
	}
	wr.RemoteAddr, wr.RKey = remote.Addr, remote.RKey
	return d.postOne(op, qp, local, wr)
}

// postOne posts a signaled request of one piece under the next id of the queue
// pair.
func (d *Device) postOne(op string, qp QP, piece SGE, wr WR) (WRID, error) {
	q, err := d.pair(qp)
	if err != nil {
		return -1, opError(op, qpName(qp), err)
	}
	list, one := [1]SGE{piece}, [1]WR{wr}
	one[0].Flags, one[0].SGE = Signaled, list[:]
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
	l.empty(len(wrs))
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
	l.empty(len(wrs))
	var bad error
	for i := range wrs {
		var list []verbs.SGE
		if bad = q.checkReceive(&wrs[i]); bad != nil {
			break
		}
		if list, bad = q.device.gather(&l.sges, &wrs[i], q.config.RecvSGE, maxReceive, q.config.PD); bad != nil {
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
	inline := wr.Flags&Inline != 0 || wr.Data != nil
	switch {
	case wr.Op > OpSendInv:
		return errs.Explain(syscall.EINVAL, "%v cannot be posted", wr.Op)
	case wr.Flags&^known != 0:
		return errs.Explain(syscall.EINVAL, "flags %v are unknown", wr.Flags)
	case inline && wr.Op > OpSendImm && wr.Op != OpSendInv:
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
	if inline {
		s.Flags |= abi.SendInline
		s.Inline, err = q.gatherInline(wr)
		return err
	}
	if s.SGE, err = q.device.gather(&q.sends.sges, wr, q.config.SendSGE, q.device.limits.message, q.config.PD); err != nil {
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

// gather resolves the scatter/gather list of a request in the domain pd and
// appends it to sges. Empty pieces are left out: devices differ in the meaning
// of length 0.
func (d *Device) gather(sges *[]verbs.SGE, wr *WR, most int, longest uint64, pd PD) ([]verbs.SGE, error) {
	list := wr.SGE
	if wr.Data != nil {
		return nil, errs.Explain(syscall.EINVAL, "%v has Data, which is of SENDs and WRITEs", wr.Op)
	}
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

// gatherInline copies the data, or the pieces together. Preconditions: sends.mu
// is held.
func (q *queuePair) gatherInline(wr *WR) ([]byte, error) {
	inline, most := &q.sends.inline, q.config.Inline
	start := len(*inline)
	if wr.Data != nil && len(wr.SGE) > 0 {
		return nil, errs.Explain(syscall.EINVAL, "%v has Data and pieces; it takes one of them", wr.Op)
	}
	*inline = append(*inline, wr.Data[:min(len(wr.Data), most)]...)
	total := uint64(len(wr.Data))
	for i := 0; i < len(wr.SGE) && total <= uint64(most); i++ {
		piece := &wr.SGE[i]
		r, err := q.device.locate(piece, q.device.limits.message-total)
		if err != nil {
			return nil, err
		}
		if total += piece.Length; total <= uint64(most) {
			*inline = append(*inline, r.buf[piece.Offset:piece.Offset+piece.Length]...)
		}
	}
	if total > uint64(most) {
		return nil, errs.Explain(syscall.EINVAL, "%d bytes inline; the queue pair was made for %d", total, most)
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
