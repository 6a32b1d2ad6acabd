package wire_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

// golden is a record of testdata/records.txt.
type golden struct {
	name   string
	record []byte
	body   []byte // of the record
	frames []string
}

func goldens(t testing.TB) []golden {
	t.Helper()
	text := must.Get(os.ReadFile("testdata/records.txt"))(t)
	var all []golden
	for _, block := range strings.Split(strings.TrimSpace(string(text)), "\n\n")[1:] {
		lines := strings.Split(block, "\n")
		record := unhex(t, lines[1])
		body, _, err := wire.ParseRecord(record, wire.DefaultMaxRecord)
		require.NoError(t, err)
		all = append(all, golden{lines[0], record, body, lines[2:]})
	}
	require.Greater(t, len(all), 15)
	return all
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	require.NoError(t, err, s)
	return b
}

// dirty returns an empty slice whose array is full of 0xa5, so that a byte
// which an Append leaves unwritten shows.
func dirty(n int) []byte { return bytes.Repeat([]byte{0xa5}, n)[:0] }

// parse returns all frames of a record without its Size.
func parse(t testing.TB, b []byte) (all []wire.Frame) {
	for len(b) > 0 {
		var f wire.Frame
		b = b[must.Get(f.Parse(b))(t):]
		all = append(all, f)
	}
	return all
}

func TestGoldenRecords(t *testing.T) {
	for _, g := range goldens(t) {
		t.Run(g.name, func(t *testing.T) {
			body, n, err := wire.ParseRecord(append(bytes.Clone(g.record), 1, 2, 3), wire.DefaultMaxRecord)
			require.NoError(t, err)
			require.Equal(t, len(g.record), n)
			require.Equal(t, len(body), cap(body), "appending to the frames must not reach the next record")
			frames := parse(t, body)

			var names []string
			out := wire.AppendVarint(dirty(len(g.record)), uint64(len(body)))
			for _, f := range frames {
				names = append(names, f.String())
				before := len(out)
				out = f.Append(out)
				require.Equal(t, len(out)-before, f.Length())
				require.Equal(t, len(f.Data), cap(f.Data))
			}
			require.Equal(t, g.frames, names)
			require.Equal(t, g.record, out)
		})
	}
}

// TestEveryFrameIsGolden holds that the vectors leave no permitted type out.
func TestEveryFrameIsGolden(t *testing.T) {
	seen := map[wire.FrameType]bool{}
	for _, g := range goldens(t) {
		for _, f := range parse(t, g.body) {
			if f.Type.IsStream() {
				f.Type = wire.TypeStream
			}
			seen[f.Type] = true
		}
	}
	for _, typ := range permitted {
		if !typ.IsStream() || typ == wire.TypeStream {
			require.True(t, seen[typ], "%v", typ)
		}
	}
}

// TestEveryPrefix: no record is found, and no error, in part of a record; and a
// record that is cut short ends within its last frame or between two.
func TestEveryPrefix(t *testing.T) {
	for _, g := range goldens(t) {
		for i := range g.record {
			frames, n, err := wire.ParseRecord(g.record[:i], wire.DefaultMaxRecord)
			require.Nil(t, frames)
			require.Zero(t, n)
			require.NoError(t, err)
		}
		var f wire.Frame
		for i := range must.Get(f.Parse(g.body))(t) {
			k, err := f.Parse(g.body[:i])
			if err == nil { // a frame without length ends where its record does
				require.True(t, f.Type == wire.TypeDatagram || f.Type.IsStream() && f.Type&2 == 0, "%s: %d", g.name, i)
				require.Equal(t, i, k)
				continue
			}
			require.ErrorIs(t, err, wire.ErrTruncated, "%s: %d", g.name, i)
		}
	}
}

func TestGoldenParameters(t *testing.T) {
	want := wire.Parameters{
		MaxIdleTimeout: 30000, InitialMaxData: 1 << 20, MaxStreamDataLocal: 256 << 10, MaxStreamDataRemote: 256 << 10,
		MaxStreamDataUni: 256 << 10, MaxStreamsBidi: 100, MaxStreamsUni: 100, MaxRecordSize: wire.DefaultMaxRecord,
	}
	full := want
	full.MaxDatagramFrameSize, full.MaxRecordSize, full.ResetStreamAt = 1200, 65536, true
	cases := map[string]wire.Parameters{
		"minimal parameters": {MaxRecordSize: wire.DefaultMaxRecord},
		"parameters: idle 30000, data 1 MiB, stream 256 KiB x3, 100/100": want,
		"the same and datagram 1200, record 65536, reset_stream_at":      full,
	}
	for _, g := range goldens(t) {
		want, ok := cases[g.name]
		if !ok {
			continue
		}
		delete(cases, g.name)
		f := parse(t, g.body)[0]
		require.True(t, f.Type.IsParameters())
		got := wire.Parameters{InitialMaxData: 7, ResetStreamAt: true}
		require.NoError(t, got.Parse(f.Data))
		require.Equal(t, want, got)
		require.Equal(t, f.Data, got.Append(dirty(len(f.Data))))
	}
	require.Empty(t, cases)
}
