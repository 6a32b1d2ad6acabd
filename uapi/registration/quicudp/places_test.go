package quicudp

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/stretchr/testify/require"
)

// TestPlaces: addresses that prove themselves and take all they can leave
// places to others; a place comes back once, when its connection ends or is
// accepted.
func TestPlaces(t *testing.T) {
	var p places
	ended, end := context.WithCancel(t.Context())
	take := func(address byte) context.Context {
		c, err := p.take(ended, &quic.ClientInfo{RemoteAddr: &net.UDPAddr{IP: net.IPv4(10, 0, 0, address)}})
		if err != nil {
			require.ErrorIs(t, err, errCrowded)
			return nil
		}
		return c
	}
	var last context.Context
	for address, share := range []int{64, 32, 16, 8, 4, 2, 1} {
		for range share {
			last = take(byte(address))
			require.NotNil(t, last)
		}
		require.Nil(t, take(byte(address)))
	}
	require.NotNil(t, take(99))
	require.Nil(t, take(100), "all are taken")
	require.True(t, p.doubt(nil))
	leave(last)
	leave(last)
	require.NotNil(t, take(100))
	require.Nil(t, take(101))
	end()
	require.Eventually(t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.taken == 0 && len(p.held) == 0
	}, time.Minute, time.Millisecond)
}
