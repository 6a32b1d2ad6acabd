package wire_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/wiretest"
)

const testdata = "../../tests/testdata"

// captures are the recordings, with the number of packets their makers counted.
var captures = []struct {
	name    string
	packets int
	decoded bool // there is a .txt beside it
}{
	{"rxe-6.1-veth", 121, false},
	{"rxe-6.1-rc-mtu1024", 117, true},
	{"rxe-6.1-rc-mtu4096", 76, true},
	{"rxe-6.1-rc-errors", 219, true},
	{"rxe-6.1-uc-ud", 38, true},
	{"rxe-6.1-ipv6", 90, true},
	{"rxe-6.1-cm", 42, true},
	{"rxe-7.2-atomic-write", 20, true},
}

// opcodeCounts was counted over all recordings by a program that looks at the
// first byte of each UDP payload and knows nothing else.
var opcodeCounts = map[wire.Opcode]int{
	0x00: 10, 0x01: 6, 0x02: 6, 0x03: 2, 0x04: 130, 0x05: 8, 0x06: 14, 0x07: 15,
	0x08: 10, 0x09: 3, 0x0a: 40, 0x0b: 8, 0x0c: 39, 0x0d: 13, 0x0e: 13, 0x0f: 14,
	0x10: 22, 0x11: 214, 0x12: 19, 0x13: 7, 0x14: 16, 0x16: 1, 0x17: 3, 0x1d: 3,
	0x20: 2, 0x21: 2, 0x22: 1, 0x23: 1, 0x24: 6, 0x25: 1, 0x26: 2, 0x27: 2,
	0x28: 1, 0x29: 1, 0x2a: 5, 0x2b: 1, 0x64: 75, 0x65: 7,
}

func frames(t testing.TB, name string) []wiretest.Frame {
	t.Helper()
	return must.Get(wiretest.ReadFile(filepath.Join(testdata, name+".pcap")))(t)
}

func allFrames(t testing.TB) []wiretest.Frame {
	t.Helper()
	var all []wiretest.Frame
	for _, c := range captures {
		all = append(all, frames(t, c.name)...)
	}
	return all
}

func flow(t testing.TB, f *wiretest.Frame) wire.Flow {
	t.Helper()
	return must.Get(wire.NewFlow(f.Src, f.Dst, f.DF))(t)
}

// dirty returns an empty slice whose array is full of 0xa5, so that a byte
// which an Append leaves unwritten shows.
func dirty(n int) []byte { return bytes.Repeat([]byte{0xa5}, n)[:0] }

func TestRecordedPackets(t *testing.T) {
	counts := map[wire.Opcode]int{}
	total := 0
	for _, c := range captures {
		t.Run(c.name, func(t *testing.T) {
			fs := frames(t, c.name)
			require.Len(t, fs, c.packets)
			total += len(fs)
			for i := range fs {
				f := &fs[i]
				body, crc := f.UDP[:len(f.UDP)-wire.ICRCLen], f.UDP[len(f.UDP)-wire.ICRCLen:]
				var p wire.Packet
				require.NoError(t, p.Parse(body), "frame %d", f.Number)
				counts[p.Opcode]++
				require.Equal(t, body, p.Append(dirty(len(body))), "frame %d", f.Number)
				require.Equal(t, len(body), p.Length())
				n := p.Opcode.HeaderLen()
				require.Equal(t, body[:n], p.AppendHeaders(dirty(n)))
				require.Equal(t, p.Pad, wire.PadLen(len(p.Payload)))
				require.Equal(t, len(p.Payload), cap(p.Payload), "appending to the payload must not reach the pad")
				require.True(t, p.Opcode.HasPayload() || len(p.Payload) == 0, "frame %d: %v", f.Number, p.Opcode)

				fl := flow(t, f)
				require.Equal(t, binary.LittleEndian.Uint32(crc), fl.ICRC(f.ID, body), "frame %d", f.Number)
				inPieces := fl.ICRC(f.ID, p.AppendHeaders(nil), p.Payload, wire.Pad(p.Pad))
				require.Equal(t, crc, wire.AppendICRC(dirty(4), inPieces), "frame %d", f.Number)
				require.True(t, fl.Check(f.UDP, f.ID))
			}
		})
	}
	require.Equal(t, 723, total)
	require.Equal(t, opcodeCounts, counts)
}

// TestRecordedFields compares what Parse finds with the decodes beside the
// captures, which tshark made (for ATOMIC WRITE, which it does not know, the
// makers of the capture).
func TestRecordedFields(t *testing.T) {
	for _, c := range captures {
		if !c.decoded {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			fs := frames(t, c.name)
			lines := decodes(t, c.name)
			require.Len(t, lines, len(fs))
			for i := range fs {
				checkFields(t, &fs[i], lines[i])
			}
		})
	}
}

var decodeLine = regexp.MustCompile(`^ *(\d+) +\d+\.\d{6} (\S+) > (\S+)  ([^(]+) \((\d+)[^)]*\)  (.*)$`)

// decodes returns the submatches of the lines of a .txt that decode a packet.
func decodes(t *testing.T, name string) (lines [][]string) {
	t.Helper()
	f := must.Get(os.Open(filepath.Join(testdata, name+".txt")))(t)
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if m := decodeLine.FindStringSubmatch(s.Text()); m != nil {
			lines = append(lines, m)
		}
	}
	return lines
}

// decodedFields gives the value of each field=value of a decoded line, and says
// whether the opcode must carry the header that it belongs to.
var decodedFields = map[string]struct {
	header wire.Headers
	value  func(f *wiretest.Frame, p *wire.Packet) uint64
}{
	"dqp":      {0, func(_ *wiretest.Frame, p *wire.Packet) uint64 { return uint64(p.DestQPN) }},
	"psn":      {0, func(_ *wiretest.Frame, p *wire.Packet) uint64 { return uint64(p.PSN) }},
	"len":      {0, func(_ *wiretest.Frame, p *wire.Packet) uint64 { return uint64(len(p.Payload)) }},
	"pad":      {0, func(_ *wiretest.Frame, p *wire.Packet) uint64 { return uint64(p.Pad) }},
	"tc":       {0, func(f *wiretest.Frame, _ *wire.Packet) uint64 { return uint64(f.Class) }},
	"ttl":      {0, func(f *wiretest.Frame, _ *wire.Packet) uint64 { return uint64(f.TTL) }},
	"dmalen":   {wire.HasRETH, func(_ *wiretest.Frame, p *wire.Packet) uint64 { return uint64(p.RETH.DMALen) }},
	"syndrome": {wire.HasAETH, func(_ *wiretest.Frame, p *wire.Packet) uint64 { return uint64(p.AETH.Syndrome) }},
	"msn":      {wire.HasAETH, func(_ *wiretest.Frame, p *wire.Packet) uint64 { return uint64(p.AETH.MSN) }},
	"credits":  {wire.HasAETH, func(_ *wiretest.Frame, p *wire.Packet) uint64 { return uint64(p.AETH.Syndrome.Credits()) }},
	"timer":    {wire.HasAETH, func(_ *wiretest.Frame, p *wire.Packet) uint64 { return uint64(p.AETH.Syndrome.RNRTimer()) }},
	"orig":     {wire.HasAtomicAckETH, func(_ *wiretest.Frame, p *wire.Packet) uint64 { return p.AtomicAckETH.Orig }},
	"swap/add": {wire.HasAtomicETH, func(_ *wiretest.Frame, p *wire.Packet) uint64 { return p.AtomicETH.SwapAdd }},
	"cmp":      {wire.HasAtomicETH, func(_ *wiretest.Frame, p *wire.Packet) uint64 { return p.AtomicETH.Compare }},
	"imm":      {wire.HasImmDt, func(_ *wiretest.Frame, p *wire.Packet) uint64 { return uint64(p.ImmDt.Data) }},
	"qkey":     {wire.HasDETH, func(_ *wiretest.Frame, p *wire.Packet) uint64 { return uint64(p.DETH.QKey) }},
	"sqp":      {wire.HasDETH, func(_ *wiretest.Frame, p *wire.Packet) uint64 { return uint64(p.DETH.SrcQPN) }},
	"tid":      {wire.HasDETH, func(_ *wiretest.Frame, p *wire.Packet) uint64 { return binary.BigEndian.Uint64(p.Payload[8:]) }},
	"icrc": {0, func(f *wiretest.Frame, _ *wire.Packet) uint64 {
		return uint64(binary.BigEndian.Uint32(f.UDP[len(f.UDP)-4:]))
	}},
	// These two are names of fields in several headers.
	"va": {0, func(_ *wiretest.Frame, p *wire.Packet) uint64 { return p.RETH.VA | p.AtomicETH.VA }},
	"rkey": {0, func(_ *wiretest.Frame, p *wire.Packet) uint64 {
		return uint64(p.RETH.RKey | p.AtomicETH.RKey | p.IETH.RKey)
	}},
}

func checkFields(t *testing.T, f *wiretest.Frame, m []string) {
	t.Helper()
	where := m[0]
	require.Equal(t, m[1], strconv.Itoa(f.Number), where)
	require.Equal(t, m[2], f.Src.Addr().String(), where)
	require.Equal(t, m[3], f.Dst.Addr().String(), where)
	var p wire.Packet
	require.NoError(t, p.Parse(f.UDP[:len(f.UDP)-wire.ICRCLen]), where)
	require.Equal(t, m[5], strconv.Itoa(int(p.Opcode)), where)
	require.Equal(t, squash(m[4]), squash(p.Opcode.String()), where)
	require.False(t, p.MigReq, where)
	require.Equal(t, wire.DefaultPKey, p.PKey, where)
	require.False(t, p.FECN || p.BECN, where)

	var seen wire.Headers
	for _, word := range strings.Fields(strings.NewReplacer("(", " ", ")", " ").Replace(m[6])) {
		switch word {
		case "A-", "AS", "-S", "--":
			require.Equal(t, word[0] == 'A', p.AckReq, where)
			require.Equal(t, word[1] == 'S', p.Solicited, where)
		}
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			continue
		}
		field, ok := decodedFields[key]
		require.True(t, ok, "field %q: %s", key, where)
		want, err := strconv.ParseUint(value, 0, 64)
		require.NoError(t, err, where)
		require.True(t, p.Opcode.Carries(field.header), "%s in %v: %s", key, p.Opcode.Headers(), where)
		require.Equal(t, want, field.value(f, &p), "%s: %s", key, where)
		seen |= field.header
	}
	// va and rkey stand for RETH or AtomicETH beside dmalen or swap; rkey alone
	// for IETH.
	if strings.Contains(m[6], "ieth") {
		seen |= wire.HasIETH
	}
	require.Equal(t, p.Opcode.Headers(), seen, where)
	checkSyndrome(t, m[6], p.AETH.Syndrome)
}

// checkSyndrome compares the words in which a line explains a syndrome.
func checkSyndrome(t *testing.T, line string, s wire.Syndrome) {
	t.Helper()
	require.False(t, s.IsReserved(), line)
	switch {
	case strings.Contains(line, "(ACK"):
		require.True(t, s.IsACK(), line)
	case strings.Contains(line, "(RNR NAK"):
		require.True(t, s.IsRNR(), line)
	case strings.Contains(line, "(NAK"):
		require.True(t, s.IsNAK(), line)
		require.Contains(t, line, s.NAK().String())
	}
}

// squash makes the names of Wireshark and of the specification alike.
func squash(name string) string {
	name = strings.NewReplacer(" ", "", "_", "", "; tshark: Unknown", "").Replace(strings.ToUpper(name))
	switch name {
	case "RCCMPSWAP":
		return "RCCOMPARESWAP"
	}
	return name
}
