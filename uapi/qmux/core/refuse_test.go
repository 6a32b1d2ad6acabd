package core

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

// refusal is something that a client does wrong. The server must close the
// connection, and the client must receive the code.
type refusal struct {
	name   string
	code   wire.Code
	frames []wire.Frame // in one record
	hex    string       // or whole records
	first  bool         // before anything else, parameters included
	change func(*Config)
	setup  func(p *pair)
}

// Streams of the client that the table's rows use: 0 has had "hello", 4 the
// same and its end, 8 a reset at 5 bytes. 1 is the server's, 3 its
// unidirectional one. 12 and 2 were never opened.
func openStreams(p *pair) {
	for range 3 {
		id := p.open(p.a, false)
		p.write(p.a, id, "hello", id == 4)
	}
	p.run()
	require.NoError(p.t, p.a.Reset(8, 7))
	for _, uni := range []bool{false, true} {
		p.write(p.b, p.open(p.b, uni), "hello", false)
	}
	p.run()
}

func small(cfg *Config) {
	cfg.StreamWindow, cfg.MaxStreamWindow, cfg.Window, cfg.MaxWindow = 10, 10, 30, 30
}

func narrow(cfg *Config) {
	cfg.StreamWindow, cfg.MaxStreamWindow, cfg.Window, cfg.MaxWindow = 1000, 1000, 30, 30
}

func draft1(cfg *Config) { cfg.Draft = wire.Draft1 }

const (
	magic      = "ff5153300d0a0d0a"
	typeStream = wire.TypeStream | 6 // with offset and length
)

func data(id wire.StreamID, offset uint64, s string) wire.Frame {
	return wire.Frame{Type: typeStream, Stream: id, Offset: offset, Data: []byte(s)}
}

func end(id wire.StreamID, offset uint64, s string) wire.Frame {
	return wire.Frame{Type: typeStream | 1, Stream: id, Offset: offset, Data: []byte(s)}
}

func refusals() []refusal {
	f := func(frames ...wire.Frame) []wire.Frame { return frames }
	return []refusal{
		// Records and frames.
		{name: "PING", code: 0x7, hex: "01 01"},
		{name: "unknown frame", code: 0x7, hex: "01 21"},
		{name: "empty record", code: 0x7, hex: "00"},
		{name: "empty record first", code: 0x7, hex: "00", first: true},
		{name: "record too large", code: 0x7, hex: "7fff"},
		{name: "record too large first", code: 0x7, hex: "7fff", first: true},
		{name: "frame type in two bytes", code: 0xa, hex: "02 4000"},
		{name: "last frame cut short", code: 0x7, hex: "05 00 0a 00 02 61"},
		{name: "offset 2^62", code: 0x7, hex: "0c 0e 00 ffffffffffffffff 01 61"},

		// Parameters.
		{name: "another frame first", code: 0xa, hex: "06 1d 2a 03 627965", first: true},
		{name: "PING first", code: 0xa, hex: "01 01", first: true},
		{name: "another frame first, draft 1", code: 0x8, hex: "06 1d 2a 03 627965", first: true, change: draft1},
		{name: "parameters twice", code: 0xa, hex: "09" + magic + "00"},
		{name: "parameters twice, other magic", code: 0xa, hex: "09 ff514d580d0a0d0a 00"},
		{name: "parameters twice in a record", code: 0xa, hex: "12" + magic + "00" + magic + "00", first: true},
		{name: "parameters twice, draft 1", code: 0x8, hex: "09" + magic + "00", change: draft1},
		{name: "parameters cut short", code: 0x7, hex: "09" + magic + "01", first: true},
		{name: "forbidden parameter", code: 0x8, hex: "0d" + magic + "04 0302 45c0", first: true},
		{name: "parameters of 5000 bytes", code: 0x8, first: true, frames: f(wire.Frame{
			Type: wire.TypeParameters, Data: append([]byte{27, 0x53, 0x84}, make([]byte, 4996)...)})},

		// Order and ends of streams.
		{name: "gap", code: 0xa, frames: f(data(0, 6, "x")), setup: openStreams},
		{name: "overlap", code: 0xa, frames: f(data(0, 4, "x")), setup: openStreams},
		{name: "offset 0 again", code: 0xa, frames: f(data(0, 0, "hello")), setup: openStreams},
		{name: "gap at the start", code: 0xa, frames: f(data(12, 1, "x")), setup: openStreams},
		{name: "data behind the end", code: 0x6, frames: f(data(4, 5, "x")), setup: openStreams},
		{name: "end behind the end", code: 0x6, frames: f(end(4, 6, "")), setup: openStreams},
		{name: "end before the end", code: 0x6, frames: f(end(4, 4, "")), setup: openStreams},
		{name: "data behind a reset", code: 0x6, frames: f(data(8, 5, "x")), setup: openStreams},
		{name: "reset before what was sent", code: 0x6, frames: f(wire.Frame{Type: wire.TypeResetStream, FinalSize: 4}), setup: openStreams},
		{name: "reset behind the end", code: 0x6, frames: f(wire.Frame{Type: wire.TypeResetStream, Stream: 4, FinalSize: 6}), setup: openStreams},
		{name: "another reset", code: 0x6, frames: f(wire.Frame{Type: wire.TypeResetStream, Stream: 8, Code: 7, FinalSize: 6}), setup: openStreams},
		{name: "reset with another code", code: 0x5, frames: f(wire.Frame{Type: wire.TypeResetStream, Stream: 8, Code: 8, FinalSize: 5}), setup: openStreams},

		// Streams that are not, or not in this direction.
		{name: "data on the server's unidirectional stream", code: 0x5, frames: f(data(3, 0, "x")), setup: openStreams},
		{name: "reset on it", code: 0x5, frames: f(wire.Frame{Type: wire.TypeResetStream, Stream: 3}), setup: openStreams},
		{name: "blocked on it", code: 0x5, frames: f(wire.Frame{Type: wire.TypeStreamDataBlocked, Stream: 3}), setup: openStreams},
		{name: "stop on the client's unidirectional stream", code: 0x5, frames: f(data(2, 0, "x"), wire.Frame{Type: wire.TypeStopSending, Stream: 2})},
		{name: "credit for it", code: 0x5, frames: f(data(2, 0, "x"), wire.Frame{Type: wire.TypeMaxStreamData, Stream: 2})},
		{name: "data on a stream that the server never opened", code: 0x5, frames: f(data(5, 0, "x")), setup: openStreams},
		{name: "stop of it", code: 0x5, frames: f(wire.Frame{Type: wire.TypeStopSending, Stream: 5}), setup: openStreams},
		{name: "credit for a stream that was never opened", code: 0x5, frames: f(wire.Frame{Type: wire.TypeMaxStreamData, Stream: 7}), setup: openStreams},

		// Credit.
		{name: "a stream too many", code: 0x4, frames: f(data(400, 0, "x"))},
		{name: "a unidirectional stream too many", code: 0x4, frames: f(data(402, 0, "x"))},
		{name: "a stop that opens a stream too many", code: 0x4, frames: f(wire.Frame{Type: wire.TypeStopSending, Stream: 400})},
		{name: "more than the stream's credit", code: 0x3, frames: f(data(0, 5, "123456")), change: small, setup: openStreams},
		{name: "reset beyond the stream's credit", code: 0x3, frames: f(wire.Frame{Type: wire.TypeResetStream, FinalSize: 11}), change: small, setup: openStreams},
		{name: "more than the connection's credit", code: 0x3, frames: f(data(0, 5, "1234567890123456")), change: narrow, setup: openStreams},
		{name: "more than it in two streams", code: 0x3, frames: f(data(0, 5, "12345678"), data(12, 0, "12345678")), change: narrow, setup: openStreams},
		{name: "reset beyond the connection's credit", code: 0x3, frames: f(wire.Frame{Type: wire.TypeResetStream, FinalSize: 21}), change: narrow, setup: openStreams},
		{name: "reset at beyond the connection's credit", code: 0x3, change: narrow, setup: openStreams,
			frames: f(wire.Frame{Type: wire.TypeResetStreamAt, FinalSize: 21, ReliableSize: 6})},

		// Extensions.
		{name: "RESET_STREAM_AT, draft 1", code: 0x7, frames: f(wire.Frame{Type: wire.TypeResetStreamAt}), change: draft1},
		{name: "reliable size beyond the final size", code: 0x7, hex: "05 24 00 00 01 02"},
		{name: "datagram that nobody wants", code: 0xa, hex: "02 30 00", change: func(cfg *Config) { cfg.MaxDatagram = 0 }},
		{name: "datagram too long", code: 0xa, hex: "0b 30 00010203040506070809", change: func(cfg *Config) { cfg.MaxDatagram = 10 }},
		{name: "datagram with length too long", code: 0xa, hex: "0b 31 09 000102030405060708", change: func(cfg *Config) { cfg.MaxDatagram = 10 }},
		{name: "ping twice", code: 0xa, frames: f(wire.Frame{Type: wire.TypePing, Sequence: 5}, wire.Frame{Type: wire.TypePing, Sequence: 5})},
		{name: "ping that falls", code: 0xa, frames: f(wire.Frame{Type: wire.TypePing, Sequence: 5}, wire.Frame{Type: wire.TypePing, Sequence: 4})},
		{name: "pong unsent", code: 0xa, frames: f(wire.Frame{Type: wire.TypePong, Sequence: 5})},
		{name: "pong 0", code: 0xa, frames: f(wire.Frame{Type: wire.TypePong}), setup: func(p *pair) { p.b.Ping(); p.run() }},
	}
}

// hear gives a server what a row has, whole or cut. A row with a code closes
// the connection, and the code reaches the peer; one without does not.
func hear(t *testing.T, r refusal) {
	for _, split := range []int{0, 1, 3} {
		p := newPair(t, r.change)
		p.split = split
		if !r.first {
			p.run()
			require.Nil(t, p.b.Cause())
		}
		if r.setup != nil {
			r.setup(p)
		}
		bytes := record(r.frames...)
		if r.hex != "" {
			bytes = unhex(t, r.hex)
		}
		before := p.b.Counters().RecordsReceived
		p.give(p.b, bytes)
		if r.code == 0 {
			require.Nil(t, p.b.Cause())
			require.Equal(t, before+1, p.b.Counters().RecordsReceived)
			continue
		}
		require.NotNil(t, p.b.Cause(), "the server does not mind")
		require.False(t, p.b.Cause().Remote)
		if r.first {
			p.a.Transmit(p.now, p.buf) // its parameters, which never arrive
		}
		p.run()
		got := p.a.Cause()
		require.NotNil(t, got, "the client does not learn it")
		require.True(t, got.Remote)
		require.Equal(t, Transport, got.Kind)
		require.Equal(t, r.code, wire.Code(got.Code), got.Error())
		require.NotEmpty(t, got.Reason)
		require.True(t, p.a.Over() && p.b.Over())
	}
}

// TestRefusals holds that each mistake closes the connection with its code, and
// that this code reaches the peer, however its bytes are cut.
func TestRefusals(t *testing.T) {
	for _, r := range refusals() {
		t.Run(r.name, func(t *testing.T) { hear(t, r) })
	}
}

// TestTolerances has frames that come near to a mistake and make none.
func TestTolerances(t *testing.T) {
	f := func(frames ...wire.Frame) []wire.Frame { return frames }
	for _, r := range []refusal{
		{name: "Size in eight bytes", hex: "c000000000000001 00"},
		{name: "padding", hex: "05 00 00 00 00 00"},
		{name: "a record of the largest size", hex: "7ffe" + strings.Repeat("00", 16382)},
		{name: "the last stream", frames: f(data(396, 0, "x"))},
		{name: "all credit of the stream", frames: f(data(0, 5, "12345")), change: small, setup: openStreams},
		{name: "all credit of the connection", frames: f(data(0, 5, "123456789012345")), change: narrow, setup: openStreams},
		{name: "no data at the end", frames: f(data(4, 5, ""), end(4, 5, "")), setup: openStreams},
		{name: "no data, moq #304", frames: f(data(0, 5, "")), setup: openStreams},
		{name: "late data of a reset stream", frames: f(data(8, 2, "xx")), setup: openStreams},
		{name: "the same reset", frames: f(wire.Frame{Type: wire.TypeResetStream, Stream: 8, Code: 7, FinalSize: 5}), setup: openStreams},
		{name: "reset behind the end", frames: f(wire.Frame{Type: wire.TypeResetStream, Stream: 4, FinalSize: 5}), setup: openStreams},
		{name: "credit that falls", frames: f(wire.Frame{Type: wire.TypeMaxData, Limit: 1}, wire.Frame{Type: wire.TypeMaxStreamsBidi, Limit: 1})},
		{name: "datagram of the greatest length", hex: "0a 30 000102030405060708", change: func(cfg *Config) { cfg.MaxDatagram = 10 }},
		{name: "datagram with length of it", hex: "0a 31 08 0001020304050607", change: func(cfg *Config) { cfg.MaxDatagram = 10 }},
		{name: "pings that do not rise, draft 1", change: draft1,
			frames: f(wire.Frame{Type: wire.TypePing, Sequence: 5}, wire.Frame{Type: wire.TypePing, Sequence: 5})},
		{name: "frames behind the parameters", first: true, hex: "16" + magic + "03 04013f 31 02 6869 0a 00 03 627965"},
		{name: "magic of draft 3", first: true, hex: "09 ff514d580d0a0d0a 00"},
	} {
		t.Run(r.name, func(t *testing.T) { hear(t, r) })
	}
}
