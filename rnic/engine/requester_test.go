package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

func (n *network) write(id uint64, l int) SendWR {
	return SendWR{ID: id, Opcode: abi.WRRDMAWrite, SGE: n.a.sge(0, l), RKey: n.b.key(), RemoteAddr: n.b.va(0)}
}

func (n *network) read(id uint64, l int) SendWR {
	return SendWR{ID: id, Opcode: abi.WRRDMARead, SGE: n.a.sge(regionLen/2, l), RKey: n.b.key(), RemoteAddr: n.b.va(0)}
}

// dropOnce loses the first packet from h for which f holds.
func dropOnce(h *host, f func(p *wire.Packet) bool) func(*host, *wire.Packet) (int, Time) {
	done := false
	return func(from *host, p *wire.Packet) (int, Time) {
		if !done && from == h && f(p) {
			done = true
			return 0, 0
		}
		return 1, 0
	}
}

func psnIs(want wire.PSN) func(*wire.Packet) bool {
	return func(p *wire.Packet) bool { return p.PSN == want }
}

// A lost packet, and a lost ACK, cost a probe of one packet: no timeout, and no
// smaller window.
func TestProbe(t *testing.T) {
	n := newPair(t, cfg{attr: func(_ int, a *Attr) { a.Timeout = 18 }}) // 1.07 s
	for i, lose := range []*host{n.a, n.b} {
		n.complete(n.a, n.write(9, 10)) // measures the round trip
		start, window := n.now, n.a.qp.Gauges().Window
		n.filter = dropOnce(lose, func(*wire.Packet) bool { return true })
		n.a.wcs = nil
		n.complete(n.a, n.write(uint64(i), 10))
		requireSuccess(t, n.a.wcs, uint64(i))
		require.Less(t, n.now-start, Time(Millisecond), "long before the timeout")
		require.GreaterOrEqual(t, n.a.qp.Gauges().Window, window)
		require.EqualValues(t, i+1, n.a.qp.Counters().RetransmittedPkts)
		require.Equal(t, n.a.sent[len(n.a.sent)-2].PSN, n.a.sent[len(n.a.sent)-1].PSN)
	}
	require.Zero(t, n.a.qp.Counters().Timeouts)
	require.EqualValues(t, 1, n.b.qp.Counters().DuplicateRequest)
}

// Of a flight that was lost whole, the answer to the probe shows the rest; of a
// repeated packet that was lost, too, the probe is the third copy.
func TestProbeShowsTheRest(t *testing.T) {
	for name, lost := range map[string]func() func(*wire.Packet) bool{
		"flight": func() func(*wire.Packet) bool {
			drops := 4
			return func(*wire.Packet) bool { drops--; return drops >= 0 }
		},
		"repeat": func() func(*wire.Packet) bool {
			drops := 2
			return func(p *wire.Packet) bool {
				if p.Opcode == wire.RCWriteFirst {
					drops--
				}
				return p.Opcode == wire.RCWriteFirst && drops >= 0
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, delay := range []Duration{0, 300 * Microsecond} {
				testProbeShowsTheRest(t, delay, lost())
			}
		})
	}
}

// The peer delays its ACKs by delay.
func testProbeShowsTheRest(t *testing.T, delay Duration, hit func(*wire.Packet) bool) {
	n := newPair(t, cfg{
		attr: func(_ int, a *Attr) { a.Timeout = 18 }, // 1.07 s
		edit: func(_ int, c *Config) { c.Tuning.AckDelay = delay },
	})
	n.complete(n.a, n.write(1, 10))
	start := n.now
	n.filter = func(h *host, p *wire.Packet) (int, Time) {
		if h == n.a && hit(p) {
			return 0, 0
		}
		return 1, 0
	}
	n.complete(n.a, n.write(2, 4*1024))
	requireSuccess(t, n.a.wcs, 1, 2)
	require.Zero(t, n.a.qp.Counters().Timeouts)
	require.Less(t, n.now-start, Time(Millisecond+10*delay))
}

// Without a measurement nothing is probed.
func TestProbeIsHarmless(t *testing.T) {
	n := newPair(t, cfg{})
	n.filter = func(*host, *wire.Packet) (int, Time) { return 0, 0 }
	n.post(n.a, n.write(1, 10))
	n.run(n.now + Time(19*Millisecond))
	require.Len(t, n.a.sent, 1, "a peer that was never measured")
}

// A late peer is not asked twice for the memory that a READ reads, also not for
// the sake of a WRITE before it, until the ACK timeout; nor is one for anything
// where nothing gets lost.
func TestLatePeerIsWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		lossless bool
		post     func(n *network) []SendWR
	}{
		"READ":             {false, func(n *network) []SendWR { return []SendWR{n.read(2, 10)} }},
		"WRITE, then READ": {false, func(n *network) []SendWR { return []SendWR{n.write(2, 10), n.read(3, 10)} }},
		"lossless":         {true, func(n *network) []SendWR { return []SendWR{n.write(2, 10)} }},
	} {
		n := newPair(t, cfg{attr: func(_ int, a *Attr) { a.Timeout = 14 }})
		n.a.qp.SetLossless(c.lossless)
		n.complete(n.a, n.write(1, 10))
		n.a.sent = nil
		n.filter = func(*host, *wire.Packet) (int, Time) { return 0, 0 }
		wrs := c.post(n)
		for _, wr := range wrs {
			n.post(n.a, wr)
		}
		n.run(n.now + Time(67*Millisecond))
		require.Len(t, n.a.sent, len(wrs), name)
		n.filter = nil
		n.run(0)
		require.Len(t, n.a.sent, 2*len(wrs), name)
		require.EqualValues(t, 1, n.a.qp.Counters().Timeouts, name)
		require.Len(t, n.a.wcs, 1+len(wrs), name)
	}
}

// The news that the peer has gone ends a queue pair as silence does, sooner.
func TestPeerGoneIsSilence(t *testing.T) {
	for name, c := range map[string]struct {
		timeout wire.AckTimeout
		begin   func(n *network)
		ends    bool
	}{
		"nothing to send":   {14, func(*network) {}, false},
		"in flight":         {14, func(n *network) { n.post(n.a, n.write(1, 10)); n.post(n.a, n.read(2, 10)); n.pump(n.a) }, true},
		"no timeout":        {0, func(n *network) { n.post(n.a, n.write(1, 10)); n.pump(n.a) }, false},
		"not begun, in SQD": {14, func(n *network) { n.modify(n.a, abi.QPSSQD); n.post(n.a, n.write(1, 10)) }, false},
		"waits for receives": {14, func(n *network) {
			n.post(n.a, SendWR{ID: 1, Opcode: abi.WRSend, SGE: n.a.sge(0, 10)})
			n.run(n.now + 4*latency)
		}, true},
		"acknowledged": {14, func(n *network) { n.post(n.a, n.write(1, 10)); n.run(0) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			var ends [2][]Completion
			for told := range ends {
				n := newPair(t, cfg{attr: func(_ int, a *Attr) { a.Timeout = c.timeout }})
				n.a.postRecv(9, 0, 10)
				c.begin(n)
				n.filter = func(*host, *wire.Packet) (int, Time) { return 0, 0 }
				if told == 1 {
					n.a.qp.PeerGone()
					n.collect(n.a)
					require.Equal(t, c.ends, n.a.qp.State() == abi.QPSErr)
				}
				n.run(n.now + Time(10*Second))
				ends[told] = n.a.wcs
			}
			require.Equal(t, ends[0], ends[1])
		})
	}
}

// The wait is not cut short by copies of the NAK, nor counted twice.
func TestRNRCopies(t *testing.T) {
	n := newPair(t, cfg{attr: func(_ int, a *Attr) { a.RNRRetry, a.MinRNRTimer = 5, 20 }})
	n.filter = func(from *host, p *wire.Packet) (int, Time) {
		if p.AETH.Syndrome.IsRNR() {
			return 3, 0
		}
		return 1, 0
	}
	n.post(n.a, SendWR{ID: 1, Opcode: abi.WRSend, SGE: n.a.sge(0, 6)})
	n.run(0)
	require.EqualValues(t, 6, n.a.qp.Counters().RNRRcvd)
	require.EqualValues(t, 6, n.b.qp.Counters().RNRSent)
	require.Equal(t, []abi.WCStatus{abi.WCRNRRetryExcErr}, statuses(n.a.wcs))
}

// A lost READ response is asked for again from where it was lost, whether a
// later response shows it, a later ACK, or nothing (IBA 9.7.6).
func TestReadRetry(t *testing.T) {
	for name, c := range map[string]struct {
		drop    wire.PSN
		after   bool // a WRITE follows
		silence uint64
		again   []wire.Opcode // sent by a after the first READ request
	}{
		"middle":        {1, false, 0, []wire.Opcode{wire.RCReadRequest}},
		"first":         {0, false, 0, []wire.Opcode{wire.RCReadRequest}},
		"last":          {3, false, 1, []wire.Opcode{wire.RCReadRequest}},
		"last, WRITE":   {3, true, 0, []wire.Opcode{wire.RCWriteOnly, wire.RCReadRequest, wire.RCWriteOnly}},
		"middle, WRITE": {1, true, 0, []wire.Opcode{wire.RCWriteOnly, wire.RCReadRequest, wire.RCWriteOnly}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newPair(t, cfg{mtu: abi.MTU256})
			fill(n.b.mem[:1000], 4)
			n.filter = dropOnce(n.b, psnIs(c.drop))
			n.post(n.a, n.read(1, 1000))
			ids := []uint64{1}
			if c.after {
				w := n.write(2, 10)
				w.RemoteAddr = n.b.va(5000)
				n.post(n.a, w)
				ids = append(ids, 2)
			}
			n.run(0)
			requireSuccess(t, n.a.wcs, ids...)
			require.Equal(t, n.b.mem[:1000], n.a.mem[regionLen/2:regionLen/2+1000])
			require.Equal(t, c.again, opcodes(n.a.sent)[1:])
			re := n.a.sent[len(n.a.sent)-1]
			if c.after {
				re = n.a.sent[2]
			}
			require.Equal(t, c.drop, re.PSN)
			require.Equal(t, n.b.va(256*int(c.drop)), re.RETH.VA)
			require.EqualValues(t, 1000-256*int(c.drop), re.RETH.DMALen)
			require.Equal(t, c.silence, n.a.qp.Counters().Timeouts)
			require.Equal(t, 1-c.silence, min(1, n.a.qp.Counters().ImpliedNAKs))
			require.EqualValues(t, 1, n.a.qp.Counters().Retries)
		})
	}
}

// The message count of an answer does not matter, whether a responder gives
// that of the moment or, as some do in repeated answers, that of the request.
func TestAnyMSN(t *testing.T) {
	for _, msn := range []wire.MSN{0, 1, 2, 7, 1<<24 - 1} {
		n := newPair(t, cfg{})
		n.post(n.a, n.read(1, 8))
		n.post(n.a, SendWR{ID: 2, Opcode: abi.WRAtomicFetchAndAdd, SGE: n.a.sge(0, 8), RKey: n.b.key(), RemoteAddr: n.b.va(0)})
		n.post(n.a, n.write(3, 8))
		n.pump(n.a)
		for _, p := range []wire.Packet{
			{BTH: wire.BTH{Opcode: wire.RCReadResponseOnly, PSN: 0}, Payload: make([]byte, 8)},
			{BTH: wire.BTH{Opcode: wire.RCAtomicAck, PSN: 1}},
			{BTH: wire.BTH{Opcode: wire.RCAck, PSN: 2}},
		} {
			p.PKey, p.AETH = wire.DefaultPKey, wire.AETH{Syndrome: wire.SyndromeACK(wire.NoCredits), MSN: msn}
			n.a.qp.Receive(n.now, n.b.addr.Addr(), &p)
		}
		n.collect(n.a)
		requireSuccess(t, n.a.wcs, 1, 2, 3)
	}
}

// A NAK that comes several times makes the requester go back once.
func TestNAKStorm(t *testing.T) {
	n := newPair(t, cfg{mtu: abi.MTU256})
	drop := dropOnce(n.a, psnIs(2))
	n.filter = func(from *host, p *wire.Packet) (int, Time) {
		if p.AETH.Syndrome == nakSeq {
			return 5, 0
		}
		return drop(from, p)
	}
	n.complete(n.a, n.write(1, 256*20))
	requireSuccess(t, n.a.wcs, 1)
	require.EqualValues(t, 1, n.a.qp.Counters().Retries)
	require.EqualValues(t, 18, n.a.qp.Counters().RetransmittedPkts)
}

// After a timeout a NAK for the same packet is news: its retransmission was
// lost.
func TestNAKAfterTimeout(t *testing.T) {
	n := newPair(t, cfg{})
	n.filter = func(*host, *wire.Packet) (int, Time) { return 0, 0 }
	n.post(n.a, n.write(1, 10))
	n.pump(n.a)
	nak := func(retries uint64) {
		n.respond(wire.RCAck, 0, nakSeq, 0)
		n.pump(n.a)
		require.Equal(t, retries, n.a.qp.Counters().Retries)
	}
	nak(1)
	nak(1)
	n.lapse(t, n.a)
	n.pump(n.a)
	require.EqualValues(t, 2, n.a.qp.Counters().Retries)
	nak(3)
	nak(3)
	require.Len(t, n.a.sent, 4)
}

// A fenced READ that is repeated does not wait for itself.
func TestFencedReadRepeated(t *testing.T) {
	n := newPair(t, cfg{})
	r := n.read(1, 3000)
	r.Flags = abi.SendFence
	n.filter = dropOnce(n.a, func(*wire.Packet) bool { return true })
	n.complete(n.a, r, n.write(2, 5))
	requireSuccess(t, n.a.wcs, 1, 2)
}
