package core

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCounters: what one side sends the other receives, by the types of frames;
// the timers that are armed are these three kinds; and a round trip is measured
// by a ping that was answered.
func TestCounters(t *testing.T) {
	p := ready(t, func(cfg *Config) { cfg.KeepAlive, cfg.IdleTimeout = 20*Second, 30*Second })
	id, ok := p.a.Open(p.now, false)
	require.True(t, ok)
	require.NoError(t, p.a.Write(id, []byte("one"), false))
	p.run()
	require.NoError(t, p.a.Write(id, []byte("two"), true))
	require.NoError(t, p.b.SendDatagram([]byte("three")))
	p.a.Ping()
	p.run()
	require.EqualValues(t, 1, p.a.Counters().RTTSamples)
	require.Zero(t, p.b.Counters().RTTSamples)
	p.a.Close(p.now, 7, "")
	p.run()

	a, b := p.a.Counters(), p.b.Counters()
	require.Equal(t, map[string]uint64{"QX_TRANSPORT_PARAMETERS": 1, "STREAM": 2, "QX_PING": 1, "APPLICATION_CLOSE": 1}, maps.Collect(a.FramesSent.All()))
	require.Equal(t, a.FramesSent, b.FramesReceived)
	require.Equal(t, map[string]uint64{"QX_TRANSPORT_PARAMETERS": 1, "DATAGRAM": 1, "QX_PONG": 1}, maps.Collect(b.FramesSent.All()))
	require.Equal(t, b.FramesSent, a.FramesReceived)
	require.NotZero(t, a.TimersArmed[IdleTimer])
	require.NotZero(t, a.TimersArmed[KeepTimer])
	require.EqualValues(t, 1, a.TimersArmed[CloseTimer])
	require.Equal(t, []string{"idle", "keepalive", "close"}, []string{IdleTimer.String(), KeepTimer.String(), CloseTimer.String()})
}
