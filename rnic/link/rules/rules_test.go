package rules

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

var (
	peer  = netip.MustParseAddr("10.0.0.2")
	start = time.Unix(1000, 0)
)

// packet makes a packet of an opcode to a queue pair.
func packet(op wire.Opcode, qpn wire.QPN, psn wire.PSN) wire.Packet {
	return wire.Packet{BTH: wire.BTH{Opcode: op, DestQPN: qpn, PSN: psn}}
}

// sees returns the numbers, from 0, of the packets that the rules drop.
func sees(r *Set, now time.Time, packets ...wire.Packet) (dropped []int) {
	for i, p := range packets {
		if r.See(now, netip.Addr{}, peer, p.AppendHeaders(nil), p.Payload).Drop {
			dropped = append(dropped, i)
		}
	}
	return dropped
}

// TestNth: each kind that has a number is hit at the same packet, whatever is
// repeated before it, on each connection by itself.
func TestNth(t *testing.T) {
	ops := []wire.Opcode{wire.RCSendOnly, wire.RCWriteMiddle, wire.RCReadRequest, wire.RCReadResponseMiddle, wire.RCAtomicAck, wire.RCFetchAdd, wire.RCSendLastInv}
	for _, op := range ops {
		for nth, want := range map[string]int{"nth=1": 0, "nth=2": 3, "nth=3": 5} {
			r := must(t, "drop op="+plainName(op)+" "+nth)
			for qpn := wire.QPN(7); qpn < 9; qpn++ {
				const first wire.PSN = 0xfffffe // it wraps
				other := wire.RCSendFirst
				if op.IsResponse() {
					other = wire.RCReadResponseFirst
				}
				got := sees(r, start, packet(op, qpn, first), packet(op, qpn, first), packet(other, qpn, first.Add(1)),
					packet(op, qpn, first.Add(2)), packet(op, qpn, first.Add(1)), packet(op, qpn, first.Add(3)))
				require.Equal(t, []int{want}, got, "%v %s", op, nth)
			}
			require.Equal(t, []uint64{2}, r.Hits())
		}
	}
}

// TestSenders: packets of two senders to one queue pair are two connections.
func TestSenders(t *testing.T) {
	r := must(t, "drop op=CM_REQ nth=2")
	mad := packet(wire.UDSendOnly, 1, 1)
	header := wire.CMHeader(1, wire.AttrREQ)
	mad.Payload = header.Append(nil)
	var dropped []int
	for i, from := range []string{"10.0.0.3", "10.0.0.4", "10.0.0.4", "10.0.0.3"} {
		mad.PSN = wire.PSN(i)
		if r.See(start, netip.MustParseAddr(from), peer, mad.AppendHeaders(nil), mad.Payload).Drop {
			dropped = append(dropped, i)
		}
	}
	require.Equal(t, []int{2, 3}, dropped)
}

// TestRepeats: a rule that does not count hits repeated packets as well.
func TestRepeats(t *testing.T) {
	p := packet(wire.RCSendOnly, 7, 5)
	require.Equal(t, []int{0, 1}, sees(must(t, "drop op=SEND_*"), start, p, p))
	require.Equal(t, []int{0}, sees(must(t, "drop op=SEND_* once"), start, p, p, packet(wire.RCSendOnly, 7, 6)))
	require.Equal(t, []int{1, 2}, sees(must(t, "drop psn=+1..+2"), start, p, packet(wire.RCSendOnly, 7, 6), packet(wire.RCSendOnly, 7, 7), packet(wire.RCSendOnly, 7, 8)))
	ack := packet(wire.RCAck, 7, 5)
	require.Equal(t, []int{1}, sees(must(t, "drop op=ACK nth=2"), start, ack, ack, ack))
	require.Equal(t, []int{1, 3}, sees(must(t, "drop op=ACK every=2"), start, ack, ack, ack, ack))
}

// TestConditions: each by itself.
func TestConditions(t *testing.T) {
	nakked := packet(wire.RCAck, 7, 5)
	nakked.AETH.Syndrome = wire.SyndromeNAK(wire.NAKPSNSequence)
	imm := packet(wire.RCWriteLastImm, 7, 6)
	imm.ImmDt = wire.ImmDt{Data: 0x17}
	long := packet(wire.UDSendOnly, 9, 1)
	long.Payload = make([]byte, 100)
	all := []wire.Packet{packet(wire.RCAck, 7, 4), nakked, imm, long, packet(wire.CNP, 7, 0)}
	for text, want := range map[string][]int{
		"op=ACK": {0}, "op=NAK": {1}, "op=ACK|NAK": {0, 1}, "imm=0x17": {2}, "op=WRITE_LAST_IMM": {2}, "op=WRITE_*": {2}, "size=100": {3},
		"size=1..": {3}, "qp=9": {3}, "qp=first": {0, 1, 2, 4}, "op=CNP": {4}, "op=SEND_ONLY": {3}, "": {0, 1, 2, 3, 4},
	} {
		require.Equal(t, want, sees(must(t, "drop "+text), start, all...), text)
	}
	mad := packet(wire.UDSendOnly, 1, 1)
	header := wire.CMHeader(1, wire.AttrREQ)
	mad.Payload = header.Append(nil)
	require.Equal(t, []int{0, 1}, sees(must(t, "drop op=CM_REQ"), start, mad, mad))
	require.Empty(t, sees(must(t, "drop op=CM_REP"), start, mad))
	require.Equal(t, []int{1}, sees(must(t, "drop qp=first"), start, mad, all[0])) // QP 1 is no connection
}

// TestTime: windows, and a black hole that ends.
func TestTime(t *testing.T) {
	r := must(t, "drop after=20ms for=100ms")
	var hit []time.Duration
	for at := time.Duration(0); at < 200*time.Millisecond; at += 10 * time.Millisecond {
		if len(sees(r, start.Add(at), packet(wire.RCSendOnly, 7, 1))) > 0 {
			hit = append(hit, at)
		}
	}
	require.Equal(t, []time.Duration{20e6, 110e6, 10}, []time.Duration{hit[0], hit[len(hit)-1], time.Duration(len(hit))})
	r = must(t, "blackhole op=SEND_ONLY nth=2 for=10ms")
	at := func(ms time.Duration, op wire.Opcode, psn wire.PSN) bool {
		return len(sees(r, start.Add(ms*time.Millisecond), packet(op, 7, psn))) > 0
	}
	require.False(t, at(0, wire.RCSendOnly, 1))
	require.True(t, at(1, wire.RCSendOnly, 2))
	require.True(t, at(2, wire.RCAck, 2)) // all of the connection
	require.False(t, at(11, wire.RCSendOnly, 2))
	require.False(t, at(12, wire.RCSendOnly, 3)) // once
}

// TestFates: what each action asks for.
func TestFates(t *testing.T) {
	p := packet(wire.RCAck, 7, 5)
	for text, want := range map[string]Fate{
		"dup": {Dup: true}, "delay=2ms": {Delay: 2 * time.Millisecond}, "reorder=3": {Behind: 3}, "ecn": {Mark: true},
		"corrupt": {Corrupt: true, Offset: -1}, "corrupt=12": {Corrupt: true, Offset: 12},
		"nak=ACCESS":       {NAK: true, Syndrome: wire.SyndromeNAK(wire.NAKRemoteAccess)},
		"nak=RNR":          {NAK: true, Syndrome: wire.SyndromeRNR(rnrTimer)},
		"dup;drop op=ACK;": {Dup: true, Drop: true},
	} {
		require.Equal(t, want, must(t, text).See(start, netip.Addr{}, peer, p.AppendHeaders(nil), nil), text)
	}
	require.Zero(t, (*Set)(nil).See(start, netip.Addr{}, peer, p.AppendHeaders(nil), nil))
}

// TestForget: strangers cost bounded memory, and rules go on.
func TestForget(t *testing.T) {
	r := must(t, "drop nth=1")
	for i := range 3 * maxConnections {
		require.Len(t, sees(r, start, packet(wire.RCSendOnly, wire.QPN(2+i), 1)), 1)
	}
	require.Len(t, r.connections.known, maxConnections)
	require.Len(t, r.connections.order, maxConnections)
}

// TestRewrite: a refusal is an acknowledgement of the answer's number, and a
// mark is in the headers alone.
func TestRewrite(t *testing.T) {
	p := packet(wire.RCReadResponseLast, 7, 5)
	p.Pad, p.AETH.MSN = 3, 77
	var got wire.Packet
	require.NoError(t, got.Parse(Refuse(p.AppendHeaders(nil), wire.SyndromeNAK(wire.NAKInvalidRequest))))
	require.Equal(t, []any{wire.RCAck, wire.QPN(7), wire.PSN(5), wire.MSN(77), "NAK invalid request"},
		[]any{got.Opcode, got.DestQPN, got.PSN, got.AETH.MSN, got.AETH.Syndrome.String()})
	head := p.AppendHeaders(nil)
	require.NoError(t, got.BTH.Parse(Mark(head)))
	require.True(t, got.FECN)
	require.Equal(t, head, p.AppendHeaders(nil))
}

// FuzzSee: no bytes make the rules fail.
func FuzzSee(f *testing.F) {
	p := packet(wire.RCWriteLastImm, 7, 5)
	f.Add(p.AppendHeaders(nil), []byte("payload"))
	mad := packet(wire.UDSendOnly, 1, 5)
	f.Add(mad.AppendHeaders(nil), make([]byte, 256))
	f.Fuzz(func(t *testing.T, head, body []byte) {
		r := must(t, "drop op=CM_*; nak=PSN; ecn; corrupt nth=2; drop imm=1 size=3.. psn=+1..")
		for range 3 {
			if fate := r.See(start, netip.Addr{}, peer, head, body); fate.NAK {
				Mark(Refuse(head, fate.Syndrome))
			}
		}
	})
}
