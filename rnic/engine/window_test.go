package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// The window: never more in flight than it says, smaller after losses, larger
// without.
func TestWindow(t *testing.T) {
	n := newPair(t, cfg{mtu: abi.MTU4096, edit: func(_ int, c *Config) { c.SendDepth = 512 }})
	for i := range 200 {
		n.post(n.a, n.write(uint64(i), 40_000))
	}
	n.pump(n.a)
	w := &n.a.qp.req.win
	sent := len(n.a.sent) * (4096 + packetCost)
	require.LessOrEqual(t, sent, 80<<10+4096)
	require.Greater(t, sent, 66<<10)
	n.run(0)
	require.Equal(t, 1<<20, w.size)
	n.a.wcs = nil
	drops, seen := 0, 0
	n.filter = func(from *host, p *wire.Packet) (int, Time) {
		if seen++; from == n.a && drops < 30 && seen%20 == 0 {
			drops++
			return 0, 0
		}
		return 1, 0
	}
	for i := range 50 {
		n.post(n.a, n.write(uint64(i), 40_000))
	}
	least := w.size
	for range 10_000 {
		n.run(n.now + 10_000)
		least = min(least, w.size)
	}
	require.Len(t, n.a.wcs, 50)
	require.Equal(t, 30, drops)
	require.Less(t, least, 1<<18)
	require.GreaterOrEqual(t, least, 4*(4096+packetCost))
}

// Small packets count more than their bytes, as socket buffers count them.
func TestWindowOfSmallPackets(t *testing.T) {
	n := newPair(t, cfg{edit: func(_ int, c *Config) { c.SendDepth = 512 }})
	for i := range 512 {
		n.post(n.a, n.write(uint64(i), 8))
	}
	n.pump(n.a)
	require.Len(t, n.a.sent, 80<<10/(8+packetCost))

	n = newPair(t, cfg{mtu: abi.MTU256})
	n.post(n.a, n.write(1, 100_000))
	n.pump(n.a)
	require.Len(t, n.a.sent, 80<<10/(256+packetCost))
}

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
