package engine

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// transmitReplies writes answers while the batch has room before limit: READ
// responses and ATOMIC ACKs in the order of their PSNs, then one ACK for all
// that was carried out, or the NAK that ends it (IBA 9.7.5.1). The ACK goes
// with ack only.
func (q *QP) transmitReplies(b *Batch, limit mark, ack bool) {
	for b.before(limit) && q.mayReply() {
		switch r := q.rsp.replay.oldest(); {
		case len(q.rsp.replay.repeats.list) > 0:
			q.replyMissing(b)
		case r != nil && r.operation == wire.OpRead:
			q.replyRead(b, r)
		case r != nil:
			q.replyAtomic(b, r)
		case q.rsp.nak.pending:
			q.rsp.nak.pending = false
			q.ackSent() // the NAK acknowledges all before it
			q.reply(b, wire.RCAck, q.rsp.nak.at, q.rsp.nak.syndrome, q.bitmap(b))
		case q.rsp.ack && ack:
			q.ackSent()
			q.reply(b, wire.RCAck, q.rsp.ackTo, wire.SyndromeACK(wire.NoCredits), nil)
		default:
			return
		}
	}
}

// mayReply: in ERR the answers that were due when the queue pair failed may
// still leave, the fatal NAK as the last of them.
func (q *QP) mayReply() bool {
	return q.state == abi.QPSRTR || q.sends() || q.state == abi.QPSErr
}

// reply adds a response packet to the batch. The packet carries the current
// message count, also in the answer to an older request (IBA C9-148;
// rxe_resp.c:prepare_ack_packet).
func (q *QP) reply(b *Batch, op wire.Opcode, s seq, syn wire.Syndrome, payload []byte) {
	q.startPacket(op, s)
	q.out.BECN = q.takeNotice()
	q.out.PrivateMTU, q.out.Proven = q.private.tell()
	q.out.AETH = wire.AETH{Syndrome: syn, MSN: q.rsp.msn}
	b.add(q.attr.Peer, &q.out, payload)
	q.counters.SentPkts++
	q.counters.SentBytes += uint64(len(payload))
}

// replyRead adds one READ response. A READ repeated from the middle goes on
// with Middle, as rxe does and expects.
func (q *QP) replyRead(b *Batch, r *replay) {
	off := uint64(r.cur-r.first) * uint64(r.mtu)
	payload := b.payload(int(min(uint64(r.stopLen)-off, uint64(r.mtu))))
	sum, err := q.cfg.Regions.Read(q.cfg.PD, r.rkey, r.va+off, payload)
	if err != nil {
		q.failReply(b, r)
		return
	}
	op, _ := wire.FindOpcode(wire.ServiceRC, wire.OpReadResponse, position(r.cur == r.first, r.cur+1 == r.stop), wire.Plain)
	q.reply(b, op, r.cur, wire.SyndromeACK(wire.NoCredits), payload)
	b.last().Alone, b.last().Sum = r.alone, sum
	q.rsp.replay.sent(r)
}

func (q *QP) replyAtomic(b *Batch, r *replay) {
	q.out.AtomicAckETH.Orig = r.orig
	q.reply(b, wire.RCAtomicAck, r.cur, wire.SyndromeACK(wire.NoCredits), nil)
	q.rsp.replay.sent(r)
}

// failReply ends the queue pair because the region of a READ is gone while it
// is being answered. If the READ had its answer before, the program had reason
// to take the region away, and what repeats it is most likely late: a requester
// that has the answer takes no notice of the NAK, and one that lost it learns
// why it will not get it. Neither ends this side.
func (q *QP) failReply(b *Batch, r *replay) {
	if r.answered {
		q.counters.DropReplay++
		q.countNAK(remoteOpError.syndrome)
		q.reply(b, wire.RCAck, r.cur, remoteOpError.syndrome, nil)
		r.cur, r.stop = r.end, r.end
		q.rsp.replay.left--
		return
	}
	q.rsp.next = r.cur // so that the NAK names this packet, even before an earlier fatal one
	q.rsp.replay.reset(q.rsp.replay.limit)
	q.refuse(remoteOpError)
}
