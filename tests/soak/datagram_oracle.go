package soak

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/virtual"
)

// moved notes the Q_Key.
func (e *datagramEnd) moved(to abi.QPState, a engine.Attr, mask abi.QPAttrMask) {
	if mask&abi.QPMaskQKey != 0 || to == abi.QPSReset {
		e.qkey = a.QKey
	}
}

// nextPacket completes the requests before the next that makes a packet.
func (e *datagramEnd) nextPacket() *message {
	for e.state == abi.QPSRTS && len(e.posted) > 0 {
		m := e.posted[0]
		switch {
		case m.status != abi.WCSuccess:
			e.failSend(m)
			return nil
		case m.length() <= e.datagrams.mtu:
			return m
		}
		e.counters.DropTooLong++
		e.completed(m)
	}
	return nil
}

// completed expects the success of the oldest send.
func (e *datagramEnd) completed(m *message) {
	e.next = e.next.Next()
	e.silentEnd.completed(m)
}

// checkPacket holds a packet against the oldest request.
func (e *datagramEnd) checkPacket(pkt *wire.Datagram) error {
	m := e.nextPacket()
	if m == nil {
		return errors.New("a packet is sent that no request asks for")
	}
	e.gather(m)
	want := wire.Packet{
		BTH: wire.BTH{
			Opcode: wire.UDSendOnly, Solicited: m.wr.Flags&abi.SendSolicited != 0, MigReq: true, PKey: wire.DefaultPKey,
			DestQPN: m.wr.To.QPN, PSN: e.next, Pad: uint8(-len(m.payload) & 3),
		},
		DETH: wire.DETH{QKey: m.wr.To.QKey, SrcQPN: e.qpn}, Payload: m.payload,
	}
	if m.wr.To.QKey>>31 == 1 { // IBA 10.2.5
		want.DETH.QKey = e.qkey
	}
	if m.wr.Opcode == abi.WRSendWithImm {
		want.Opcode, want.ImmDt.Data = wire.UDSendOnlyImm, binary.BigEndian.Uint32(m.wr.Imm[:])
	}
	head := want.AppendHeaders(nil)
	if pkt.Peer != m.wr.To.Peer || !bytes.Equal(pkt.Head, head) || !bytes.Equal(pkt.Payload, m.payload) {
		return fmt.Errorf("request %d sends headers %x and %d bytes to %v, must be %x and %d bytes to %v",
			m.wr.ID, pkt.Head, len(pkt.Payload), pkt.Peer, head, len(m.payload), m.wr.To.Peer)
	}
	key := datagramKey{e.node.Addr, e.qpn, e.next}
	if e.datagrams.sent[key] != nil {
		return fmt.Errorf("PSN %v is sent a second time", e.next)
	}
	e.datagrams.sent[key] = m
	e.silentEnd.sent(m.payload)
	e.completed(m)
	return nil
}

// predict expects what must come of the request that a packet was sent for,
// whatever the packet says.
func (e *datagramEnd) predict(from *virtual.Node, p *wire.Packet) error {
	d := e.datagrams
	m := d.sent[datagramKey{from.Addr, p.DETH.SrcQPN, p.PSN}]
	verdict, forged := d.forged[p.PSN]
	if m == nil && !forged {
		return errors.New("no request asked for it")
	}
	if m != nil && m.wr.To.QPN != e.qpn {
		return errors.New("it is for another queue pair")
	}
	if m != nil && p.DETH.QKey != e.qkey { // checked when it was sent
		verdict = engine.WrongQKey
	}
	c := &e.counters
	switch {
	case e.state != abi.QPSRTR && e.state != abi.QPSRTS && e.state != abi.QPSSQD:
		e.drop(&c.DropState, "for the state")
	case verdict == engine.WrongService:
		e.drop(&c.DropService, "for the service")
	case verdict == engine.WrongPKey:
		e.drop(&c.DropPKey, "for the partition")
	case verdict == engine.WrongQKey:
		e.drop(&c.DropQKey, "for the Q_Key")
	default:
		e.predictMessage(from, m)
	}
	return nil
}

// predictMessage expects the arrival of a message that the queue pair takes.
func (e *datagramEnd) predictMessage(from *virtual.Node, m *message) {
	c := &e.counters
	c.RcvdPkts++
	c.RcvdBytes += uint64(len(m.payload))
	if len(e.waiting) == 0 {
		e.drop(&c.DropNoReceive, "without a receive")
		return
	}
	v := e.waiting[0]
	e.waiting = e.waiting[1:]
	status := v.status
	if status != abi.WCLocQPOpErr && total(v.spans) < wire.GRHLen+len(m.payload) {
		status = abi.WCLocLenErr
	}
	if status != abi.WCSuccess {
		e.failReceive(v, status)
		return
	}
	behindIP := 8 /* UDP */ + wire.BTHLen + 8 /* DETH */ + (len(m.payload)+3)&^3 + wire.ICRCLen
	if m.hasImm() {
		behindIP += 4
	}
	grh := wire.GRH{Src: from.Addr, Dst: e.node.Addr, HopLimit: 64, NextHeader: 17, PayloadLen: uint16(behindIP)}
	scatter(e.arena.want, v.spans, append(grh.Append(nil), m.payload...))
	wc := engine.Completion{
		ID: v.wr.ID, Opcode: abi.WCRecv, ByteLen: uint32(wire.GRHLen + len(m.payload)), Flags: abi.WCGRH, SrcQPN: m.src,
		Recv: true, Solicited: m.wr.Flags&abi.SendSolicited != 0,
	}
	if m.hasImm() {
		wc.Flags, wc.Imm = wc.Flags|abi.WCWithImm, m.wr.Imm
	}
	c.Recvs++
	e.run.reached["received"]++
	e.expect = append(e.expect, wc)
}
