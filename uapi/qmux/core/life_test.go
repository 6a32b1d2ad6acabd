package core

import (
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

// TestLowerStreams: a frame on a stream opens all below it, and late frames of
// a finished stream never open it again (moq #279).
func TestLowerStreams(t *testing.T) {
	p := ready(t, nil)
	p.inject(p.b, end(8, 0, "x"))
	for want := range wire.StreamID(3) {
		id, ok := p.b.Accept(false)
		require.True(t, ok)
		require.Equal(t, 4*want, id)
	}
	p.expect(p.b, 8, "x", io.EOF)
	require.NoError(t, p.b.Write(8, nil, true))
	p.types(p.b)
	require.Len(t, p.b.streams, 2)
	p.inject(p.b, end(8, 0, "x"), wire.Frame{Type: wire.TypeResetStream, Stream: 8, FinalSize: 1},
		wire.Frame{Type: wire.TypeStopSending, Stream: 8}, wire.Frame{Type: wire.TypeMaxStreamData, Stream: 8, Limit: 9})
	require.Len(t, p.b.streams, 2)
	require.Nil(t, p.b.Cause())
	_, ok := p.b.Accept(false)
	require.False(t, ok)
}

// TestStopUnknown: a stream that the peer stopped stays until its program
// knows.
func TestStopUnknown(t *testing.T) {
	p := ready(t, nil)
	id := p.open(p.a, true)
	p.write(p.a, id, "x", false)
	p.run()
	require.NoError(t, p.b.Stop(id, 77))
	p.run()
	require.Equal(t, &StreamError{Stream: id, Code: 77, Remote: true}, p.a.Write(id, []byte("x"), false))
	require.Equal(t, ErrNoStream, p.a.Write(id, []byte("x"), false))
}

func TestCallErrors(t *testing.T) {
	p := ready(t, nil)
	uni := p.open(p.a, true)
	theirs := p.open(p.b, true)
	p.write(p.b, theirs, "x", false)
	p.run()
	_, err := p.a.Read(uni, nil)
	require.Equal(t, ErrDirection, err)
	require.Equal(t, ErrDirection, p.a.Write(theirs, nil, false))
	require.Equal(t, ErrDirection, p.a.Reset(theirs, 0))
	require.Equal(t, ErrDirection, p.a.Stop(uni, 0))
	require.Equal(t, ErrNoStream, p.a.Write(400, nil, false))
	require.Equal(t, ErrNoStream, p.a.SetPriority(400, 1, true))
	require.NoError(t, p.a.Write(uni, nil, false))
	require.NoError(t, p.a.Write(uni, nil, true))
	require.Equal(t, ErrFinished, p.a.Write(uni, []byte("x"), false))
	p.run()
	require.Equal(t, ErrNoStream, p.a.Write(uni, []byte("x"), false))
	require.ErrorIs(t, ErrFinished, syscall.EPIPE)
	require.ErrorIs(t, &StreamError{Remote: true}, syscall.ECONNRESET)
	require.ErrorIs(t, &StreamError{}, syscall.ECANCELED)
	require.ErrorIs(t, ErrDirection, syscall.EINVAL)

	for _, change := range []func(*Config){
		func(cfg *Config) { cfg.Draft = 4 },
		func(cfg *Config) { cfg.MaxRecord = 16381 },
		func(cfg *Config) { cfg.MaxRecord = 1<<20 + 1 },
		func(cfg *Config) { cfg.MaxWindow = 1<<40 + 1 },
		func(cfg *Config) { cfg.MaxStreamsUni = 1<<20 + 1 },
		func(cfg *Config) { cfg.MaxDatagram = -1 },
		func(cfg *Config) { cfg.KeepAlive = -1 },
	} {
		cfg := DefaultConfig(false)
		change(&cfg)
		_, err := New(cfg, 0)
		require.ErrorIs(t, err, syscall.EINVAL)
	}
}

// TestIdle: the shorter time holds; a received frame always restarts it, a sent
// one once for each that was received (moq #341); and it ends without a frame.
func TestIdle(t *testing.T) {
	p := newPair(t, nil)
	p.a.cfg.IdleTimeout = 10 * Second
	p.b.cfg.IdleTimeout = 4 * Second
	p.a.timers.start(p.a, p.now)
	p.run()
	require.Equal(t, Time(4*Second), p.a.NextTimeout())
	id := p.open(p.a, true)
	for range 4 { // into the void
		p.now += Time(Second)
		p.write(p.a, id, "x", false)
		p.types(p.a)
		p.a.HandleTimeout(p.now)
	}
	require.Nil(t, p.a.Cause(), "the first restarted it")
	require.Equal(t, Time(5*Second), p.a.NextTimeout())
	p.a.HandleTimeout(Time(5 * Second))
	require.Equal(t, &Cause{Kind: Idle}, p.a.Cause())
	require.ErrorIs(t, p.a.Cause(), syscall.ETIMEDOUT)
	require.True(t, p.a.Cause().Timeout())
	require.Zero(t, p.a.Transmit(p.now, p.buf))
	require.True(t, p.a.OutputEnded() && p.a.Over())
}

// TestIdleHalfRecord: a record that never becomes whole keeps nothing alive.
func TestIdleHalfRecord(t *testing.T) {
	p := ready(t, nil)
	whole := record(data(0, 0, strings.Repeat("x", 1000)))
	for _, b := range whole[:200] {
		p.now += Time(Second / 4)
		p.give(p.b, []byte{b})
		p.b.HandleTimeout(p.now)
	}
	require.Equal(t, Idle, p.b.Cause().Kind)
}

func TestNoIdle(t *testing.T) {
	p := ready(t, func(cfg *Config) { cfg.IdleTimeout = 0 })
	require.Equal(t, Never, p.a.NextTimeout())
	cfg := testConfig(false)
	cfg.IdleTimeout = 1
	params := cfg.parameters()
	require.EqualValues(t, 1, params.MaxIdleTimeout, "rounded up, not to none")
	params.MaxIdleTimeout = wire.MaxVarint
	p = newPair(t, func(cfg *Config) { cfg.IdleTimeout = 0 })
	p.inject(p.b, wire.Frame{Type: wire.TypeParameters, Data: params.Append(nil)})
	require.Greater(t, p.b.NextTimeout(), p.now)
}

// TestKeepAlive: pings hold an idle connection, while the peer answers.
func TestKeepAlive(t *testing.T) {
	p := ready(t, func(cfg *Config) { cfg.KeepAlive = 20 * Second })
	p.b.cfg.KeepAlive = 0
	p.b.timers.at[KeepTimer] = Never
	p.advance(600 * Second)
	require.Nil(t, p.a.Cause())
	require.Nil(t, p.b.Cause())
	require.EqualValues(t, 40, p.a.Counters().PingsSent, "every half of the idle time")
	smoothed, shortest := p.a.RTT()
	require.Positive(t, smoothed)
	require.Positive(t, shortest)

	for range 10 { // the peer is gone
		p.now = p.a.NextTimeout()
		p.a.HandleTimeout(p.now)
		p.types(p.a)
	}
	require.Equal(t, Idle, p.a.Cause().Kind)
}

// TestPing: requests are answered by the largest, and round trips measured.
func TestPing(t *testing.T) {
	p := ready(t, nil)
	ping := func(n uint64) wire.Frame { return wire.Frame{Type: wire.TypePing, Sequence: n} }
	p.inject(p.b, ping(3), ping(7), ping(9))
	require.Equal(t, []string{"QX_PONG sequence=9"}, p.types(p.b))
	require.Empty(t, p.types(p.b))

	p = ready(t, draft1) // which lets them fall
	p.inject(p.b, ping(9), ping(3))
	require.Equal(t, []string{"QX_PONG sequence=9"}, p.types(p.b))

	for _, ms := range []Duration{8, 16} {
		p.a.Ping()
		p.a.Ping()
		require.Equal(t, 1, len(decode(t, p.buf[:p.a.Transmit(p.now, p.buf)])))
		sequence := p.a.ping.last
		p.now += Time(ms * Millisecond)
		p.inject(p.a, wire.Frame{Type: wire.TypePong, Sequence: sequence})
		p.now += Time(Second)
		p.inject(p.a, wire.Frame{Type: wire.TypePong, Sequence: sequence})
	}
	smoothed, shortest := p.a.RTT()
	require.Equal(t, 9*Millisecond, smoothed)
	require.Equal(t, 8*Millisecond, shortest)
}

func TestDatagrams(t *testing.T) {
	p := ready(t, func(cfg *Config) { cfg.MaxDatagram = 10_000 })
	require.Equal(t, 9997, p.a.MaxDatagram())
	require.Equal(t, ErrTooLong, p.a.SendDatagram(make([]byte, 9998)))
	for i := range 3 { // more than a record holds
		require.NoError(t, p.a.SendDatagram([]byte(strings.Repeat(string(rune('a'+i)), 9997))))
	}
	p.run()
	require.Equal(t, []Event{{Kind: EventDatagram}}, p.b.Events())
	for i := range 3 {
		got, ok := p.b.ReceiveDatagram()
		require.True(t, ok)
		require.Equal(t, strings.Repeat(string(rune('a'+i)), 9997), string(got))
	}

	for range maxDatagrams {
		require.NoError(t, p.a.SendDatagram([]byte("x")))
	}
	require.Equal(t, ErrFull, p.a.SendDatagram([]byte("y")))
	p.run()
	require.Equal(t, []Event{{Kind: EventDatagramRoom}}, p.a.Events())
	require.NoError(t, p.a.SendDatagram([]byte("y")))
	p.run()
	require.EqualValues(t, 1, p.b.Counters().DatagramsDropped, "the oldest")
	n := 0
	var last []byte
	for got, ok := p.b.ReceiveDatagram(); ok; got, ok = p.b.ReceiveDatagram() {
		n, last = n+1, got
	}
	require.Equal(t, maxDatagrams, n)
	require.Equal(t, "y", string(last))

	p = ready(t, func(cfg *Config) { cfg.MaxDatagram = 0 })
	require.Equal(t, -1, p.a.MaxDatagram())
	require.Equal(t, ErrNoDatagrams, p.a.SendDatagram(nil))
	p = newPair(t, nil)
	require.Equal(t, ErrNotReady, p.a.SendDatagram(nil))
	for size := 2; size < 70; size++ { // the longest fits its frame, to the byte
		p.a.ready, p.a.peer.MaxRecordSize, p.a.peer.MaxDatagramFrameSize = true, wire.DefaultMaxRecord, uint64(size)
		f := wire.Frame{Type: wire.TypeDatagramLen, Data: make([]byte, p.a.MaxDatagram())}
		require.LessOrEqual(t, f.Length(), size)
		require.GreaterOrEqual(t, f.Length(), size-1)
	}
}

// TestFlood: frames that change nothing are borne 10,000 times a second.
func TestFlood(t *testing.T) {
	for _, f := range []wire.Frame{
		{Type: wire.TypeMaxData}, {Type: wire.TypeDataBlocked}, {Type: wire.TypeMaxStreamsUni},
		{Type: typeStream, Stream: 0, Offset: 1}, {Type: wire.TypeStreamDataBlocked},
		{Type: wire.TypeStopSending, Stream: 4}, {Type: wire.TypeResetStream, Stream: 4},
	} {
		p := ready(t, nil)
		p.inject(p.b, data(0, 0, "x"), wire.Frame{Type: wire.TypeStopSending, Stream: 4}, wire.Frame{Type: wire.TypeResetStream, Stream: 4})
		one := record(f)
		for range maxWaste {
			p.give(p.b, one)
		}
		require.Nil(t, p.b.Cause(), "%v", &f)
		p.now += Time(Second)
		for range maxWaste {
			p.give(p.b, one)
		}
		require.Nil(t, p.b.Cause(), "%v", &f)
		p.give(p.b, one)
		p.run()
		require.Equal(t, uint64(wire.ProtocolViolation), p.a.Cause().Code, "%v", &f)
	}
}

// TestPart: a record that is announced and not sent costs the bytes that were
// sent.
func TestPart(t *testing.T) {
	p := ready(t, func(cfg *Config) { cfg.MaxRecord = maxRecord })
	p.give(p.b, wire.AppendVarint(nil, maxRecord))
	require.Less(t, cap(p.b.part), 1000)
}
