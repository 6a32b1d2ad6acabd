package soak

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/virtual"
)

func (m *unreliableMessage) isWrite() bool {
	return m.wr.Opcode == abi.WRRDMAWrite || m.wr.Opcode == abi.WRRDMAWriteWithImm
}

func (m *unreliableMessage) hasImm() bool {
	return m.wr.Opcode == abi.WRSendWithImm || m.wr.Opcode == abi.WRRDMAWriteWithImm
}

// length is what a WRITE announces, and what is sent unless the request fails.
func (m *unreliableMessage) length() int { return len(m.wr.Inline) + int(mem.ListLength(m.wr.SGE)) }

func (m *unreliableMessage) packets(mtu int) int { return packetsOf(m.length(), mtu) }

// part is the payload of a packet.
func (m *unreliableMessage) part(i, mtu int) []byte {
	return m.payload[i*mtu : min((i+1)*mtu, m.length())]
}

// wcOpcode is the opcode of its completion.
func (m *unreliableMessage) wcOpcode() abi.WCOpcode {
	switch {
	case m.isWrite():
		return abi.WCRDMAWrite
	case m.wr.Opcode == abi.WRRDMARead:
		return abi.WCRDMARead
	}
	return abi.WCSend
}

// move changes the state, which must be allowed.
func (e *unreliableEnd) move(to abi.QPState, a engine.Attr, mask abi.QPAttrMask) error {
	if err := e.Modify(e.run.world.Now(), to, &a, mask); err != nil {
		return err
	}
	e.state = to
	switch to {
	case abi.QPSErr:
		e.fail(nil)
	case abi.QPSReset: // what was posted is forgotten; the program takes its receives back
		e.posted, e.begun, e.waiting, e.failed, e.during, e.held = nil, 0, nil, nil, nil, nil
		e.receives.Clear()
	}
	return nil
}

// fail expects the move to ERR, for a send or for another cause. The receive
// that is held is flushed first.
func (e *unreliableEnd) fail(m *unreliableMessage) {
	e.state, e.failed, e.during = abi.QPSErr, m, nil
	if e.held != nil {
		e.flushed("flushed receive of half a message")
		e.expect = append(e.expect, receiveFailed(e.held, abi.WCWRFlushErr))
		e.held = nil
	}
}

func (e *unreliableEnd) flushed(what string) {
	e.counters.Flushed++
	e.run.reached[what]++
}

// pump lets the queue pair send, and holds packets and completions against what
// they must be.
func (e *unreliableEnd) pump() error {
	if err := e.sendAll(e.run.world.Now(), e.checkPacket); err != nil {
		return err
	}
	if m := e.nextPacket(); m != nil {
		return fmt.Errorf("request %d is not sent", m.wr.ID)
	}
	return e.settle()
}

// nextPacket returns the request whose packet comes next, or nil.
func (e *unreliableEnd) nextPacket() *unreliableMessage {
	if e.state != abi.QPSRTS || len(e.posted) == 0 {
		return nil
	}
	m := e.posted[0]
	if m.status != abi.WCSuccess && e.begun == m.good {
		e.counters.LocalErrors++
		e.run.reached[fmt.Sprintf("send with status %v", m.status)]++
		e.fail(m)
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
	mtu := e.run.mtu.Bytes()
	if e.begun == 0 {
		m.payload = slices.Clone(m.wr.Inline)
		if m.wr.Flags&abi.SendInline == 0 {
			m.payload = slices.Clone(gather(e.arena.want, m.spans))
		}
	}
	head, payload := e.head(m), m.part(e.begun, mtu)
	if pkt.Peer != netip.AddrPortFrom(e.peer.node.Addr, wire.Port) || !bytes.Equal(pkt.Head, head) || !bytes.Equal(pkt.Payload, payload) {
		return fmt.Errorf("request %d sends headers %x and %d bytes to %v, must be %x and %d bytes", m.wr.ID, pkt.Head, len(pkt.Payload), pkt.Peer, head, len(payload))
	}
	e.run.sent[unreliableKey{e.peer.qpn, wire.PSN(e.number & uint64(wire.MaxPSN))}] = unreliablePacket{e.number, m, e.begun}
	e.number++
	e.begun++
	e.counters.SentPkts++
	e.counters.SentBytes += uint64(len(payload))
	e.run.reached["sent"]++
	if e.begun < m.packets(mtu) {
		return nil
	}
	e.posted, e.begun = e.posted[1:], 0
	if m.isWrite() {
		e.counters.Writes++
	} else {
		e.counters.Sends++
	}
	e.expect = append(e.expect, engine.Completion{
		ID: m.wr.ID, Opcode: m.wcOpcode(), Silent: !e.sigAll && m.wr.Flags&abi.SendSignaled == 0,
	})
	return nil
}

// head is the headers of the next packet of the oldest request.
func (e *unreliableEnd) head(m *unreliableMessage) []byte {
	mtu := e.run.mtu.Bytes()
	first, last := e.begun == 0, e.begun+1 == m.packets(mtu)
	op := [2][2]wire.Opcode{{wire.UCSendMiddle, wire.UCSendLast}, {wire.UCSendFirst, wire.UCSendOnly}}
	if m.isWrite() {
		op = [2][2]wire.Opcode{{wire.UCWriteMiddle, wire.UCWriteLast}, {wire.UCWriteFirst, wire.UCWriteOnly}}
	}
	at := map[bool]int{true: 1}
	want := wire.Packet{
		BTH: wire.BTH{
			Opcode: op[at[first]][at[last]], Solicited: last && m.wr.Flags&abi.SendSolicited != 0 && m.wr.Opcode != abi.WRRDMAWrite,
			MigReq: true, PKey: wire.DefaultPKey, DestQPN: e.peer.qpn, PSN: wire.PSN(e.number & uint64(wire.MaxPSN)),
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

// settle takes the completions, in ERR those of all that is outstanding.
func (e *unreliableEnd) settle() error {
	if e.state == abi.QPSErr {
		e.expectFlush()
	}
	return e.check()
}

// expectFlush expects the ends of all that is outstanding: sends, then receives
// (IBA 10.3.1.7).
func (e *unreliableEnd) expectFlush() {
	for _, m := range e.posted {
		c := engine.Completion{ID: m.wr.ID, Status: abi.WCWRFlushErr, Opcode: m.wcOpcode(), Solicited: true}
		if m == e.failed {
			c.Status = m.status
		} else {
			e.flushed("flushed send")
		}
		e.expect = append(e.expect, c)
	}
	for _, v := range e.waiting {
		e.flushed("flushed receive")
		e.expect = append(e.expect, receiveFailed(v, abi.WCWRFlushErr))
	}
	e.posted, e.begun, e.waiting = nil, 0, nil
}

// arrive gives a packet to its queue pair and checks what comes of it.
func (u *unreliableRun) arrive(from, at *virtual.Node, p *wire.Packet) {
	i := slices.IndexFunc(u.ends, func(e *unreliableEnd) bool { return e.qpn == p.DestQPN && e.node == at })
	if i < 0 {
		u.world.Fail(fmt.Errorf("a packet for %v comes to %s", p.DestQPN, at.Name))
		return
	}
	e := u.ends[i]
	err := e.predict(p)
	if err == nil {
		e.Receive(u.world.Now(), from.Addr, p)
		err = e.settle()
	}
	if err != nil {
		u.world.Fail(fmt.Errorf("%s/%v after a packet of %s, PSN %v: %w", at.Name, e.qpn, from.Name, p.PSN, err))
	}
}

// predict expects what must come of a packet, whatever it says itself.
func (e *unreliableEnd) predict(p *wire.Packet) error {
	c, u := &e.counters, e.run
	k, genuine := u.sent[unreliableKey{e.qpn, p.PSN}]
	verdict, forged := u.forged[p.PSN]
	if !genuine && !forged {
		return errors.New("no request asked for it")
	}
	drop := func(n *uint64, why string) {
		*n++
		u.reached["dropped for the "+why]++
	}
	switch {
	case e.state == abi.QPSReset || e.state == abi.QPSInit:
		drop(&c.DropState, "state")
	case verdict == engine.WrongService:
		drop(&c.DropService, "service")
	case verdict == engine.WrongPKey:
		drop(&c.DropPKey, "partition")
	case verdict == forgedAddress:
		drop(&c.DropPeer, "address")
	case e.state == abi.QPSErr:
		drop(&c.DropState, "state")
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
	c, u, m := &e.counters, e.run, k.message
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
	c, u, m, mtu := &e.counters, e.run, k.message, e.run.mtu.Bytes()
	last, data := k.index+1 == m.packets(mtu), m.part(k.index, mtu)
	if !m.isWrite() && k.index == 0 || m.isWrite() && last && m.hasImm() {
		switch {
		case e.held != nil:
			u.reached["receive of a dropped message is used"]++
		case len(e.waiting) == 0:
			c.DropNoReceive++
			u.reached["dropped without a receive"]++
			e.during = nil
			return
		default:
			e.held, e.waiting = e.waiting[0], e.waiting[1:]
			if e.held.status == abi.WCLocQPOpErr {
				e.failReceive(abi.WCLocQPOpErr)
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
			e.failReceive(abi.WCLocLenErr)
			return
		case v.status != abi.WCSuccess && len(data) > 0:
			e.failReceive(v.status)
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

// failReceive expects the failure of the receive that is held.
func (e *unreliableEnd) failReceive(s abi.WCStatus) {
	e.run.reached[fmt.Sprintf("receive with status %v", s)]++
	e.expect = append(e.expect, receiveFailed(e.held, s))
	e.held = nil
	e.fail(nil)
}

// end holds the network's account, and closes the run.
func (u *unreliableRun) end() error {
	for _, e := range u.ends {
		if err := errors.Join(e.pump(), e.checkEnd(len(e.posted))); err != nil {
			return fmt.Errorf("in the end, %s/%v: %w", e.node.Name, e.qpn, err)
		}
	}
	return u.world.Account()
}
