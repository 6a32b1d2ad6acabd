package soak

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/virtual"
)

func (m *message) packets(mtu int) int { return packetsOf(m.length(), mtu) }

// part is the payload of a packet.
func (m *message) part(i, mtu int) []byte {
	return m.payload[i*mtu : min((i+1)*mtu, m.length())]
}

// moved forgets the message that was coming.
func (e *unreliableEnd) moved(to abi.QPState, _ engine.Attr, _ abi.QPAttrMask) {
	if to == abi.QPSErr || to == abi.QPSReset {
		e.during = nil
	}
}

// nextPacket returns the request whose packet comes next, or nil.
func (e *unreliableEnd) nextPacket() *message {
	if e.state != abi.QPSRTS || len(e.posted) == 0 {
		return nil
	}
	m := e.posted[0]
	if m.status != abi.WCSuccess && e.begun == m.good {
		e.during = nil
		e.failSend(m)
		return nil
	}
	return m
}

// checkPacket holds a packet against the oldest request, which completes with
// its last one.
func (e *unreliableEnd) checkPacket(pkt *wire.Datagram) error {
	m := e.nextPacket()
	if m == nil {
		return errors.New("a packet is sent that no request asks for")
	}
	mtu := e.connections.mtu.Bytes()
	if e.begun == 0 {
		e.gather(m)
	}
	head, payload := e.head(m), m.part(e.begun, mtu)
	if pkt.Peer != netip.AddrPortFrom(e.peer.node.Addr, wire.Port) || !bytes.Equal(pkt.Head, head) || !bytes.Equal(pkt.Payload, payload) {
		return fmt.Errorf("request %d sends headers %x and %d bytes to %v, must be %x and %d bytes", m.wr.ID, pkt.Head, len(pkt.Payload), pkt.Peer, head, len(payload))
	}
	e.connections.sent[unreliableKey{e.peer.qpn, e.psn()}] = unreliablePacket{e.number, m, e.begun}
	e.number++
	e.begun++
	e.sent(payload)
	if e.begun == m.packets(mtu) {
		e.completed(m)
	}
	return nil
}

// head is the headers of the next packet of the oldest request.
func (e *unreliableEnd) head(m *message) []byte {
	mtu := e.connections.mtu.Bytes()
	first, last := e.begun == 0, e.begun+1 == m.packets(mtu)
	op := [2][2]wire.Opcode{{wire.UCSendMiddle, wire.UCSendLast}, {wire.UCSendFirst, wire.UCSendOnly}}
	if m.isWrite() {
		op = [2][2]wire.Opcode{{wire.UCWriteMiddle, wire.UCWriteLast}, {wire.UCWriteFirst, wire.UCWriteOnly}}
	}
	at := map[bool]int{true: 1}
	want := wire.Packet{
		BTH: wire.BTH{
			Opcode: op[at[first]][at[last]], Solicited: last && m.wr.Flags&abi.SendSolicited != 0 && m.wr.Opcode != abi.WRRDMAWrite,
			MigReq: true, PKey: wire.DefaultPKey, DestQPN: e.peer.qpn, PSN: e.psn(),
			Pad: uint8(-len(m.part(e.begun, mtu)) & 3),
		},
		RETH: wire.RETH{VA: m.wr.RemoteAddr, RKey: m.wr.RKey, DMALen: uint32(m.length())},
	}
	if last && m.hasImm() { // IBA 9.2: the opcodes with an immediate follow those without
		want.Opcode++
		want.ImmDt.Data = binary.BigEndian.Uint32(m.wr.Imm[:])
	}
	return want.AppendHeaders(nil)
}

// predict expects what must come of a packet, whatever it says itself.
func (e *unreliableEnd) predict(_ *virtual.Node, p *wire.Packet) error {
	c, u := &e.counters, e.connections
	k, genuine := u.sent[unreliableKey{e.qpn, p.PSN}]
	verdict, forged := u.forged[p.PSN]
	if !genuine && !forged {
		return errors.New("no request asked for it")
	}
	switch {
	case e.state == abi.QPSReset || e.state == abi.QPSInit:
		e.drop(&c.DropState, "for the state")
	case verdict == engine.WrongService:
		e.drop(&c.DropService, "for the service")
	case verdict == engine.WrongPKey:
		e.drop(&c.DropPKey, "for the partition")
	case verdict == forgedAddress:
		e.drop(&c.DropPeer, "for the address")
	case e.state == abi.QPSErr:
		e.drop(&c.DropState, "for the state")
	default:
		c.RcvdPkts++
		c.RcvdBytes += uint64(len(k.message.part(k.index, u.mtu.Bytes())))
		e.predictPacket(k)
	}
	return nil
}

// predictPacket expects the outcome of a packet of the peer. A message of which
// one is missing, or that is refused, has no effect from there on. The receive
// that it took is for the next message (IBA 9.8.2.2).
func (e *unreliableEnd) predictPacket(k unreliablePacket) {
	c, u, m := &e.counters, e.connections, k.message
	if k.number < e.next {
		c.DuplicateRequest++
		u.reached["doubled or overtaken"]++
		return
	}
	gap := k.number > e.next
	if gap {
		c.OutOfSeqRequest++
		u.reached["gap"]++
	}
	e.next = k.number + 1
	switch {
	case k.index == 0:
		e.during = m
	case gap || e.during != m:
		e.during = nil
	}
	if e.during == nil {
		u.reached["rest of a dropped message"]++
		return
	}
	if !m.isWrite() || e.access&abi.AccessRemoteWrite != 0 {
		e.predictData(k)
		return
	}
	e.refuse("no access")
}

// refuse expects that the present message is dropped.
func (e *unreliableEnd) refuse(why string) {
	e.run.reached["refused: "+why]++
	e.counters.DropRequest++
	e.during = nil
}

// predictData expects the bytes of a packet of a message that is whole so far,
// and the message's end.
func (e *unreliableEnd) predictData(k unreliablePacket) {
	c, u, m, mtu := &e.counters, e.connections, k.message, e.connections.mtu.Bytes()
	last, data := k.index+1 == m.packets(mtu), m.part(k.index, mtu)
	if !m.isWrite() && k.index == 0 || m.isWrite() && last && m.hasImm() {
		switch {
		case e.held != nil:
			u.reached["receive of a dropped message is used"]++
		case len(e.waiting) == 0:
			e.drop(&c.DropNoReceive, "without a receive")
			e.during = nil
			return
		default:
			e.held, e.waiting = e.waiting[0], e.waiting[1:]
			if e.held.status == abi.WCLocQPOpErr {
				e.failHeld(abi.WCLocQPOpErr)
				return
			}
		}
	}
	if m.isWrite() {
		if len(data) > 0 && (m.region.gone || m.region.key != m.wr.RKey || m.bug) {
			e.refuse("no such memory")
			return
		}
		copy(e.arena.want[m.target.at+k.index*mtu:], data)
	} else {
		v, done := e.held, k.index*mtu
		switch {
		case done+len(data) > total(v.spans):
			e.failHeld(abi.WCLocLenErr)
			return
		case v.status != abi.WCSuccess && len(data) > 0:
			e.failHeld(v.status)
			return
		}
		scatter(e.arena.want, v.spans, m.payload[:done+len(data)])
	}
	if !last {
		return
	}
	e.during = nil
	u.reached["arrived whole"]++
	if m.isWrite() && !m.hasImm() {
		return
	}
	wc := engine.Completion{ID: e.held.wr.ID, Opcode: abi.WCRecv, ByteLen: uint32(m.length()), Recv: true, Solicited: m.wr.Flags&abi.SendSolicited != 0}
	if m.isWrite() {
		wc.Opcode = abi.WCRecvRDMAWithImm
	}
	if m.hasImm() {
		wc.Flags, wc.Imm = abi.WCWithImm, m.wr.Imm
	}
	e.held = nil
	c.Recvs++
	e.expect = append(e.expect, wc)
}

// failHeld expects the failure of the receive that is held.
func (e *unreliableEnd) failHeld(s abi.WCStatus) {
	v := e.held
	e.held, e.during = nil, nil
	e.failReceive(v, s)
}
