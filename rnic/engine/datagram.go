package engine

import (
	"encoding/binary"
	"net/netip"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// DatagramConfig is fixed when a queue pair for datagrams is created.
type DatagramConfig struct {
	Config            // Tuning has no meaning
	MTU    int        // of the port, in bytes: the longest message
	Local  netip.Addr // the port's address, as receive buffers show it
}

// Datagrams is a queue pair of the service unreliable datagram (IBA 9.8.3). A
// message is one packet, a request has completed when its packet is in a batch,
// and a packet that cannot be received is dropped and counted. It is driven as
// QP is, whose send queue and completions it uses; there are no timeouts.
//
// Of Attr only QKey and SQPSN count. Requests carry their destination
// (SendWR.To).
type Datagrams struct {
	QP
	longest int        // bytes of a message
	local   netip.Addr // see DatagramConfig
	psn     wire.PSN   // of the next packet
	heard   wire.PSN   // one more than that of the last packet received

	to  []Destination // of the requests in sq, at the same places
	grh [wire.GRHLen]byte
}

// NewDatagrams makes a queue pair in RESET.
func NewDatagrams(cfg DatagramConfig) *Datagrams {
	cfg.Paths, cfg.Stash = nil, nil
	q := &Datagrams{QP: *New(cfg.Config), longest: cfg.MTU, local: cfg.Local}
	q.service = wire.ServiceUD
	q.to = make([]Destination, q.sq.depth)
	return q
}

// Attr returns QKey, SQPSN, the next PSN to be sent, and RQPSN, the one after
// the last that came, of any sender.
func (q *Datagrams) Attr() Attr { return Attr{QKey: q.attr.QKey, SQPSN: q.psn, RQPSN: q.heard} }

// Modify sets the attributes that mask names and moves to the state to. The
// transitions are those of QP.Modify.
func (q *Datagrams) Modify(_ Time, to abi.QPState, attr *Attr, mask abi.QPAttrMask) error {
	if err := q.checkTransition(to); err != nil {
		return err
	}
	if to == abi.QPSReset {
		q.QP.reset()
		q.psn, q.heard = 0, 0
		return nil
	}
	take(&q.attr.QKey, attr.QKey, mask&abi.QPMaskQKey)
	take(&q.psn, attr.SQPSN&wire.MaxPSN, mask&abi.QPMaskSQPSN)
	q.state = to
	return nil
}

// Datagram holds the header fields of one unreliable datagram. It serves the
// general services queue pair, which makes and takes single datagrams without a
// queue pair of this package.
type Datagram struct {
	Peer      netip.AddrPort // where it goes
	DestQPN   wire.QPN
	SrcQPN    wire.QPN
	QKey      uint32
	PSN       wire.PSN
	Solicited bool
	HasImm    bool
	Imm       [4]byte // as on the wire
}

// AddDatagram appends a datagram, of which payload is copied: at most 4096
// bytes. The batch is not full.
func (b *Batch) AddDatagram(d *Datagram, payload []byte) {
	room := b.payload(d.opcode(), len(payload))
	copy(room, payload)
	b.addDatagram(d, room)
}

func (d *Datagram) opcode() wire.Opcode {
	if d.HasImm {
		return wire.UDSendOnlyImm
	}
	return wire.UDSendOnly
}

// addDatagram is AddDatagram for a payload that came from b.payload.
func (b *Batch) addDatagram(d *Datagram, payload []byte) {
	p := wire.Packet{
		BTH: wire.BTH{
			Opcode: d.opcode(), Solicited: d.Solicited, MigReq: true, PKey: wire.DefaultPKey,
			DestQPN: d.DestQPN, PSN: d.PSN,
		},
		DETH: wire.DETH{QKey: d.QKey, SrcQPN: d.SrcQPN},
	}
	if d.HasImm {
		p.ImmDt.Data = binary.BigEndian.Uint32(d.Imm[:])
	}
	b.add(d.Peer, &p, payload)
}

// Verdict is whether a received packet is a datagram for a queue pair, or why
// not.
type Verdict uint8

const (
	Accepted     Verdict = iota
	WrongService         // another transport service
	WrongPKey            // another partition
	WrongQKey            // another Q_Key
)

// CheckDatagram holds a received packet against a Q_Key (IBA 9.6.1 and 9.8.3):
// transport service, P_Key, Q_Key. A refused packet is dropped silently.
func CheckDatagram(p *wire.Packet, qkey uint32) Verdict {
	switch {
	case p.Opcode.Service() != wire.ServiceUD:
		return WrongService
	case !p.PKey.Match(wire.DefaultPKey):
		return WrongPKey
	case p.DETH.QKey != qkey:
		return WrongQKey
	}
	return Accepted
}

// controlledQKey marks Q_Keys that not every program may use.
const controlledQKey = 1 << 31

// qkeyToSend returns the Q_Key of a datagram whose work request names one: with
// the highest bit set it stands for the queue pair's own (IBA 10.2.5).
func qkeyToSend(named, own uint32) uint32 {
	if named&controlledQKey != 0 {
		return own
	}
	return named
}

// hopLimit is the assumed hop limit of a received datagram: a link does not
// tell.
const hopLimit = 64

// routeHeader appends the 40 bytes that stand before the payload of p in a
// receive buffer (IBA 8.3, A17). Of the IP header the link tells the addresses
// only: traffic class and flow label are 0.
func routeHeader(b []byte, from, to netip.Addr, p *wire.Packet) []byte {
	const udpHeader, ipProtocolUDP = 8, 17
	g := wire.GRH{
		Src: wire.Bare(from), Dst: wire.Bare(to), HopLimit: hopLimit, NextHeader: ipProtocolUDP,
		PayloadLen: uint16(udpHeader + p.Length() + wire.ICRCLen),
	}
	return g.Append(b)
}

// Destination is where a datagram goes.
type Destination struct {
	Peer netip.AddrPort // of the address handle; invalid: there is no such handle
	QPN  wire.QPN
	QKey uint32
}

// Post is QP.Post, and copies the request's destination, too.
func (q *Datagrams) Post(now Time, wr *SendWR) error {
	i := q.sq.tail
	if err := q.QP.Post(now, wr); err != nil {
		return err
	}
	isDatagram := wr.Opcode == abi.WRSend || wr.Opcode == abi.WRSendWithImm
	if !isDatagram || !wr.To.Peer.IsValid() {
		q.sq.at(i).status = abi.WCLocQPOpErr // rxe_req.c: next_opcode, rxe_get_av
	}
	q.to[i%uint64(len(q.to))] = wr.To
	return nil
}

// Transmit writes packets that may leave now into b, behind what is there, and
// completes their requests. More reports that b was filled, so there may be
// more. Next: Completions.
func (q *Datagrams) Transmit(_ Time, b *Batch) (more bool) {
	for q.state == abi.QPSRTS && q.sq.len() > 0 {
		if b.Full() {
			return true
		}
		w := q.sq.at(q.sq.head)
		if w.status == abi.WCSuccess {
			w.status = q.send(b, w)
		}
		if w.status != abi.WCSuccess {
			q.failLocal()
			return false
		}
		q.psn = q.psn.Next()
		q.sq.head++
		q.completeSend(w)
	}
	return b.Full()
}

// send puts the packet of a request into the batch, where it has room.
func (q *Datagrams) send(b *Batch, w *sendWR) abi.WCStatus {
	n := int(w.length)
	if n > q.longest {
		// C10-93.1.1: no packet, and no error either (rxe_req.c:rxe_requester).
		q.counters.DropTooLong++
		return abi.WCSuccess
	}
	to := &q.to[q.sq.head%uint64(len(q.to))]
	d := Datagram{
		Peer: to.Peer, DestQPN: to.QPN, SrcQPN: q.cfg.QPN, QKey: qkeyToSend(to.QKey, q.attr.QKey), PSN: q.psn,
		Solicited: w.flags&abi.SendSolicited != 0, HasImm: w.kind.suffix == wire.Immediate, Imm: w.imm,
	}
	payload, sum, err := q.fetch(b, d.opcode(), w, 0, n)
	if err != nil {
		return abi.WCLocProtErr
	}
	b.addDatagram(&d, payload)
	q.finish(b, sum)
	q.counters.SentPkts++
	q.counters.SentBytes += uint64(n)
	return abi.WCSuccess
}

// Receive takes a packet whose BTH names this queue pair, from the address
// from. The packet is not kept. Next: Completions.
func (q *Datagrams) Receive(_ Time, from netip.Addr, p *wire.Packet) {
	q.ReceiveAt(q.local, from, p)
}

// ReceiveAt is Receive of a packet that was sent to the address at, that of a
// multicast group in which the queue pair is.
func (q *Datagrams) ReceiveAt(at, from netip.Addr, p *wire.Packet) {
	if !q.accept(p) {
		return
	}
	q.counters.RcvdPkts++
	q.counters.RcvdBytes += uint64(len(p.Payload))
	q.heard = p.PSN.Next()
	e := q.takeReceive()
	if e.syndrome.IsRNR() {
		q.counters.DropNoReceive++ // IBA 9.8.3: without a word
		return
	}
	status := e.status
	if status == abi.WCSuccess {
		status = q.store(at, from, p)
	}
	if status != abi.WCSuccess {
		q.completeReceive(status)
		q.enterError()
		return
	}
	q.rsp.done = uint64(wire.GRHLen + len(p.Payload))
	q.pushReceive(p, abi.WCRecv)
}

// accept is the validation before anything is done: state, transport service,
// P_Key, Q_Key (IBA 9.6.1, 9.8.3). A packet that fails is dropped silently.
func (q *Datagrams) accept(p *wire.Packet) bool {
	switch q.state {
	case abi.QPSRTR, abi.QPSRTS, abi.QPSSQD:
	default:
		q.counters.DropState++
		return false
	}
	switch CheckDatagram(p, q.attr.QKey) {
	case WrongService:
		q.counters.DropService++
	case WrongPKey:
		q.counters.DropPKey++
	case WrongQKey:
		q.counters.DropQKey++
	default:
		return true
	}
	return false
}

// store places the route header and the payload in the receive.
func (q *Datagrams) store(at, from netip.Addr, p *wire.Packet) abi.WCStatus {
	r := &q.rsp.recv
	if q.rsp.recvLen < uint64(wire.GRHLen+len(p.Payload)) {
		return abi.WCLocLenErr // IBA 11.6.2
	}
	grh := routeHeader(q.grh[:0], from, at, p)
	empty := len(p.Payload) == 0
	err := q.cfg.Regions.Scatter(q.cfg.PD, r.SGE, 0, grh, empty)
	if err == nil && !empty {
		err = q.cfg.Regions.Scatter(q.cfg.PD, r.SGE, wire.GRHLen, p.Payload, true)
	}
	if err != nil {
		return abi.WCLocProtErr
	}
	return abi.WCSuccess
}
