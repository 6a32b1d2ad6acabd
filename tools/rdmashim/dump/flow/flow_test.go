package flow

import (
	"bytes"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
)

func TestMain(m *testing.M) { leak.Main(m) }

const testdata = "../../../../tests/testdata"

// follow reads a recording; remarks are "number kind: text".
func follow(t testing.TB, path string) (*Tracker, []string) {
	t.Helper()
	f := must.Get(os.Open(path))(t)
	defer f.Close()
	r := must.Get(dissect.NewReader(f, 0, dissect.MaxUnzipped))(t)
	tr := New()
	var remarks []string
	for {
		var p dissect.Packet
		err := r.Next(&p)
		if err == io.EOF {
			return tr, remarks
		}
		require.NoError(t, err)
		for _, m := range tr.Add(&p) {
			remarks = append(remarks, fmt.Sprintf("%d %s: %s", p.Number, m.Kind, m.Text))
		}
	}
}

func recording(name string) string { return filepath.Join(testdata, name) }

// The events of the recordings, as their makers list them
// (tests/testdata/*.txt).
func TestLoss(t *testing.T) {
	tr, remarks := follow(t, recording("soft-rxe-6.1-ipv6-loss.pcap"))
	require.Len(t, tr.Pairs(), 1)
	p := tr.Pairs()[0]
	require.Equal(t, End{netip.MustParseAddr("fd00:77::9"), new(wire.QPN(0x71ff80))}, p.A)
	require.Equal(t, End{netip.MustParseAddr("fd00:77::1"), new(wire.QPN(0x31))}, p.B)
	require.EqualValues(t, 68, p.Packets)
	ab, ba := p.AB, p.BA
	require.Equal(t, Messages{Send: 2, Write: 2, Read: 6}, ab.Messages)
	require.Equal(t, Messages{Send: 2, Write: 2, Read: 2}, ba.Messages)
	require.EqualValues(t, 2*(5+4099), ab.Bytes)
	require.EqualValues(t, 5+4099, ab.Read)
	require.EqualValues(t, 5+4099, ba.Read)
	require.EqualValues(t, 68, ab.Requests+ab.Responses+ba.Requests+ba.Responses)
	require.Equal(t, NAKs{Sequence: 2}, ab.NAKs)
	require.Zero(t, ba.NAKs)
	// Three packets were lost on the way, and all behind them were sent again.
	require.EqualValues(t, 9, ab.Retransmitted)
	require.EqualValues(t, 2, ba.Retransmitted)
	require.InDelta(t, 9./24, ab.RetransmissionRate, 1e-9)
	require.Zero(t, ab.Missing+ba.Missing+ab.OutOfOrder+ba.OutOfOrder)
	require.Zero(t, ab.Waiting+ba.Waiting)
	require.NotZero(t, ab.RTT.Samples)
	require.LessOrEqual(t, ab.RTT.Min, ab.RTT.Smoothed)
	require.LessOrEqual(t, ab.RTT.Smoothed, ab.RTT.Max)
	require.Equal(t, 20., ab.RTT.Min)
	for _, want := range []string{
		"5 gap: 2 packets before it, from PSN 6697109 on, are not in the capture: lost before this point, or not captured",
		"6 nak: the responder expected PSN 6697109 and got a later one (up to 6697111 was sent): a packet was lost, damaged or overtaken; the requester begins again there",
		"7 retransmission: sent again, 471us after the NAK that asked for everything from PSN 6697109 on",
		"60 retransmission: sent again: no answer to it came for 60.88ms (a timeout, or an early repeat by the measured round trip)",
	} {
		require.Contains(t, remarks, want)
	}
}

func TestErrors(t *testing.T) {
	tr, remarks := follow(t, recording("rxe-6.1-rc-errors.pcap"))
	var naks NAKs
	for _, p := range tr.Pairs() {
		require.True(t, p.A.QPN != nil && p.B.QPN != nil || p.AB.Responses == 0, "%+v", p)
		n := p.AB.NAKs
		naks.Sequence += n.Sequence
		naks.Access += n.Access
		naks.Invalid += n.Invalid
		naks.Operational += n.Operational
		naks.RNR += n.RNR
	}
	require.Equal(t, NAKs{Sequence: 3, Invalid: 4, Access: 6, Operational: 2, RNR: 39}, naks)
	last := tr.Pairs()[len(tr.Pairs())-1]
	require.EqualValues(t, 3, last.AB.Requests)
	require.EqualValues(t, 2, last.AB.Retransmitted)
	require.Equal(t, 1, last.AB.Waiting, "the peer was silent")
	require.Nil(t, last.A.QPN)
	for _, want := range []string{
		"30 gap: 1 packet of the READ's answer before it: lost before this point, or not captured; the requester will ask again",
		"32 retransmission: the READ is asked for again from here on: a part of its answer was lost or late",
		"179 rnr: the receiver has no receive posted for the SEND: the requester shall wait 655.36ms, then send it again from PSN 137728 on",
		"180 retransmission: sent again after the receiver was not ready: the NAK asked to wait 655.36ms, 671.42ms have passed",
		"193 nak: the responder refuses the RDMA WRITE of 600 bytes at va 0x7f850d70b000 with rkey 0xdeadbe00: the key, the range or the right to it is wrong; it completes with REM_ACCESS_ERR, and the queue pair goes to the error state",
	} {
		require.Contains(t, remarks, want)
	}
}

// The connection manager's messages name queue pairs before they speak.
func TestConnectionManager(t *testing.T) {
	tr, remarks := follow(t, recording("rxe-6.1-cm.pcap"))
	require.Len(t, remarks, 5)
	require.Contains(t, remarks[0], "invalid service id")
	rc := 0
	for _, p := range tr.Pairs() {
		require.True(t, p.A.QPN != nil && p.B.QPN != nil)
		if p.Service == "RC" {
			rc++
		}
	}
	require.Equal(t, 3, rc)
}

// Recordings without loss have no remarks, and every packet is counted once.
func TestRecordings(t *testing.T) {
	names := must.Get(filepath.Glob(filepath.Join(testdata, "*.pcap")))(t)
	for _, name := range names {
		tr, remarks := follow(t, name)
		switch filepath.Base(name) {
		case "rxe-6.1-veth.pcap", "rxe-6.1-rc-mtu1024.pcap", "rxe-6.1-rc-mtu4096.pcap", "rxe-6.1-uc-ud.pcap":
			require.Empty(t, remarks, name)
		}
		for _, p := range tr.Pairs() {
			require.Equal(t, p.Packets, p.AB.Requests+p.AB.Responses+p.BA.Requests+p.BA.Responses, "%s %+v", name, p)
			require.False(t, p.Last.Before(p.First))
			require.LessOrEqual(t, p.AB.Retransmitted, p.AB.Requests)
		}
		require.Zero(t, tr.Lost)
	}
}

func TestSequence(t *testing.T) {
	type step struct {
		psn     wire.PSN
		n       int
		slack   int
		where   place
		missing int
	}
	for name, steps := range map[string][]step{
		"in order, over the end":    {{0xfffffe, 1, 0, anew, 0}, {0xffffff, 1, 0, next, 0}, {0, 1, 0, next, 0}},
		"a hole that is filled":     {{5, 1, 0, anew, 0}, {9, 1, 0, skip, 3}, {7, 1, 0, late, 0}, {7, 1, 0, again, 0}, {6, 1, 0, late, 0}, {8, 1, 0, late, 0}, {8, 1, 0, again, 0}, {10, 1, 0, next, 0}},
		"a READ's numbers":          {{5, 4, 0, anew, 0}, {9, 1, 0, next, 0}, {7, 1, 0, again, 0}},
		"a READ of unknown packets": {{5, 2, 30, anew, 0}, {9, 1, 0, next, 0}, {10, 1, 0, next, 0}},
		"behind such a READ":        {{5, 2, 3, anew, 0}, {12, 1, 0, skip, 2}, {10, 1, 0, late, 0}, {9, 1, 0, again, 0}},
		"a new life":                {{5, 1, 0, anew, 0}, {500000, 1, 0, anew, 0}, {5, 1, 0, anew, 0}},
		"a long READ repeated":      {{5, 1 << 21, 0, anew, 0}, {5, 1 << 21, 0, again, 0}, {5 + 1<<21, 1, 0, next, 0}},
	} {
		var s sequence
		for i, x := range steps {
			where, missing := s.take(x.psn, x.n, x.slack)
			require.Equal(t, []any{x.where, x.missing}, []any{where, missing}, "%s: step %d", name, i)
		}
	}
	var s sequence
	for i := range 2 * maxHoles {
		s.take(wire.PSN(3*i), 1, 0)
	}
	require.Len(t, s.holes, maxHoles)
	require.Equal(t, 2*maxHoles, s.missing())
}

// packet is one that a capture could have.
func packet(at int, from, to string, op wire.Opcode, qpn wire.QPN, psn wire.PSN, length int) *dissect.Packet {
	p := &dissect.Packet{
		Time: time.Unix(1700000000, 0).Add(time.Duration(at) * time.Microsecond), Src: netip.MustParseAddrPort(from + ":4791"), Dst: netip.MustParseAddrPort(to + ":4791"),
		HasBTH: true, ICRC: dissect.OK, PayloadLen: length,
	}
	p.Wire.Opcode, p.Wire.DestQPN, p.Wire.PSN, p.Wire.AckReq = op, qpn, psn, true
	p.Wire.AETH.Syndrome = wire.SyndromeACK(wire.NoCredits)
	return p
}

// kinds adds packets and returns what was remarked.
func kinds(tr *Tracker, list ...*dissect.Packet) (all []RemarkKind) {
	for _, p := range list {
		for _, r := range tr.Add(p) {
			all = append(all, r.Kind)
		}
	}
	return all
}

func TestKinds(t *testing.T) {
	a, b := "10.0.0.1", "10.0.0.2"
	marked := packet(0, a, b, wire.RCSendOnly, 7, 5, 1)
	marked.TrafficClass = 3
	damaged := packet(0, a, b, wire.RCSendOnly, 7, 6, 1)
	damaged.ICRC = dissect.Bad
	for name, c := range map[string]struct {
		packets []*dissect.Packet
		want    []RemarkKind
	}{
		"unreliable, lost": {[]*dissect.Packet{packet(0, a, b, wire.UCSendFirst, 7, 5, 256), packet(1, a, b, wire.UCSendLast, 7, 7, 1)}, []RemarkKind{Gap}},
		"overtaken":        {[]*dissect.Packet{packet(0, a, b, wire.RCSendOnly, 7, 5, 1), packet(1, a, b, wire.RCSendOnly, 7, 7, 1), packet(2, a, b, wire.RCSendOnly, 7, 6, 1)}, []RemarkKind{Gap, OutOfOrder}},
		"marked":           {[]*dissect.Packet{marked}, []RemarkKind{Congestion}},
		"notified":         {[]*dissect.Packet{packet(0, a, b, wire.CNP, 7, 0, 0)}, []RemarkKind{Congestion}},
		"damaged":          {[]*dissect.Packet{marked, damaged, packet(2, a, b, wire.RCSendOnly, 7, 6, 1)}, []RemarkKind{Congestion, Damaged}},
		"a new life": {[]*dissect.Packet{packet(0, a, b, wire.RCSendOnly, 7, 5, 1), packet(1, a, b, wire.RCSendOnly, 7, 1<<20, 1)},
			[]RemarkKind{Anew}},
	} {
		require.Equal(t, c.want, kinds(New(), c.packets...), name)
	}
}

// A READ that is lost, and later asked for again from its middle, brings each
// byte once.
func TestReadFromItsMiddle(t *testing.T) {
	const mtu = 1024
	a, b := "10.0.0.1", "10.0.0.2"
	read := func(psn wire.PSN, packets int) *dissect.Packet {
		p := packet(0, a, b, wire.RCReadRequest, 7, psn, 0)
		p.Wire.RETH.DMALen = uint32(packets * mtu)
		return p
	}
	data := func(op wire.Opcode, psn wire.PSN) *dissect.Packet { return packet(0, b, a, op, 8, psn, mtu) }
	refused := packet(0, b, a, wire.RCAck, 8, 7, 0)
	refused.Wire.AETH.Syndrome = wire.SyndromeNAK(wire.NAKPSNSequence)
	tr := New()
	require.Equal(t, []RemarkKind{Gap, NAK, Retransmission, Retransmission, Gap, Retransmission, Repeated, Repeated}, kinds(tr,
		packet(0, a, b, wire.RCWriteFirst, 7, 5, mtu), packet(0, a, b, wire.RCWriteLast, 7, 6, 1), packet(0, b, a, wire.RCAck, 8, 6, 0),
		read(11, 2), refused, read(7, 4), read(11, 2), // the first of two READs was lost
		data(wire.RCReadResponseFirst, 7), data(wire.RCReadResponseMiddle, 9), data(wire.RCReadResponseLast, 10),
		read(8, 3), data(wire.RCReadResponseFirst, 8), data(wire.RCReadResponseMiddle, 9), data(wire.RCReadResponseLast, 10),
		data(wire.RCReadResponseFirst, 11), data(wire.RCReadResponseLast, 12)))
	require.EqualValues(t, 6*mtu, tr.Pairs()[0].AB.Read)
	require.Equal(t, Messages{Write: 1, Read: 2}, tr.Pairs()[0].AB.Messages)
	require.Zero(t, tr.Pairs()[0].AB.Missing)
}

// Two connections between the same addresses: each answer finds its own.
func TestPairing(t *testing.T) {
	a, b := "10.0.0.1", "10.0.0.2"
	tr := New()
	require.Empty(t, kinds(tr,
		packet(0, a, b, wire.RCSendOnly, 7, 500, 1), packet(1, a, b, wire.RCSendOnly, 8, 900, 1),
		packet(2, b, a, wire.RCAck, 0x18, 900, 0), packet(5, b, a, wire.RCAck, 0x17, 500, 0),
		packet(6, b, a, wire.RCSendOnly, 0x17, 3, 1), packet(9, a, b, wire.RCAck, 7, 3, 0)))
	require.Len(t, tr.Pairs(), 2)
	for _, p := range tr.Pairs() {
		require.Equal(t, *p.B.QPN+0x10, *p.A.QPN)
	}
	require.Equal(t, &RTT{1, 5, 5, 5}, tr.Pairs()[0].AB.RTT)
	require.EqualValues(t, 1, tr.Pairs()[0].BA.Messages.Send)
	q, ok := tr.Source(packet(0, a, b, wire.RCSendOnly, 7, 501, 1))
	require.True(t, ok)
	require.EqualValues(t, 0x17, q)
	_, ok = tr.Source(packet(0, a, b, wire.RCSendOnly, 9, 501, 1))
	require.False(t, ok)

	// A queue pair that is connected to itself.
	self := New()
	require.Empty(t, kinds(self, packet(0, a, a, wire.RCSendOnly, 7, 500, 1), packet(1, a, a, wire.RCAck, 7, 500, 0)))
	require.Len(t, self.Pairs(), 1)
	require.EqualValues(t, 1, self.Pairs()[0].AB.Responses)
}

// Anything a capture may hold is followed without harm.
func FuzzFlow(f *testing.F) {
	for _, name := range []string{"rxe-6.1-uc-ud.pcap", "rxe-6.1-ipv6.pcap", "rxe-6.1-cm.pcap", "rxe-6.1-rc-errors.pcap"} {
		b := must.Get(os.ReadFile(recording(name)))(f)
		f.Add(b[:2500])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := dissect.NewReader(bytes.NewReader(b), 0, dissect.MaxUnzipped)
		if err != nil {
			return
		}
		tr := New()
		for {
			var p dissect.Packet
			if r.Next(&p) != nil {
				break
			}
			p.ICRC = dissect.OK // or nothing that was changed is looked at
			for _, m := range tr.Add(&p) {
				require.NotEmpty(t, m.Text)
				require.NotContains(t, m.Text, "\n")
			}
			tr.Source(&p)
		}
		for _, p := range tr.Pairs() {
			require.LessOrEqual(t, p.AB.Retransmitted, p.AB.Requests)
			if p.AB.RTT != nil {
				require.GreaterOrEqual(t, p.AB.RTT.Max, p.AB.RTT.Min)
			}
		}
	})
}
