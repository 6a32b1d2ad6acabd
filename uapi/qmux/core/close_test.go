package core

import (
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

// TestCloseOrder: ends and resets that wait go before the CONNECTION_CLOSE, and
// nothing else does; data that arrived before it can still be read (moq #323,
// #346).
func TestCloseOrder(t *testing.T) {
	p := ready(t, nil)
	x, y, z := p.open(p.a, true), p.open(p.a, true), p.open(p.a, true)
	p.write(p.a, x, "last words", false)
	theirs := p.open(p.b, true)
	p.write(p.b, theirs, "x", false)
	p.run()
	require.NoError(t, p.a.Stop(theirs, 1))
	p.write(p.a, x, "", true)
	require.NoError(t, p.a.Reset(y, 5))
	p.write(p.a, z, "too late", false)
	p.a.Ping()
	require.NoError(t, p.a.SendDatagram([]byte("x")))
	p.a.Close(p.now, 42, "bye")
	n, err := p.a.Unsent(z)
	require.Equal(t, 8, n)
	require.ErrorIs(t, err, syscall.ECONNABORTED)
	_, ok := p.a.Open(p.now, true)
	require.False(t, ok)
	require.Equal(t, p.a.Cause(), p.a.Write(z, []byte("x"), false))
	p.a.Close(p.now, 43, "again")

	var all []string
	p.seen = func(_ *Conn, frames []wire.Frame) {
		for _, f := range frames {
			all = append(all, f.String())
		}
	}
	p.run()
	require.Equal(t, []string{"STREAM id=2 offset=10 len=0 fin", "RESET_STREAM id=6 code=5 final=0", `APPLICATION_CLOSE code=42 "bye"`}, all)
	p.expect(p.b, x, "last words", io.EOF)
	p.expect(p.b, y, "", &StreamError{Stream: y, Code: 5, Remote: true})
	_, err = p.b.Read(z, nil)
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

// TestCloseUnread: a stream without its end gives the data that arrived, then
// the cause.
func TestCloseUnread(t *testing.T) {
	p := ready(t, nil)
	id := p.open(p.a, true)
	p.write(p.a, id, "last words", false)
	p.run()
	p.a.Close(p.now, 42, "bye")
	p.run()
	p.expect(p.b, id, "last words", p.b.Cause())
}

// TestCloseWaits: a close waits for the peer's end, hears its CONNECTION_CLOSE
// only, and not longer than 3 s.
func TestCloseWaits(t *testing.T) {
	p := ready(t, nil)
	p.a.Close(p.now, 42, "bye")
	p.types(p.a)
	require.True(t, p.a.OutputEnded())
	require.False(t, p.a.Over())
	p.inject(p.a, data(1, 99, "nonsense"), wire.Frame{Type: wire.TypePing})
	p.give(p.a, []byte{1, 1, 0, 0xff})
	require.False(t, p.a.Over())
	require.Equal(t, p.now+Time(linger), p.a.NextTimeout())
	p.a.HandleTimeout(p.now + Time(linger) - 1)
	require.False(t, p.a.Over())
	p.a.HandleTimeout(p.now + Time(linger))
	require.True(t, p.a.Over())
	require.Equal(t, Never, p.a.NextTimeout())

	p = ready(t, nil)
	p.a.Close(p.now, 42, "bye")
	p.types(p.a)
	p.inject(p.a, wire.Frame{Type: wire.TypeApplicationClose, Code: 1})
	require.True(t, p.a.Over())
	require.EqualValues(t, 42, p.a.Cause().Code, "the first cause holds")
}

// TestTwoCloses: 0x1c and 0x1d are not the same (moq #292).
func TestTwoCloses(t *testing.T) {
	p := ready(t, nil)
	p.inject(p.b, wire.Frame{Type: wire.TypeConnectionClose, Code: 0xa, Trigger: 0x10, Data: []byte("why")})
	require.Equal(t, &Cause{Kind: Transport, Remote: true, Code: 0xa, Frame: wire.TypeMaxData, Reason: "why"}, p.b.Cause())
	require.Zero(t, p.b.Transmit(p.now, p.buf))
	p = newPair(t, nil)
	p.inject(p.b, wire.Frame{Type: wire.TypeParameters}, wire.Frame{Type: wire.TypeConnectionClose, Code: uint64(wire.ConnectionRefused)})
	require.ErrorIs(t, p.b.Cause(), syscall.ECONNREFUSED)
	p = ready(t, nil)
	p.inject(p.b, wire.Frame{Type: wire.TypeApplicationClose, Code: 0xa, Data: []byte("why")})
	require.Equal(t, &Cause{Kind: Application, Remote: true, Code: 0xa, Reason: "why"}, p.b.Cause())
}

func TestLongReason(t *testing.T) {
	p := ready(t, nil)
	p.a.Close(p.now, 1, strings.Repeat("é", 1000)+"\xff")
	p.run()
	require.Equal(t, strings.Repeat("é", 512), p.b.Cause().Reason)
	p = ready(t, nil)
	p.inject(p.b, wire.Frame{Type: wire.TypeApplicationClose, Data: []byte(strings.Repeat("x", 5000))})
	require.Len(t, p.b.Cause().Reason, maxReason)
}

func TestEnds(t *testing.T) {
	for _, half := range []bool{false, true} {
		p := ready(t, nil)
		if half {
			p.give(p.a, []byte{9, 0x31})
		}
		p.a.ReceiveEnd()
		require.Equal(t, &Cause{Kind: Ended, Remote: true}, p.a.Cause())
		require.ErrorIs(t, p.a.Cause(), syscall.ECONNRESET)
		require.True(t, p.a.OutputEnded() && p.a.Over())
	}
	p := ready(t, nil)
	p.a.Abort()
	require.Equal(t, &Cause{Kind: Lost}, p.a.Cause())
	require.True(t, p.a.OutputEnded() && p.a.Over())

	// A peer that ends before our close is written still hears it.
	p = ready(t, nil)
	p.a.Close(p.now, 42, "bye")
	p.a.ReceiveEnd()
	require.False(t, p.a.Over())
	p.step(p.a)
	require.True(t, p.a.Over())
	require.EqualValues(t, 42, p.b.Cause().Code)
}
