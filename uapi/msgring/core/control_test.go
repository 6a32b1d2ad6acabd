package core

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestControlReadsWhatItWrites(t *testing.T) {
	for c := CREDIT; c <= RESET; c++ {
		m := Control{Type: c, Consumed: 1<<63 | 256, Argument: 1<<64 - 1}
		text := m.Append(nil)
		require.Len(t, text, ControlLen)
		var got Control
		require.NoError(t, got.Parse(text))
		require.Equal(t, m, got)
		for n := range ControlLen {
			require.ErrorIs(t, got.Parse(text[:n]), syscall.EPROTO, "the first %d bytes", n)
		}
		require.ErrorIs(t, got.Parse(append(text, 0)), syscall.EPROTO)
	}
}

func TestControlRefused(t *testing.T) {
	m := Control{Type: RESET}
	for _, unknown := range []byte{0, 4, 255} {
		b := m.Append(nil)
		b[0] = unknown
		require.ErrorContains(t, new(Control).Parse(b), "unknown type")
	}
	b := m.Append(nil)
	b[3] = 31
	require.ErrorContains(t, new(Control).Parse(b), "a control message of 32 bytes")
}
