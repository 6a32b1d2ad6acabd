//go:build !guest

package interop

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/wiretest"
)

const testdata = "../testdata"

// recorded lists the packets that a recording must hold, so that a loss in a
// new one is noticed.
var recorded = []struct {
	name          string
	soft, rxe     []wire.Opcode // opcodes that each side sent
	naks          []wire.NAKCode
	rnr, together bool // an RNR NAK from each side; an ACK of soft for several messages
}{
	{name: "soft-rxe-6.1-ipv4-mtu1024", soft: everyOpcode, rxe: everyOpcode, naks: everyNAK, rnr: true, together: true},
	{name: "soft-rxe-6.1-ipv6-mtu4096", soft: everyOpcode4096, rxe: everyOpcode4096, naks: everyNAK, rnr: true, together: true},
	{name: "soft-rxe-6.1-ipv6-loss", soft: []wire.Opcode{wire.RCWriteFirst, wire.RCReadRequest}, rxe: []wire.Opcode{wire.RCWriteFirst, wire.RCReadRequest},
		naks: []wire.NAKCode{wire.NAKPSNSequence}},
	{name: "soft-rxe-6.1-ipv6-unreliable", soft: []wire.Opcode{wire.RCAck}, rxe: []wire.Opcode{
		0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x2b, // unreliable connection
		wire.UDSendOnly, wire.UDSendOnlyImm, wire.RCSendLastInv, wire.RCSendOnlyInv}},
}

var everyOpcode4096 = []wire.Opcode{
	0x00, 0x02, 0x03, 0x04, 0x05, // SEND
	0x06, 0x08, 0x09, 0x0a, 0x0b, // WRITE
	0x0c, 0x0d, 0x0f, 0x10, // READ and its answers
	0x11, 0x12, 0x13, 0x14, // acknowledgements and atomics
}

var everyOpcode = append([]wire.Opcode{0x01, 0x07, 0x0e}, everyOpcode4096...)

var everyNAK = []wire.NAKCode{wire.NAKInvalidRequest, wire.NAKRemoteAccess, wire.NAKRemoteOperational}

// TestRecordings holds the recordings of this package's traffic to what their
// texts and the README beside them say.
func TestRecordings(t *testing.T) {
	for _, r := range recorded {
		t.Run(r.name, func(t *testing.T) {
			frames := must.Get(wiretest.ReadFile(filepath.Join(testdata, r.name+".pcap")))(t)
			soft, rxe := map[wire.Opcode]int{}, map[wire.Opcode]int{}
			naks := map[wire.NAKCode]int{}
			var rnr [2]int
			last := map[wire.QPN]wire.MSN{} // of soft's answers
			together := false
			for i := range frames {
				f := &frames[i]
				p := parse(t, f)
				ours := isSoft(f.Src.Addr())
				require.Equal(t, ours, p.MigReq, "frame %d: rxe sends MigReq 0, the soft RNIC 1", f.Number)
				require.Equal(t, ours && f.IPv4(), f.IPv4() && f.ID == 0, "frame %d: only the soft RNIC sends identification 0", f.Number)
				if ours {
					soft[p.Opcode]++
				} else {
					rxe[p.Opcode]++
				}
				if ours && p.Opcode.Carries(wire.HasAETH) && !p.AETH.Syndrome.IsRNR() {
					before, known := last[p.DestQPN]
					together = together || known && p.Opcode == wire.RCAck && p.AETH.MSN.Sub(before) > 1
					last[p.DestQPN] = p.AETH.MSN
				}
				if p.Opcode != wire.RCAck {
					continue
				}
				switch s := p.AETH.Syndrome; {
				case s.IsNAK():
					naks[s.NAK()]++
				case s.IsRNR() && ours:
					rnr[0]++
				case s.IsRNR():
					rnr[1]++
				}
			}
			for _, op := range r.soft {
				require.NotZero(t, soft[op], "the soft RNIC sent no %v", op)
			}
			for _, op := range r.rxe {
				require.NotZero(t, rxe[op], "rxe sent no %v", op)
			}
			for _, n := range r.naks {
				require.NotZero(t, naks[n], "nobody sent %v", n)
			}
			require.True(t, !r.rnr || rnr[0] > 0 && rnr[1] > 0, "an RNR NAK is missing")
			require.True(t, !r.together || together, "no ACK for several messages")
		})
	}
}

// parse takes a frame apart, puts it together again, and checks its ICRC.
func parse(t *testing.T, f *wiretest.Frame) (p wire.Packet) {
	flow := must.Get(wire.NewFlow(f.Src, f.Dst, f.DF))(t)
	require.True(t, flow.Check(f.UDP, f.ID), "frame %d: bad ICRC", f.Number)
	body := f.UDP[:len(f.UDP)-wire.ICRCLen]
	require.NoError(t, p.Parse(body), "frame %d", f.Number)
	require.Equal(t, body, p.Append(nil), "frame %d", f.Number)
	return p
}

// isSoft tells the soft RNIC's addresses from rxe's.
func isSoft(a netip.Addr) bool {
	return a != netip.MustParseAddr("10.77.0.1") && a != netip.MustParseAddr("fd00:77::1") && strings.Contains(a.String(), "77:") == a.Is6()
}
