package core

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

// types lists the frames that c sends now, in order, without delivering them.
func (p *pair) types(c *Conn) []string {
	var all []string
	for n := c.Transmit(p.now, p.buf); n > 0; n = c.Transmit(p.now, p.buf) {
		for _, f := range decode(p.t, p.buf[:n]) {
			all = append(all, f.String())
		}
	}
	return all
}

// TestSlowReader: a reader that does not read stops its own stream only.
func TestSlowReader(t *testing.T) {
	p := ready(t, func(cfg *Config) {
		cfg.StreamWindow, cfg.MaxStreamWindow, cfg.Window, cfg.MaxWindow = 1000, 1000, 5000, 5000
	})
	slow, quick := p.open(p.a, false), p.open(p.a, false)
	p.write(p.a, slow, strings.Repeat("s", 3000), true)
	p.run()
	n := must.Get(p.a.Unsent(slow))(t)
	require.Equal(t, 2000, n)
	for range 20 {
		p.write(p.a, quick, strings.Repeat("q", 1000), false)
		p.run()
		p.expect(p.b, quick, strings.Repeat("q", 1000), nil)
		p.run()
	}
	p.expect(p.b, slow, strings.Repeat("s", 1000), nil)
	p.run()
	p.expect(p.b, slow, strings.Repeat("s", 1000), nil)
	p.run()
	p.expect(p.b, slow, strings.Repeat("s", 1000), io.EOF)
}

// TestWindowsGrow: a window of which half is read within two round trips
// doubles, up to its bound, and the connection's with it; a slow one stays.
func TestWindowsGrow(t *testing.T) {
	grow := func(pause Duration) (stream, conn uint64) {
		p := ready(t, func(cfg *Config) {
			cfg.StreamWindow, cfg.MaxStreamWindow, cfg.Window, cfg.MaxWindow = 1000, 10_000, 1500, 12_000
			cfg.IdleTimeout = 0
		})
		p.seen = func(*Conn, []wire.Frame) { p.now += Time(5 * Millisecond) } // the path's delay
		id := p.open(p.a, true)
		for range 10 {
			p.write(p.a, id, strings.Repeat("x", 20_000), false)
			for {
				p.run()
				p.now += Time(pause)
				if _, err := read(p.b, id); err != nil {
					t.Fatal(err)
				}
				if n, _ := p.a.Unsent(id); n == 0 {
					break
				}
			}
		}
		require.Positive(t, p.b.ping.rtt)
		return p.b.streams[id].recv.window.size, p.b.window.size
	}
	stream, conn := grow(0)
	require.EqualValues(t, 10_000, stream)
	require.EqualValues(t, 12_000, conn)
	stream, conn = grow(Second)
	require.EqualValues(t, 1000, stream)
	require.EqualValues(t, 1500, conn)
}

// TestResetCredit: the final size of a reset is charged to the connection, and
// credit for bytes that never arrive is given back at once, also for a stream
// that was stopped (moq #306).
func TestResetCredit(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		p := ready(t, func(cfg *Config) {
			cfg.StreamWindow, cfg.MaxStreamWindow, cfg.Window, cfg.MaxWindow = 100, 100, 100, 100
		})
		id := p.open(p.a, true)
		p.write(p.a, id, "hello", false)
		p.run()
		if stopped {
			require.NoError(t, p.b.Stop(id, 1))
		}
		p.inject(p.b, wire.Frame{Type: wire.TypeResetStream, Stream: id, Code: 9, FinalSize: 90})
		require.Nil(t, p.b.Cause())
		require.EqualValues(t, 90, p.b.window.received)
		require.EqualValues(t, 90, p.b.window.consumed)
		require.Equal(t, "MAX_DATA limit=190", p.types(p.b)[0])
		if !stopped {
			_, err := p.b.Read(id, make([]byte, 10))
			require.Equal(t, &StreamError{Stream: id, Code: 9, Remote: true}, err)
		}
		require.Empty(t, p.b.streams)
	}
}

// TestResetAt: bytes that a reset leaves are read before its error, wherever in
// the stream the frame comes; a promise may shrink and not grow.
func TestResetAt(t *testing.T) {
	at := func(final, reliable uint64) wire.Frame {
		return wire.Frame{Type: wire.TypeResetStreamAt, Stream: 2, Code: 9, FinalSize: final, ReliableSize: reliable}
	}
	gone := &StreamError{Stream: 2, Code: 9, Remote: true}
	for _, c := range []struct {
		name   string
		frames []wire.Frame
		want   string
		err    error
	}{
		{"behind the data", []wire.Frame{data(2, 0, "hello"), at(9, 5)}, "hello", gone},
		{"before the data", []wire.Frame{at(9, 5), data(2, 0, "hello")}, "hello", gone},
		{"between", []wire.Frame{data(2, 0, "he"), at(9, 5), data(2, 2, "llo")}, "hello", gone},
		{"data still to come", []wire.Frame{data(2, 0, "he"), at(9, 5)}, "he", nil},
		{"more than was promised", []wire.Frame{data(2, 0, "hello"), at(9, 2)}, "hello", gone},
		{"shrinks", []wire.Frame{data(2, 0, "he"), at(9, 5), at(9, 2)}, "he", gone},
		{"grows", []wire.Frame{data(2, 0, "he"), at(9, 2), at(9, 5)}, "he", gone},
		{"shrinks to nothing", []wire.Frame{data(2, 0, "he"), at(9, 5), at(9, 0)}, "", gone},
		{"RESET_STREAM behind it", []wire.Frame{data(2, 0, "he"), at(9, 5), {Type: wire.TypeResetStream, Stream: 2, Code: 9, FinalSize: 9}}, "", gone},
		{"of nothing", []wire.Frame{at(0, 0)}, "", gone},
	} {
		p := ready(t, nil)
		p.inject(p.b, c.frames...)
		require.Nil(t, p.b.Cause(), c.name)
		got, err := read(p.b, 2)
		require.Equal(t, c.want, got, c.name)
		if require.Equal(t, c.err, err, c.name); err != nil {
			require.Empty(t, p.b.streams)
			require.Equal(t, p.b.window.received, p.b.window.consumed, c.name)
		}
	}
}

// TestWithdraw: bytes that are taken back never arrive, those that were sent
// do, and the stream goes on.
func TestWithdraw(t *testing.T) {
	p := ready(t, func(cfg *Config) {
		cfg.StreamWindow, cfg.MaxStreamWindow = 10, 10
	})
	id := p.open(p.a, true)
	p.write(p.a, id, "0123456789abc", true)
	require.Equal(t, ErrFinished, p.a.Write(id, []byte("x"), false))
	p.run()
	require.Equal(t, 3, p.a.Withdraw(id))
	require.Equal(t, 0, p.a.Withdraw(id))
	p.expect(p.b, id, "0123456789", nil)
	p.write(p.a, id, "def", false)
	require.Equal(t, ErrBusy, p.a.Write(id, []byte("x"), false))
	p.run()
	p.write(p.a, id, "", true)
	p.run()
	p.expect(p.b, id, "def", io.EOF)
}

// TestRecordFilled: a record is as long as the peer permits, to the byte, and
// no longer (moq #347: a private bound of 16352 was an outage).
func TestRecordFilled(t *testing.T) {
	for _, size := range []int{wire.DefaultMaxRecord, longestLaid} {
		p := ready(t, func(cfg *Config) { cfg.MaxRecord = size })
		id := p.open(p.a, true)
		p.write(p.a, id, strings.Repeat("x", 200_000), false)
		for range 3 {
			n := p.a.Transmit(p.now, p.buf)
			require.Equal(t, size+wire.VarintLen(uint64(size)), n)
			require.LessOrEqual(t, n, p.a.Buffer())
			p.give(p.b, p.buf[:n])
		}
		require.Nil(t, p.b.Cause())
	}
	// Before the peer's parameters are here only the default may be assumed.
	p := newPair(t, func(cfg *Config) { cfg.MaxRecord = 65532 })
	require.Equal(t, wire.DefaultMaxRecord, p.a.room())
}

// TestLongRecord: lent data makes a record as long as the peer permits, out of
// the same buffer, and a datagram is never longer than that.
func TestLongRecord(t *testing.T) {
	const size = 256<<10 - 8
	p := ready(t, func(cfg *Config) {
		cfg.MaxRecord, cfg.MaxDatagram = size, size
		cfg.StreamWindow, cfg.Window = 1<<20, 1<<20
	})
	buf := make([]byte, p.a.Buffer())
	require.Less(t, len(buf), 64<<10)
	id := p.open(p.a, true)
	text := strings.Repeat("0123456789", 60_000)
	p.write(p.a, id, text, false)
	for _, lends := range []bool{true, false, true} {
		if lends {
			n, lent, of := p.a.TransmitLent(p.now, buf)
			require.Equal(t, id, of)
			require.Equal(t, size+wire.VarintLen(size), n+len(lent))
			p.give(p.b, append(slices.Clone(buf[:n]), lent...))
			continue
		}
		n := p.a.Transmit(p.now, buf)
		require.Equal(t, longestLaid+wire.VarintLen(longestLaid), n)
		p.give(p.b, buf[:n])
	}
	require.Nil(t, p.b.Cause())
	p.run()
	p.expect(p.b, id, text, nil)

	longest := p.a.MaxDatagram()
	require.ErrorIs(t, p.a.SendDatagram(make([]byte, longest+1)), ErrTooLong)
	require.NoError(t, p.a.SendDatagram(make([]byte, longest)))
	n := p.a.Transmit(p.now, buf)
	require.Greater(t, n, longest)
	p.give(p.b, buf[:n])
	d, ok := p.b.ReceiveDatagram()
	require.True(t, ok)
	require.Len(t, d, longest)
}

// TestEverySize sends data of every length that may meet the end of a record.
func TestEverySize(t *testing.T) {
	p := ready(t, nil)
	id := p.open(p.a, true)
	for n := wire.DefaultMaxRecord - 40; n < wire.DefaultMaxRecord+40; n++ {
		s := strings.Repeat("x", n)
		p.write(p.a, id, s, false)
		p.run()
		p.expect(p.b, id, s, nil)
		p.run()
	}
	for n := range 200 {
		s := strings.Repeat("x", n)
		p.write(p.a, id, s, false)
		p.run()
		p.expect(p.b, id, s, nil)
	}
}
