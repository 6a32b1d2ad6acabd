package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWindowGrowth(t *testing.T) {
	var w window
	tun := Tuning{}.withDefaults()
	w.reset(&tun, 1024)
	w.grow(tun.MaxWindow, 1000)
	require.Equal(t, 80<<10+1000, w.size)
	w.shrink(1024, false, true)
	require.Equal(t, 40<<10+500, w.size)
	w.grow(tun.MaxWindow, 1000)
	require.Equal(t, 40<<10+751, w.size)
	for range 10 {
		w.shrink(1024, false, true)
	}
	require.Equal(t, 12*(1024+packetCost), w.size)
	for range 10 {
		w.shrink(1024, true, true)
	}
	require.Equal(t, 2*(1024+packetCost), w.size)
	w.grow(tun.MaxWindow, 1<<30)
	require.Equal(t, 1<<20, w.size)
}

// A first message of 64 KiB leaves in one flight, in packets of 1 KiB, and its
// last packet alone asks for an ACK; later ones ask for each quarter of the
// window.
func TestFirstMessageAsksOnce(t *testing.T) {
	n := newPair(t, cfg{})
	n.post(n.a, n.write(1, 64<<10))
	n.pump(n.a)
	require.Len(t, n.a.sent, 64)
	for i, p := range n.a.sent {
		require.Equal(t, i == 63, p.AckReq)
	}
	n.run(0)
	requireSuccess(t, n.a.wcs, 1)
	n.post(n.a, n.write(2, 64<<10))
	n.pump(n.a)
	asks := 0
	for _, p := range n.a.sent[64:] {
		if p.AckReq {
			asks++
		}
	}
	require.Greater(t, asks, 1)
}
