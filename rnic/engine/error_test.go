package engine

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// The memory for an answer goes while the answer is under way.
func TestDeregisteredWhileAsking(t *testing.T) {
	for _, op := range []abi.WROpcode{abi.WRRDMARead, abi.WRAtomicFetchAndAdd} {
		n := newPair(t, cfg{})
		wr := n.read(1, 8)
		wr.Opcode = op
		n.post(n.a, wr)
		n.pump(n.a)
		require.NoError(t, n.a.tab.Deregister(n.a.key()))
		n.run(0)
		require.Equal(t, []abi.WCStatus{abi.WCLocProtErr}, statuses(n.a.wcs))
	}
}

// The ACK of a request is lost with the fatal NAK of the one behind it: the
// repetition of either is answered with the NAK.
func TestFatalNAKLostWithAck(t *testing.T) {
	n := newPair(t, cfg{})
	good, bad, next := n.req(wire.RCWriteOnly, 0, 8), n.req(wire.RCSendMiddle, 1, 1024), n.req(wire.RCWriteOnly, 2, 8)
	first := n.answer(good, bad)
	require.Len(t, first, 1)
	require.Equal(t, bad.PSN, first[0].PSN)
	require.Equal(t, first, n.answer(good))
	require.Equal(t, first, n.answer(bad))
	require.Empty(t, n.answer(next))
}

// A NAK that passes a READ whose answer was lost: the READ can not be completed
// any more and is flushed, the refused request has the NAK's status.
func TestFatalNAKBehindLostRead(t *testing.T) {
	n := newPair(t, cfg{})
	n.filter = func(from *host, p *wire.Packet) (int, Time) {
		if p.Opcode.IsReadResponse() {
			return 0, 0
		}
		return 1, 0
	}
	w := n.write(3, 10)
	w.RKey++
	n.complete(n.a, n.write(1, 10), n.read(2, 10), w, n.write(4, 10))
	require.Equal(t, []abi.WCStatus{abi.WCSuccess, abi.WCWRFlushErr, abi.WCRemAccessErr, abi.WCWRFlushErr}, statuses(n.a.wcs))
}

// Responses that fit nothing are counted and dropped.
func TestStrayResponses(t *testing.T) {
	n := newPair(t, cfg{psnA: 100, attr: func(_ int, a *Attr) { a.MaxRdAtomic = 2 }})
	n.filter = func(from *host, p *wire.Packet) (int, Time) {
		if p.PSN == 100 && from == n.a {
			return 1, 0
		}
		return 0, 0
	}
	n.post(n.a, n.write(1, 10)) // 100
	n.post(n.a, n.write(2, 10)) // 101
	n.post(n.a, n.read(3, 10))  // 102
	n.post(n.a, n.read(4, 10))  // 103
	n.post(n.a, n.read(5, 10))  // 104: not sent, two READs are outstanding
	n.pump(n.a)
	n.now += latency
	require.True(t, n.deliver())
	c := n.a.qp.Counters()
	for _, x := range []struct {
		psn  wire.PSN
		op   wire.Opcode
		syn  wire.Syndrome
		drop *uint64
	}{
		{99, wire.RCAck, 31, &c.DropStaleAck},
		{wire.PSN(100).Add(-1 << 22), wire.RCAck, 31, &c.DropStaleAck},
		{104, wire.RCAck, 31, &c.DropUnsentAck},
		{105, wire.RCAck, nakSeq, &c.DropUnsentAck},
		{104, wire.RCAck, nakAccess, &c.DropUnsentAck},
		{99, wire.RCAck, nakAccess, &c.DropStaleAck},
		{99, wire.RCAck, 0x21, &c.DropStaleAck},
		{1 << 22, wire.RCReadResponseOnly, 31, &c.DropUnsentAck},
		{101, wire.RCAck, 0x40, &c.DropSyndrome},
		{101, wire.RCAck, 0x65, &c.DropSyndrome},
		{101, wire.RCAck, 0x64, &c.DropSyndrome}, // RD only
		{101, wire.RCReadResponseOnly, 31, &c.DropResponse},
		{101, wire.RCAtomicAck, 31, &c.DropResponse},
		{102, wire.RCReadResponseOnly, nakSeq, &c.DropSyndrome},
	} {
		before, una := *x.drop, n.a.qp.req.una
		payload := 0
		if x.op.IsReadResponse() {
			payload = 10
		}
		n.respond(x.op, x.psn&wire.MaxPSN, x.syn, payload)
		require.Equal(t, before+1, *x.drop, "%+v", x)
		if x.syn.NAK() != wire.NAKInvalidRD || !x.syn.IsNAK() {
			require.Equal(t, una, n.a.qp.req.una)
		}
	}
	n.collect(n.a)
	require.Equal(t, []abi.WCStatus{0}, statuses(n.a.wcs), "a NAK acknowledges what is before it")
	n.filter = nil
	n.run(0)
	requireSuccess(t, n.a.wcs, 1, 2, 3, 4, 5)
}

// respond gives n.a a packet of n.b, with an AETH and so many bytes.
func (n *network) respond(op wire.Opcode, psn wire.PSN, s wire.Syndrome, payload int) {
	p := wire.Packet{AETH: wire.AETH{Syndrome: s}, Payload: make([]byte, payload)}
	p.BTH = wire.BTH{Opcode: op, PKey: wire.DefaultPKey, PSN: psn}
	n.a.qp.Receive(n.now, n.b.addr.Addr(), &p)
}

// IBA 9.9.2: an answer of the wrong kind or length to the right PSN is fatal.
func TestBadResponses(t *testing.T) {
	for name, c := range map[string]struct {
		asks abi.WROpcode
		op   wire.Opcode
		len  int
	}{
		"short":              {abi.WRRDMARead, wire.RCReadResponseFirst, 255},
		"long":               {abi.WRRDMARead, wire.RCReadResponseFirst, 257},
		"ends early":         {abi.WRRDMARead, wire.RCReadResponseOnly, 256},
		"atomic for a READ":  {abi.WRRDMARead, wire.RCAtomicAck, 0},
		"Last where Middle":  {abi.WRRDMARead, wire.RCReadResponseLast, 256},
		"empty":              {abi.WRRDMARead, wire.RCReadResponseFirst, 0},
		"READ for an atomic": {abi.WRAtomicFetchAndAdd, wire.RCReadResponseOnly, 8},
	} {
		t.Run(name, func(t *testing.T) {
			n := newPair(t, cfg{mtu: abi.MTU256})
			wr := n.read(1, 600)
			if wr.Opcode = c.asks; c.asks == abi.WRAtomicFetchAndAdd {
				wr.SGE = n.a.sge(0, 8)
			}
			n.post(n.a, wr)
			n.pump(n.a)
			n.respond(c.op, 0, 31, c.len)
			n.collect(n.a)
			require.Equal(t, []abi.WCStatus{abi.WCBadRespErr}, statuses(n.a.wcs))
		})
	}
}

// IBA 9.6.1: a packet that is not for this queue pair's connection is dropped.
func TestHeaderDrops(t *testing.T) {
	n := newPair(t, cfg{})
	c := n.b.qp.Counters()
	send := func(from string, edit func(*wire.Packet)) {
		p := n.req(wire.RCWriteOnly, 0, 8, edit)
		n.b.qp.Receive(n.now, netip.MustParseAddr(from), p)
	}
	none := func(*wire.Packet) {}
	send("10.0.0.3", none)
	require.EqualValues(t, 1, c.DropPeer)
	send("10.0.0.1", func(p *wire.Packet) { p.PKey = 0x1234 })
	require.EqualValues(t, 1, c.DropPKey)
	send("10.0.0.1", func(p *wire.Packet) { p.Opcode = wire.UCWriteOnly })
	send("10.0.0.1", func(p *wire.Packet) { p.Opcode = 0xff })
	require.EqualValues(t, 2, c.DropService)
	require.Zero(t, c.RcvdPkts)
	require.Equal(t, make([]byte, 8), n.b.mem[:8])
	send("::ffff:10.0.0.1", none)
	require.EqualValues(t, 1, c.RcvdPkts)
	require.NotEqual(t, make([]byte, 8), n.b.mem[:8])
}
