package engine

import "github.com/rdmashim/rdmashim/rnic/wire"

// Ping asks the peer for a sign of life without a work request: the next
// Transmit sends a zero-length WRITE with the PSN before the oldest that is
// outstanding. To the responder that is a duplicate, which it acknowledges
// again without carrying it out (IBA 9.7.5.1.2, rxe_resp.c:duplicate_request);
// the ACK says nothing new and is dropped. So whether anything came of it shows
// in RcvdPkts only. It is not repeated. False in states that send nothing, and
// for services without acknowledgements. Next: Transmit.
func (q *QP) Ping() bool {
	q.req.ping = q.sends() && q.service == wire.ServiceRC
	return q.req.ping
}

// transmitPing writes the packet that Ping asked for.
func (q *QP) transmitPing(b *Batch) {
	if !q.req.ping || !q.sends() || b.Full() {
		return
	}
	q.req.ping = false
	q.startPacket(wire.RCWriteOnly, q.req.una-1)
	q.out.AckReq, q.out.RETH = true, wire.RETH{}
	b.add(q.attr.Peer, &q.out, nil)
	q.counters.SentPkts++
}
