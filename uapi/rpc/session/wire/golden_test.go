package wire_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

// examples has a message of each type and of each flag, under its name in
// testdata/messages.txt.
var examples = []struct {
	name    string
	message wire.Message
}{
	{"REQUEST with define, metadata, timeout, body", wire.Message{Type: wire.Request, Flags: wire.Define, Slot: 3, Sequence: 1, Method: 1, Timeout: 100_000,
		Name: []byte("/kv/Put"), Metadata: []byte("md"), Body: []byte("body")}},
	{"REQUEST of a known method, empty", wire.Message{Type: wire.Request, Slot: 255, Sequence: 0xffffffff, Method: 256}},
	{"REQUEST with an offered body", wire.Message{Type: wire.Request, Flags: wire.Offered, Slot: 1, Sequence: 2, Method: 2, Offer: wire.Offer{Addr: 0x1122334455667788, RKey: 0x99aabbcc, Length: wire.MaxBody}}},
	{"REPLY with metadata and body", wire.Message{Type: wire.Reply, Slot: 3, Sequence: 1, Metadata: []byte("md"), Body: []byte("body")}},
	{"REPLY with a status and no body", wire.Message{Type: wire.Reply, Flags: wire.Error | wire.Bare, Slot: 3, Sequence: 1, Code: 5, Text: []byte("no such key"), Details: []byte{1, 2}}},
	{"REPLY of the session itself", wire.Message{Type: wire.Reply, Flags: wire.Error | wire.Session, Slot: 3, Sequence: 1, Code: wire.DataLoss}},
	{"REPLY with an offered body and a status", wire.Message{Type: wire.Reply, Flags: wire.Error | wire.Offered, Slot: 3, Sequence: 1, Code: 2, Offer: wire.Offer{Addr: 1, RKey: 2, Length: 3}}},
	{"CANCEL", wire.Message{Type: wire.Cancel, Slot: 3, Sequence: 1}},
	{"STREAM_OPEN", wire.Message{Type: wire.StreamOpen, Flags: wire.Define, Slot: 4, Sequence: 7, Stream: 1, Method: 3, Name: []byte("s"), Metadata: []byte("m")}},
	{"STREAM_DATA", wire.Message{Type: wire.StreamData, Slot: 4, Sequence: 7, Stream: 1, Body: []byte("x")}},
	{"STREAM_DATA with headers alone", wire.Message{Type: wire.StreamData, Flags: wire.Bare, Slot: 4, Sequence: 7, Stream: 1, Metadata: []byte("headers")}},
	{"STREAM_DATA with an offered body", wire.Message{Type: wire.StreamData, Flags: wire.Offered, Slot: 4, Sequence: 7, Stream: 1, Offer: wire.Offer{Addr: 1, RKey: 2, Length: 3}}},
	{"STREAM_HALF", wire.Message{Type: wire.StreamHalf, Slot: 4, Sequence: 7, Stream: 1}},
	{"STREAM_END with a status and trailers", wire.Message{Type: wire.StreamEnd, Flags: wire.Error, Slot: 4, Sequence: 7, Stream: 1, Metadata: []byte("trailers"), Code: 8, Text: []byte("full")}},
	{"STREAM_WINDOW", wire.Message{Type: wire.StreamWindow, Slot: 4, Sequence: 7, Stream: 1, Bytes: 32768, Messages: 8}},
	{"TAKEN", wire.Message{Type: wire.Taken, Slot: 4, Sequence: 7, Stream: 1}},
	{"GOAWAY", wire.Message{Type: wire.GoAway}},
	{"VOID", wire.Message{Type: wire.Void, Slot: 3, Sequence: 2}},
}

// goldens reads testdata/messages.txt: a name and, on the next line, bytes.
func goldens(t testing.TB) map[string][]byte {
	t.Helper()
	text := must.Get(os.ReadFile("testdata/messages.txt"))(t)
	all := map[string][]byte{}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		all[lines[i]] = must.Get(hex.DecodeString(strings.ReplaceAll(lines[i+1], " ", "")))(t)
	}
	return all
}

// dirty returns an empty slice whose array is full of 0xa5, so that a byte
// which an Append leaves unwritten shows.
func dirty(n int) []byte { return bytes.Repeat([]byte{0xa5}, n)[:0] }

func TestGoldenMessages(t *testing.T) {
	golden := goldens(t)
	require.Len(t, golden, len(examples))
	for _, x := range examples {
		t.Run(x.name, func(t *testing.T) {
			m := x.message
			require.NoError(t, m.Check())
			got := m.Append(dirty(m.Length()))
			require.Equal(t, hex.EncodeToString(golden[x.name]), hex.EncodeToString(got))
			require.Equal(t, len(got), m.Length())
			var back wire.Message
			rest := must.Get(back.Parse(append(got, got...)))(t)
			require.Equal(t, got, rest)
			require.Equal(t, got, back.Append(nil))
			for _, part := range [][]byte{back.Name, back.Metadata, back.Text, back.Details, back.Body} {
				require.Equal(t, len(part), cap(part), "appending to a part must not reach the next")
			}
		})
	}
}

// TestEveryPrefix: no part of a message is one.
func TestEveryPrefix(t *testing.T) {
	for _, x := range examples {
		b := x.message.Append(nil)
		var m wire.Message
		for n := range b {
			_, err := m.Parse(b[:n])
			refused(t, err)
		}
	}
}

func refused(t *testing.T, err error) {
	t.Helper()
	var e *wire.Breach
	require.True(t, errors.As(err, &e), "%v", err)
	require.ErrorIs(t, err, syscall.EPROTO)
	require.NotContains(t, err.Error(), "\n")
}

// TestRefused: fields that no message has are neither written nor read.
func TestRefused(t *testing.T) {
	request := wire.Message{Type: wire.Request, Method: 1}
	with := func(change func(*wire.Message)) wire.Message {
		m := request
		change(&m)
		return m
	}
	for name, m := range map[string]wire.Message{
		"type 0":                    {},
		"type 9":                    {Type: 9},
		"type 13":                   {Type: 13},
		"an unknown flag":           with(func(m *wire.Message) { m.Flags = 64 }),
		"BARE of a request":         with(func(m *wire.Message) { m.Flags = wire.Bare }),
		"no method":                 {Type: wire.Request},
		"a name of nothing":         with(func(m *wire.Message) { m.Flags = wire.Define }),
		"a stream's number":         with(func(m *wire.Message) { m.Stream = 1 }),
		"an offer of nothing":       with(func(m *wire.Message) { m.Flags = wire.Offered }),
		"a method in a reply":       {Type: wire.Reply, Method: 1},
		"a timeout in a reply":      {Type: wire.Reply, Timeout: 1},
		"bare with a body":          {Type: wire.Reply, Flags: wire.Bare, Body: []byte{1}},
		"a session's status, none":  {Type: wire.Reply, Flags: wire.Session},
		"metadata of a CANCEL":      {Type: wire.Cancel, Metadata: []byte{1}},
		"a body of a STREAM_OPEN":   {Type: wire.StreamOpen, Method: 1, Body: []byte{1}},
		"a slot of a GOAWAY":        {Type: wire.GoAway, Slot: 1},
		"a body of a STREAM_END":    {Type: wire.StreamEnd, Body: []byte{1}},
		"a long name":               with(func(m *wire.Message) { m.Flags, m.Name = wire.Define, make([]byte, wire.MaxName+1) }),
		"an offer beyond the limit": with(func(m *wire.Message) { m.Flags, m.Offer.Length = wire.Offered, wire.MaxBody+1 }),
	} {
		t.Run(name, func(t *testing.T) {
			require.Error(t, m.Check())
			require.NotContains(t, m.Check().Error(), "\n")
			var back wire.Message
			_, err := back.Parse(m.Append(nil))
			refused(t, err)
		})
	}
	long := with(func(m *wire.Message) { m.Metadata = make([]byte, 1<<16) })
	require.ErrorIs(t, long.Check(), syscall.EMSGSIZE)
}

func TestTimeout(t *testing.T) {
	for _, x := range []struct {
		ns   int64
		want uint32
	}{{-5, 1}, {0, 1}, {1, 1}, {10_000, 1}, {10_001, 2}, {1_000_000_000, 100_000}, {1 << 62, 0xffffffff}, {-1 << 63, 1}} {
		require.Equal(t, x.want, wire.Timeout(x.ns), "%d ns", x.ns)
	}
}

func TestNoAllocations(t *testing.T) {
	m, buffer := examples[0].message, make([]byte, 0, 256)
	var back wire.Message
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if rest, err := back.Parse(m.Append(buffer)); err != nil || len(rest) > 0 || back.Check() != nil {
			t.Fatal("an example is refused")
		}
	}))
}

// FuzzMessage parses any bytes. A message that is read passes Check, and comes
// back byte for byte when it is written; the rest is the bytes that follow.
func FuzzMessage(f *testing.F) {
	for _, b := range goldens(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		var m wire.Message
		rest, err := m.Parse(b)
		if err != nil {
			refused(t, err)
			return
		}
		if err := m.Check(); err != nil {
			t.Fatalf("%+v was read: %v", m, err)
		}
		if out := m.Append(dirty(len(b))); !bytes.Equal(append(out, rest...), b) || m.Length()+len(rest) != len(b) {
			t.Fatalf("%x became %x", b, out)
		}
		if !bytes.Equal(b, before) {
			t.Fatal("Parse changed its input")
		}
	})
}
