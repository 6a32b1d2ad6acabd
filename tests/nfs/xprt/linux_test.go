package xprt

import (
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// recorded is the messages of testdata/linux.txt, by their names.
func recorded(t testing.TB) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for line := range strings.Lines(string(must.Get(os.ReadFile("testdata/linux.txt"))(t))) {
		if name, text, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && line[0] != '#' {
			all[name] = must.Get(hex.DecodeString(text))(t)
		}
	}
	return all
}

// requireSame holds that a header is written again as head was, but for the
// credits, and that every prefix of it is refused.
func requireSame(t *testing.T, head []byte, h header) {
	t.Helper()
	again := message(h)
	require.Equal(t, head[:8], again[:8])
	require.Equal(t, head[12:], again[12:])
	for n := range head {
		_, _, err := parse(head[:n])
		require.Error(t, err)
	}
}

// TestLinuxCalls: calls of Linux's client are read and written as they are.
// The RPC message, which repeats the XID, follows the header.
func TestLinuxCalls(t *testing.T) {
	all := recorded(t)
	for name, want := range map[string]header{
		"call lookup": {xid: 0x24015435},
		"call write": {xid: 0x6f015435, reads: []readChunk{
			{100, segment{0xc4c, 0x1000, 0x6f0154350bc5b000}},
		}},
		"call write of three segments": {xid: 0xb4015435, reads: []readChunk{
			{100, segment{0xbd8, 0x20000, 0xb401543501f19000}},
			{100, segment{0x87e, 0x20000, 0xb4015435028f8000}},
			{100, segment{0x7ee, 0x93e1, 0xb401543502914000}},
		}},
		"call read": {xid: 0x0f025435, writes: [][]segment{{{0x1d8c, 0x1000, 0x0f0254350bb85000}}}},
		"call read of three segments": {xid: 0x22025435, writes: [][]segment{{
			{0x99a, 0x20000, 0x220254350bcb6000}, {0xeae, 0x20000, 0x2202543502911000}, {0x233b, 0xa000, 0x22025435028ff000},
		}}},
		"call readdirplus": {xid: 0x04025435, reply: []segment{
			{0x996, 124, 0x040254353dd18800}, {0xeab, 0x2000, 0x040254353fb32000}, {0x2338, 4, 0x040254353dd1887c},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := all[name]
			h, rest, err := parse(b)
			require.NoError(t, err)
			require.Equal(t, want, h)
			require.Equal(t, b[:4], rest[:4])
			requireSame(t, b[:len(b)-len(rest)], h)
		})
	}
}

// TestLinuxReplies: replies of Linux's server are those that this one makes to
// the same calls, but for the credits, and a client of this package reads them.
func TestLinuxReplies(t *testing.T) {
	all := recorded(t)
	for name, c := range map[string]struct {
		proc           uint32
		written, reply int // bytes that went to the chunks
		inline         int // bytes behind the header
	}{
		"getattr":                           {inline: 112},
		"read of a segment and a part":      {written: 1000, inline: 128},
		"read to the first of two chunks":   {written: 4096, inline: 128},
		"readdirplus of a segment and part": {proc: procNoMsg, reply: 0x2aaa + 0x1722},
	} {
		t.Run(name, func(t *testing.T) {
			call, _, err := parse(all["our call "+name])
			require.NoError(t, err)
			b := all["reply "+name]
			h, rest, err := parse(b)
			require.NoError(t, err)
			require.Len(t, rest, c.inline)
			require.Equal(t, c.proc, h.proc)
			head, ours := b[:len(b)-len(rest)], call.answer(c.written, c.reply)
			require.Equal(t, head[:8], ours[:8])
			require.Equal(t, head[12:], ours[12:])
			requireSame(t, head, h)
		})
	}
	const bad = "procedure 9"
	h, _, err := parse(all["our call "+bad])
	var no *refusal
	require.ErrorAs(t, err, &no)
	require.ErrorContains(t, err, bad)
	ours, theirs := no.message(h.xid), all["reply "+bad]
	require.Equal(t, theirs[:8], ours[:8])
	require.Equal(t, theirs[12:], ours[12:])
	h, _, err = parse(theirs)
	require.NoError(t, err)
	require.EqualValues(t, procError, h.proc)
}
