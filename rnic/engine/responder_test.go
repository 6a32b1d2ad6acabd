package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// req makes a request packet to b with a PSN relative to what b expects.
func (n *network) req(op wire.Opcode, d int, payload int, edit ...func(*wire.Packet)) *wire.Packet {
	p := &wire.Packet{Payload: make([]byte, payload)}
	p.BTH = wire.BTH{Opcode: op, PKey: wire.DefaultPKey, DestQPN: n.b.qp.cfg.QPN, PSN: n.b.qp.rsp.next.psn().Add(d), AckReq: true}
	p.Pad = wire.PadLen(payload)
	p.RETH = wire.RETH{VA: n.b.va(0), RKey: n.b.key(), DMALen: uint32(payload)}
	p.AtomicETH = wire.AtomicETH{VA: n.b.va(0), RKey: n.b.key()}
	fill(p.Payload, 1)
	for _, e := range edit {
		e(p)
	}
	return p
}

// answer hands packets to b and returns what b sends then.
func (n *network) answer(ps ...*wire.Packet) []wire.Packet {
	for _, p := range ps {
		n.b.qp.Receive(n.now, n.a.addr.Addr(), p)
	}
	n.b.sent = nil
	n.pump(n.b)
	n.collect(n.b)
	n.fly = nil
	return n.b.sent
}

func dmalen(v uint32) func(*wire.Packet) { return func(p *wire.Packet) { p.RETH.DMALen = v } }
func rkey(v uint32) func(*wire.Packet) {
	return func(p *wire.Packet) { p.RETH.RKey, p.AtomicETH.RKey = v, v }
}
func addr(v uint64) func(*wire.Packet) {
	return func(p *wire.Packet) { p.RETH.VA, p.AtomicETH.VA = v, v }
}

const (
	nakSeq    = wire.Syndrome(0x60)
	nakInv    = wire.Syndrome(0x61)
	nakAccess = wire.Syndrome(0x62)
	nakOp     = wire.Syndrome(0x63)
)

// IBA 9.7.4.1: every way to refuse a request, with the NAK and the status of
// the receive that is posted (0 with flushed false: untouched).
func TestRefusals(t *testing.T) {
	type packets []*wire.Packet
	without := func(f abi.AccessFlags) func(int, *Attr) {
		return func(_ int, a *Attr) { a.Access &^= f }
	}
	begun := func(n *network) packets { return packets{n.req(wire.RCWriteFirst, 0, 256, dmalen(300))} }
	const flush = abi.WCWRFlushErr
	for _, c := range []struct {
		name string
		attr func(int, *Attr)
		pre  func(n *network) packets // succeed
		bad  func(n *network) *wire.Packet
		nak  wire.Syndrome
		recv abi.WCStatus // of the receive posted
	}{
		// 9.7.4.1.2, opcode sequence
		{"SEND Middle first", nil, nil, func(n *network) *wire.Packet { return n.req(wire.RCSendMiddle, 0, 256) }, nakInv, flush},
		{"SEND Last first", nil, nil, func(n *network) *wire.Packet { return n.req(wire.RCSendLast, 0, 1) }, nakInv, flush},
		{"WRITE Middle first", nil, nil, func(n *network) *wire.Packet { return n.req(wire.RCWriteMiddle, 0, 256) }, nakInv, flush},
		{"WRITE Last with immediate first", nil, nil, func(n *network) *wire.Packet { return n.req(wire.RCWriteLastImm, 0, 1) }, nakInv, flush},
		{"SEND First within WRITE", nil, begun,
			func(n *network) *wire.Packet { return n.req(wire.RCSendFirst, 1, 256) }, nakInv, flush},
		{"SEND Last within WRITE", nil, begun,
			func(n *network) *wire.Packet { return n.req(wire.RCSendLast, 1, 44) }, nakInv, flush},
		{"READ within WRITE", nil, begun,
			func(n *network) *wire.Packet { return n.req(wire.RCReadRequest, 1, 0) }, nakInv, flush},
		{"WRITE Last within SEND, as if of the WRITE before", nil,
			func(n *network) packets {
				return packets{
					n.req(wire.RCWriteFirst, 0, 256, dmalen(300)), n.req(wire.RCWriteLast, 1, 44),
					n.req(wire.RCSendFirst, 2, 256),
				}
			},
			func(n *network) *wire.Packet { return n.req(wire.RCWriteLast, 3, 44) }, nakInv, abi.WCRemInvReqErr},
		{"WRITE Middle after Last", nil,
			func(n *network) packets { return packets{n.req(wire.RCWriteOnly, 0, 10)} },
			func(n *network) *wire.Packet { return n.req(wire.RCWriteMiddle, 1, 256) }, nakInv, flush},

		// 9.7.4.1.3, operation supported and enabled
		{"ATOMIC WRITE", nil, nil, func(n *network) *wire.Packet { return n.req(wire.RCAtomicWrite, 0, 8) }, nakInv, flush},
		{"FLUSH", nil, nil, func(n *network) *wire.Packet { return n.req(wire.RCFlush, 0, 0) }, nakInv, flush},
		{"WRITE not enabled", without(abi.AccessRemoteWrite), nil, func(n *network) *wire.Packet { return n.req(wire.RCWriteOnly, 0, 10) }, nakInv, flush},
		{"READ not enabled", without(abi.AccessRemoteRead), nil, func(n *network) *wire.Packet { return n.req(wire.RCReadRequest, 0, 0, dmalen(10)) }, nakInv, flush},
		{"atomic not enabled", without(abi.AccessRemoteAtomic), nil, func(n *network) *wire.Packet { return n.req(wire.RCFetchAdd, 0, 0) }, nakInv, flush},
		{"not enabled is noticed before the key", without(abi.AccessRemoteRead), nil,
			func(n *network) *wire.Packet { return n.req(wire.RCReadRequest, 0, 0, dmalen(10), rkey(1)) }, nakInv, flush},

		// 9.7.4.1.4, resources
		{"READ without resources", func(_ int, a *Attr) { a.MaxDestRdAtomic = 0 }, nil,
			func(n *network) *wire.Packet { return n.req(wire.RCReadRequest, 0, 0, dmalen(10)) }, nakInv, flush},
		{"more READs than resources", func(_ int, a *Attr) { a.MaxDestRdAtomic = 2 },
			func(n *network) packets {
				return packets{n.req(wire.RCReadRequest, 0, 0, dmalen(10)), n.req(wire.RCReadRequest, 1, 0, dmalen(10))}
			},
			func(n *network) *wire.Packet { return n.req(wire.RCReadRequest, 2, 0, dmalen(10)) }, nakInv, flush},

		// 9.7.4.1.6, length
		{"SEND First short", nil, nil, func(n *network) *wire.Packet { return n.req(wire.RCSendFirst, 0, 255) }, nakInv, abi.WCRemInvReqErr},
		{"SEND Only longer than the MTU", nil, nil, func(n *network) *wire.Packet { return n.req(wire.RCSendOnly, 0, 257) }, nakInv, abi.WCRemInvReqErr},
		{"SEND Last empty", nil,
			func(n *network) packets { return packets{n.req(wire.RCSendFirst, 0, 256)} },
			func(n *network) *wire.Packet { return n.req(wire.RCSendLast, 1, 0) }, nakInv, abi.WCRemInvReqErr},
		{"SEND longer than the receive", nil, nil, func(n *network) *wire.Packet {
			n.b.recv.list[0].SGE[0].Length = 100
			return n.req(wire.RCSendOnly, 0, 101)
		}, nakInv, abi.WCLocLenErr},
		{"WRITE First short", nil, nil, func(n *network) *wire.Packet { return n.req(wire.RCWriteFirst, 0, 255, dmalen(300)) }, nakInv, flush},
		{"WRITE First that is all", nil, nil, func(n *network) *wire.Packet { return n.req(wire.RCWriteFirst, 0, 256) }, nakInv, flush},
		{"WRITE Only shorter than announced", nil, nil, func(n *network) *wire.Packet { return n.req(wire.RCWriteOnly, 0, 10, dmalen(11)) }, nakInv, flush},
		{"WRITE Only longer than announced", nil, nil, func(n *network) *wire.Packet { return n.req(wire.RCWriteOnly, 0, 10, dmalen(9)) }, nakInv, flush},
		{"WRITE Last empty", nil, begun,
			func(n *network) *wire.Packet { return n.req(wire.RCWriteLast, 1, 0) }, nakInv, flush},
		{"WRITE Last too long", nil, begun,
			func(n *network) *wire.Packet { return n.req(wire.RCWriteLast, 1, 45) }, nakInv, flush},
		{"WRITE Middle beyond the end", nil, begun,
			func(n *network) *wire.Packet { return n.req(wire.RCWriteMiddle, 1, 256) }, nakInv, flush},
		{"WRITE over 2 GiB", nil, nil, func(n *network) *wire.Packet { return n.req(wire.RCWriteFirst, 0, 256, dmalen(MaxMessage+1)) }, nakInv, flush},
		{"READ over 2 GiB", nil, nil, func(n *network) *wire.Packet { return n.req(wire.RCReadRequest, 0, 0, dmalen(MaxMessage+1)) }, nakInv, flush},
		{"READ with payload", nil, nil, func(n *network) *wire.Packet { return n.req(wire.RCReadRequest, 0, 4) }, nakInv, flush},
		{"atomic misaligned", nil, nil, func(n *network) *wire.Packet { return n.req(wire.RCFetchAdd, 0, 0, addr(n.b.va(4))) }, nakInv, flush},
		{"atomic with payload", nil, nil, func(n *network) *wire.Packet { return n.req(wire.RCCompareSwap, 0, 4) }, nakInv, flush},
		{"length before key", nil, nil, func(n *network) *wire.Packet { return n.req(wire.RCWriteOnly, 0, 10, dmalen(11), rkey(1)) }, nakInv, flush},

		// 9.7.4.1.5, R_Key
		{"WRITE unknown key", nil, nil, func(n *network) *wire.Packet { return n.req(wire.RCWriteOnly, 0, 10, rkey(1)) }, nakAccess, flush},
		{"WRITE First unknown key", nil, nil, func(n *network) *wire.Packet { return n.req(wire.RCWriteFirst, 0, 256, dmalen(300), rkey(1)) }, nakAccess, flush},
		{"WRITE whose end is outside", nil, nil, func(n *network) *wire.Packet { return n.req(wire.RCWriteFirst, 0, 256, dmalen(regionLen+1)) }, nakAccess, flush},
		{"WRITE below", nil, nil, func(n *network) *wire.Packet { return n.req(wire.RCWriteOnly, 0, 10, addr(n.b.va(0)-1)) }, nakAccess, flush},
		{"WRITE wrapping", nil, nil, func(n *network) *wire.Packet { return n.req(wire.RCWriteOnly, 0, 10, addr(^uint64(0)-4)) }, nakAccess, flush},
		{"READ unknown key", nil, nil, func(n *network) *wire.Packet { return n.req(wire.RCReadRequest, 0, 0, dmalen(10), rkey(1)) }, nakAccess, flush},
		{"READ outside", nil, nil, func(n *network) *wire.Packet {
			return n.req(wire.RCReadRequest, 0, 0, dmalen(2), addr(n.b.va(regionLen-1)))
		}, nakAccess, flush},
		{"atomic unknown key", nil, nil, func(n *network) *wire.Packet { return n.req(wire.RCFetchAdd, 0, 0, rkey(1)) }, nakAccess, flush},
		{"WRITE with immediate, unknown key", nil, nil, func(n *network) *wire.Packet { return n.req(wire.RCWriteOnlyImm, 0, 10, rkey(1)) }, nakAccess, flush},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newPair(t, cfg{mtu: abi.MTU256, psnA: 0xffffff, attr: c.attr})
			n.b.postRecv(7, 0, 400)
			n.b.postRecv(8, 0, 400)
			var pre packets
			if c.pre != nil {
				pre = c.pre(n)
			}
			bad := c.bad(n)
			before := append([]byte{}, n.b.mem[1000:]...)
			for _, p := range pre {
				n.b.qp.Receive(n.now, n.a.addr.Addr(), p)
			}
			out := n.answer(bad)
			require.NotEmpty(t, out)
			last := out[len(out)-1]
			require.Equal(t, wire.RCAck, last.Opcode)
			require.Equal(t, c.nak, last.AETH.Syndrome)
			require.Equal(t, bad.PSN, last.PSN)
			require.EqualValues(t, n.b.qp.rsp.msn, last.AETH.MSN)
			require.Equal(t, abi.QPSErr, n.b.qp.State())
			require.Equal(t, []abi.WCStatus{c.recv, flush}, statuses(n.b.wcs))
			require.EqualValues(t, 7, n.b.wcs[0].ID)
			require.Equal(t, before, n.b.mem[1000:])

			require.Empty(t, n.answer(n.req(wire.RCWriteOnly, 5, 4)), "ERR answers nothing else")
			require.Len(t, n.answer(bad), 1, "a repeated request gets its NAK again")
		})
	}
}

// The region of a READ may go while it is being answered, that of a WRITE in
// the middle of the message.
func TestDeregisteredInTheMiddle(t *testing.T) {
	n := newPair(t, cfg{mtu: abi.MTU256})
	read := n.req(wire.RCReadRequest, 0, 0, dmalen(256*8))
	n.b.qp.Receive(n.now, n.a.addr.Addr(), read)
	b := NewBatch(3)
	n.b.qp.Transmit(n.now, b)
	require.NoError(t, n.b.tab.Deregister(n.b.key()))
	out := n.answer()
	require.Len(t, out, 1)
	require.Equal(t, nakOp, out[0].AETH.Syndrome)
	require.Equal(t, read.PSN.Add(3), out[0].PSN)
	require.Equal(t, abi.QPSErr, n.b.qp.State())

	n = newPair(t, cfg{mtu: abi.MTU256})
	first, last := n.req(wire.RCWriteFirst, 0, 256, dmalen(300)), n.req(wire.RCWriteLast, 1, 44)
	require.Len(t, n.answer(first), 1)
	require.NoError(t, n.b.tab.Deregister(n.b.key()))
	out = n.answer(last)
	require.Equal(t, nakAccess, out[0].AETH.Syndrome)
	require.Equal(t, last.PSN, out[0].PSN)
}

// A READ that cannot be answered any more comes before the request behind it
// that was refused already.
func TestTwoFailures(t *testing.T) {
	n := newPair(t, cfg{mtu: abi.MTU256})
	read, bad := n.req(wire.RCReadRequest, 0, 0, dmalen(600)), n.req(wire.RCWriteOnly, 3, 8, rkey(1))
	n.b.qp.Receive(n.now, n.a.addr.Addr(), read)
	n.b.qp.Receive(n.now, n.a.addr.Addr(), bad)
	require.Equal(t, abi.QPSErr, n.b.qp.State())
	require.NoError(t, n.b.tab.Deregister(n.b.key()))
	out := n.answer()
	require.Len(t, out, 1)
	require.Equal(t, nakOp, out[0].AETH.Syndrome)
	require.Equal(t, read.PSN, out[0].PSN)
}

// An atomic on a word whose memory is not aligned, though its address is.
func TestAtomicOnOddMemory(t *testing.T) {
	n := newPair(t, cfg{})
	odd, err := n.b.tab.Register(testPD, mem.Near(n.b.mem[4:100]), 0x900000, allAccess)
	require.NoError(t, err)
	out := n.answer(n.req(wire.RCFetchAdd, 0, 0, addr(0x900000), rkey(odd.Key())))
	require.Len(t, out, 1)
	require.Equal(t, nakOp, out[0].AETH.Syndrome)
	require.Equal(t, abi.QPSErr, n.b.qp.State())
}
