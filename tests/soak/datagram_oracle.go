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

// move changes the state, which must be allowed.
func (e *datagramEnd) move(to abi.QPState, a engine.Attr, mask abi.QPAttrMask) error {
	if err := e.Modify(e.run.world.Now(), to, &a, mask); err != nil {
		return err
	}
	e.state = to
	if mask&abi.QPMaskQKey != 0 {
		e.qkey = a.QKey
	}
	if to == abi.QPSReset { // what was posted is forgotten; the program takes its receives back
		e.qkey, e.posted, e.waiting, e.failed = 0, nil, nil, nil
		e.receives.Clear()
	}
	return nil
}

// pump lets the queue pair send, and holds packets and completions against what
// they must be.
func (e *datagramEnd) pump() error {
	if err := e.sendAll(e.run.world.Now(), e.checkPacket); err != nil {
		return err
	}
	if m := e.nextPacket(); m != nil {
		return fmt.Errorf("request %d is not sent", m.wr.ID)
	}
	return e.settle()
}

// nextPacket completes the requests before the next that makes a packet and
// returns that, or nil if there is none.
func (e *datagramEnd) nextPacket() *datagram {
	for e.state == abi.QPSRTS && len(e.posted) > 0 {
		m := e.posted[0]
		switch {
		case m.status != abi.WCSuccess:
			e.counters.LocalErrors++
			e.state, e.failed = abi.QPSErr, m
			return nil
		case m.length() <= e.run.mtu:
			return m
		}
		e.counters.DropTooLong++
		e.completed(m)
	}
	return nil
}

func (m *datagram) length() int { return len(m.wr.Inline) + total(m.spans) }

// completed expects the success of the oldest send.
func (e *datagramEnd) completed(m *datagram) {
	e.posted = e.posted[1:]
	e.psn = e.psn.Next()
	e.counters.Sends++
	e.expect = append(e.expect, engine.Completion{
		ID: m.wr.ID, Opcode: abi.WCSend, Silent: !e.sigAll && m.wr.Flags&abi.SendSignaled == 0,
	})
}

// checkPacket holds a packet against the oldest request.
func (e *datagramEnd) checkPacket(pkt *wire.Datagram) error {
	m := e.nextPacket()
	if m == nil {
		return errors.New("a packet is sent that no request asks for")
	}
	m.payload = bytes.Clone(m.wr.Inline)
	if m.wr.Flags&abi.SendInline == 0 {
		m.payload = bytes.Clone(gather(e.arena.want, m.spans))
	}
	want := wire.Packet{
		BTH: wire.BTH{
			Opcode: wire.UDSendOnly, Solicited: m.wr.Flags&abi.SendSolicited != 0, MigReq: true, PKey: wire.DefaultPKey,
			DestQPN: m.wr.To.QPN, PSN: e.psn, Pad: uint8(-len(m.payload) & 3),
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
	key := datagramKey{e.node.Addr, e.qpn, e.psn}
	if e.run.sent[key] != nil {
		return fmt.Errorf("PSN %v is sent a second time", e.psn)
	}
	e.run.sent[key] = m
	e.counters.SentPkts++
	e.counters.SentBytes += uint64(len(m.payload))
	e.run.reached["sent"]++
	e.completed(m)
	return nil
}

// settle takes the completions, in ERR those of all that is outstanding.
func (e *datagramEnd) settle() error {
	if e.state == abi.QPSErr {
		e.expectFlush()
	}
	return e.check()
}

// expectFlush expects the ends of all that is outstanding: sends, then
// receives (IBA 10.3.1.7).
func (e *datagramEnd) expectFlush() {
	for _, m := range e.posted {
		c := engine.Completion{ID: m.wr.ID, Status: abi.WCWRFlushErr, Opcode: abi.WCSend, Solicited: true}
		if m.wr.Opcode == abi.WRRDMAWrite {
			c.Opcode = abi.WCRDMAWrite
		}
		if m == e.failed {
			c.Status = m.status
			e.run.reached[fmt.Sprintf("send with status %v", m.status)]++
		} else {
			e.counters.Flushed++
			e.run.reached["flushed send"]++
		}
		e.expect = append(e.expect, c)
	}
	for _, v := range e.waiting {
		e.counters.Flushed++
		e.run.reached["flushed receive"]++
		e.expect = append(e.expect, receiveFailed(v, abi.WCWRFlushErr))
	}
	e.posted, e.waiting = nil, nil
}

// arrive gives a packet to its queue pair and checks what comes of it.
func (d *datagramRun) arrive(from, at *virtual.Node, p *wire.Packet) {
	e := d.byQPN[p.DestQPN]
	if e == nil || e.node != at {
		d.world.Fail(fmt.Errorf("a packet for %v comes to %s", p.DestQPN, at.Name))
		return
	}
	err := e.predict(from, p)
	if err == nil {
		err = e.settle()
	}
	if err != nil {
		d.world.Fail(fmt.Errorf("%s/%v after a packet of %s, PSN %v: %w", at.Name, e.qpn, from.Name, p.PSN, err))
	}
}

// predict gives a packet to the queue pair and expects what must come of the
// request that it was sent for, whatever the packet says.
func (e *datagramEnd) predict(from *virtual.Node, p *wire.Packet) error {
	d := e.run
	m := d.sent[datagramKey{from.Addr, p.DETH.SrcQPN, p.PSN}]
	verdict, forged := d.forged[p.PSN]
	if m == nil && !forged {
		return errors.New("no request asked for it")
	}
	if m != nil && m.wr.To.QPN != e.qpn {
		return errors.New("it is for another queue pair")
	}
	defer e.Receive(d.world.Now(), from.Addr, p)
	if m != nil && p.DETH.QKey != e.qkey { // checked when it was sent
		verdict = engine.WrongQKey
	}
	c := &e.counters
	switch {
	case e.state != abi.QPSRTR && e.state != abi.QPSRTS && e.state != abi.QPSSQD:
		c.DropState++
		d.reached["dropped for the state"]++
	case verdict == engine.WrongService:
		c.DropService++
		d.reached["dropped for the service"]++
	case verdict == engine.WrongPKey:
		c.DropPKey++
		d.reached["dropped for the partition"]++
	case verdict == engine.WrongQKey:
		c.DropQKey++
		d.reached["dropped for the Q_Key"]++
	default:
		e.predictMessage(from, m)
	}
	return nil
}

// predictMessage expects the arrival of a message that the queue pair takes.
func (e *datagramEnd) predictMessage(from *virtual.Node, m *datagram) {
	c, d := &e.counters, e.run
	c.RcvdPkts++
	c.RcvdBytes += uint64(len(m.payload))
	if len(e.waiting) == 0 {
		c.DropNoReceive++
		d.reached["dropped without a receive"]++
		return
	}
	v := e.waiting[0]
	e.waiting = e.waiting[1:]
	status := v.status
	if status != abi.WCLocQPOpErr && total(v.spans) < wire.GRHLen+len(m.payload) {
		status = abi.WCLocLenErr
	}
	if status != abi.WCSuccess {
		d.reached[fmt.Sprintf("receive with status %v", status)]++
		e.expect = append(e.expect, receiveFailed(v, status))
		e.state = abi.QPSErr
		return
	}
	hasImm := m.wr.Opcode == abi.WRSendWithImm
	behindIP := 8 /* UDP */ + wire.BTHLen + 8 /* DETH */ + (len(m.payload)+3)&^3 + wire.ICRCLen
	if hasImm {
		behindIP += 4
	}
	grh := wire.GRH{Src: from.Addr, Dst: e.node.Addr, HopLimit: 64, NextHeader: 17, PayloadLen: uint16(behindIP)}
	scatter(e.arena.want, v.spans, append(grh.Append(nil), m.payload...))
	wc := engine.Completion{
		ID: v.wr.ID, Opcode: abi.WCRecv, ByteLen: uint32(wire.GRHLen + len(m.payload)), Flags: abi.WCGRH, SrcQPN: m.src,
		Recv: true, Solicited: m.wr.Flags&abi.SendSolicited != 0,
	}
	if hasImm {
		wc.Flags, wc.Imm = wc.Flags|abi.WCWithImm, m.wr.Imm
	}
	c.Recvs++
	d.reached["received"]++
	e.expect = append(e.expect, wc)
}

// end holds the network's account, and closes the run.
func (d *datagramRun) end() error {
	for _, e := range d.ends {
		if err := errors.Join(e.pump(), e.checkEnd(len(e.posted))); err != nil {
			return fmt.Errorf("in the end, %s/%v: %w", e.node.Name, e.qpn, err)
		}
	}
	return d.world.Account()
}
