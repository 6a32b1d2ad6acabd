package qmux

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket/layers"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

func TestMain(m *testing.M) { leak.Main(m) }

// lines collects what a tracker shows.
func lines() (*Tracker, *strings.Builder) {
	out := new(strings.Builder)
	return New(func(l *Line) { out.Write(l.AppendText(nil, "15:04:05.000000")) }), out
}

// capture shows a capture file, as far as it can be read.
func capture(b []byte) string {
	t, out := lines()
	r, err := dissect.NewReader(bytes.NewReader(b), 0, dissect.MaxUnzipped)
	if err != nil {
		return ""
	}
	r.Other = t.Other
	for {
		var p dissect.Packet
		if r.Next(&p) != nil {
			break
		}
		t.Packet(&p)
	}
	t.End()
	return out.String()
}

// TestRecordings: sessions over QMux with its server. TCP's was captured on lo
// by tshark, whose reassembly gave the same bytes; RDMA's by the soft device of
// the client, which lost a fifth of what it sent.
func TestRecordings(t *testing.T) {
	for _, name := range []string{"tcp.pcapng", "rdma.pcapng"} {
		b := must.Get(os.ReadFile(filepath.Join("testdata", name)))(t)
		want := must.Get(os.ReadFile(filepath.Join("testdata", name+".txt")))(t)
		require.Equal(t, string(want), capture(b), name)
	}
}

// stream is a sender's bytes: parameters, and streams of several records.
func stream() []byte {
	p := wire.Parameters{InitialMaxData: 9}
	b := appendRecord(nil, &wire.Frame{Type: wire.TypeParameters, Data: p.Append(nil)}, &wire.Frame{Type: wire.TypePing, Sequence: 1})
	for i := range 20 {
		b = appendRecord(b, &wire.Frame{Type: wire.StreamType(i > 0, true, i == 19), Stream: 4, Offset: uint64(i * 100), Data: make([]byte, 100)})
	}
	return appendRecord(b, &wire.Frame{Type: wire.TypeApplicationClose, Code: 42, Data: []byte("bye")})
}

func appendRecord(b []byte, frames ...*wire.Frame) []byte {
	var body []byte
	for _, f := range frames {
		body = f.Append(body)
	}
	return append(wire.AppendVarint(b, uint64(len(body))), body...)
}

// TestStream reads a sender's bytes to every length that they may be cut to.
func TestStream(t *testing.T) {
	b := stream()
	whole := ""
	for n := len(b); n >= 0; n-- {
		tr, out := lines()
		require.NoError(t, tr.Stream(bytes.NewReader(b[:n])))
		tr.End()
		if n == len(b) {
			whole = out.String()
			require.Contains(t, whole, "record 1 length 21: QX_TRANSPORT_PARAMETERS len=3 (initial_max_data=9); QX_PING sequence=1\n")
			require.Contains(t, whole, "record 22 length 6: APPLICATION_CLOSE code=42 \"bye\"\n")
			require.NotContains(t, whole, "problem")
			continue
		}
		shown, problem, cut := strings.Cut(out.String(), "problem: ")
		require.True(t, strings.HasPrefix(whole, shown), "%d bytes: %s", n, shown)
		if cut {
			require.Regexp(t, `^it ends within (the Size of a record|a record of \d+ bytes, of which it has \d+)\n$`, problem)
		}
	}
}

func TestStreamProblems(t *testing.T) {
	open := appendRecord(nil, &wire.Frame{Type: wire.TypeParameters})
	with := func(more string) string { return string(open) + more }
	for _, c := range []struct{ name, bytes, want string }{
		{"another protocol", "HTTP/1.1 400 Bad Request\r\n\r\n", `problem: not QMux: it begins with "HTTP/1.1 400 Bad"`},
		{"TLS", "\x16\x03\x01\x00\x05hello", `problem: not QMux: it begins with "\x16\x03\x01\x00\x05hello"`},
		{"an empty record", with("\x00\x00\x00\x00"), "problem: record without a frame; nothing behind it can be read"},
		{"a record that is too long", with("\xbf\xff\xff\xff\x00"), "problem: record larger than max_record_size; nothing behind it can be read"},
		{"a forbidden frame", with("\x01\x01"), "record 2 length 1: problem: PING: frame type that QMux forbids"},
		{"an unknown frame", with("\x02\x40\x99"), "record 2 length 2: problem: frame 0x99: unknown frame type"},
		{"a frame that is cut, and a record behind it", with("\x01\x10\x02\x10\x07"), "record 2 length 1: problem: MAX_DATA: frame ends behind its record\nrecord 3 length 2: MAX_DATA limit=7"},
		{"padding", with("\x04\x00\x00\x00\x01"), "record 2 length 4: PADDING len=3; problem: PING: frame type that QMux forbids"},
		{"a close", with("\x0a\x1c\x0a\x08\x06reason"), `record 2 length 10: CONNECTION_CLOSE PROTOCOL_VIOLATION frame=STREAM "reason"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr, out := lines()
			require.NoError(t, tr.Stream(strings.NewReader(c.bytes)))
			tr.End()
			_, got, _ := strings.Cut(out.String(), "QX_TRANSPORT_PARAMETERS len=0 ()\n")
			if got == "" {
				got = out.String()
			}
			require.Equal(t, c.want+"\n", got)
		})
	}
	tr, _ := lines()
	require.ErrorIs(t, tr.Stream(io.MultiReader(bytes.NewReader(open), failing{})), os.ErrClosed)
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, os.ErrClosed }

var segmentKey = tcpKey{netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2")}

// tcpSegments cuts b into segments behind a SYN with the number before first.
func tcpSegments(r *rand.Rand, first uint32, b []byte) []*layers.TCP {
	list := []*layers.TCP{{SYN: true, Seq: first - 1}}
	for at := 0; at < len(b); {
		n := min(1+r.IntN(90), len(b)-at)
		s := &layers.TCP{Seq: first + uint32(at)}
		s.Payload = b[at : at+n]
		list = append(list, s)
		at += n
	}
	return append(list, &layers.TCP{FIN: true, Seq: first + uint32(len(b))})
}

// TestSegments gives segments late, twice, and cut at other places.
func TestSegments(t *testing.T) {
	b := stream()
	want := ""
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		first := ^uint32(0) - uint32(r.IntN(2*len(b))) // the numbers may wrap
		list := tcpSegments(r, first, b)
		if seed > 0 {
			list = append(list, tcpSegments(r, first, b)...)
			r.Shuffle(len(list)-1, func(i, k int) { list[i+1], list[k+1] = list[k+1], list[i+1] })
		}
		tr, out := lines()
		for _, s := range list {
			tr.segment(segmentKey, s)
		}
		tr.End()
		if seed == 0 {
			want = out.String()
			require.Contains(t, want, "\n127.0.0.1:1 > 127.0.0.1:2 record 22 length 6: APPLICATION_CLOSE code=42 \"bye\"\n127.0.0.1:1 > 127.0.0.1:2 end\n")
		}
		require.Equal(t, want, out.String(), "seed %d", seed)
		require.Equal(t, held{}, tr.held)
	}
}

// TestMissingSegment: records before a hole are shown, and the hole once.
func TestMissingSegment(t *testing.T) {
	list := tcpSegments(rand.New(rand.NewPCG(1, 1)), 7, stream())
	for i := 1; i < len(list)-1; i++ {
		tr, out := lines()
		for k, s := range list {
			if k != i {
				tr.segment(segmentKey, s)
			}
		}
		tr.End()
		text := out.String()
		require.Equal(t, 1, strings.Count(text, "problem: "), text)
		require.True(t, strings.HasSuffix(text, fmt.Sprintf("problem: %d bytes are missing in the capture; nothing behind them can be read\n", len(list[i].Payload))), text)
		require.Equal(t, held{}, tr.held)
	}
}

// TestPartsOfConnections: connections without a beginning or an end, and bytes
// that come again.
func TestPartsOfConnections(t *testing.T) {
	b := stream()
	segment := func(seq uint32, data []byte) *layers.TCP {
		s := &layers.TCP{Seq: seq}
		s.Payload = data
		return s
	}
	tr, out := lines()
	tr.segment(segmentKey, segment(500, b[40:200]))
	tr.segment(segmentKey, segment(660, b[200:]))
	tr.End()
	require.Equal(t, "127.0.0.1:1 > 127.0.0.1:2 problem: not the beginning of QMux: the capture begins within the stream, or it is another protocol\n", out.String())

	tr, out = lines() // nothing was said
	tr.segment(segmentKey, &layers.TCP{SYN: true})
	tr.segment(segmentKey, &layers.TCP{RST: true, Seq: 1})
	tr.End()
	require.Empty(t, out.String())

	tr, out = lines() // the ports are used anew
	for _, first := range []uint32{1, 1 << 20} {
		tr.segment(segmentKey, &layers.TCP{SYN: true, Seq: first - 1})
		tr.segment(segmentKey, &layers.TCP{SYN: true, Seq: first - 1})
		tr.segment(segmentKey, segment(first, b[:35]))
	}
	tr.segment(segmentKey, &layers.TCP{RST: true, Seq: 1<<20 + 35})
	tr.End()
	require.Equal(t, 2, strings.Count(out.String(), "record 1 length 21: "), out.String())
	require.Contains(t, out.String(), "2 problem: it ends within a record of")
	require.Contains(t, out.String(), "2 reset; problem: it ends within a record of")
}

// TestBounds: the bytes that wait, and the connections that are followed, are
// bounded.
func TestBounds(t *testing.T) {
	tr, out := lines()
	tr.segment(segmentKey, &layers.TCP{SYN: true})
	for i := range maxPieces + 1 {
		s := &layers.TCP{Seq: uint32(10 + i)}
		s.Payload = []byte{1}
		tr.segment(segmentKey, s)
	}
	require.Contains(t, out.String(), "problem: 9 bytes are missing")
	require.Equal(t, held{}, tr.held)

	tr, out = lines()
	for i := range maxDirections + 5 {
		key := segmentKey
		key.src = netip.AddrPortFrom(key.src.Addr(), uint16(i))
		tr.segment(key, &layers.TCP{SYN: true})
	}
	require.Equal(t, 5, tr.Lost)
	tr.End()
	require.Empty(t, out.String())
}

func FuzzStream(f *testing.F) {
	f.Add(stream()[:200])
	f.Fuzz(func(t *testing.T, b []byte) {
		tr, out := lines()
		require.NoError(t, tr.Stream(bytes.NewReader(b)))
		tr.End()
		whole := out.String()
		tr, out = lines() // a byte at a time it is the same
		d := tr.direction(0, "file", "", "")
		for i := range b {
			d.bytes(time.Time{}, b[i:i+1])
		}
		tr.End()
		if !strings.Contains(whole, "not QMux") { // which shows as many bytes as are there
			require.Equal(t, whole, out.String())
		}
	})
}

func FuzzCapture(f *testing.F) {
	for _, name := range []string{"tcp.pcapng", "rdma.pcapng"} {
		b := must.Get(os.ReadFile(filepath.Join("testdata", name)))(f)
		f.Add(b[:min(len(b), 3000)])
	}
	f.Fuzz(func(t *testing.T, b []byte) { capture(b) })
}
