package virtual

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
)

// TestGoodputOfRateLimits holds floors of what is used of a path's rate when
// its queue is smaller than a window: the part of the rate that messages get,
// headers left out, and the fairness among the senders by Jain's index, both
// 0 … 1.
func TestGoodputOfRateLimits(t *testing.T) {
	for _, c := range []struct {
		op             abi.WROpcode
		mbit, queueKiB int
		rtt            engine.Duration
		senders, pairs int
		used, fair     float64
	}{
		{abi.WRRDMAWrite, 100, 64, engine.Millisecond, 1, 1, 0.95, 1},
		{abi.WRSend, 100, 64, engine.Millisecond, 1, 1, 0.95, 1},
		{abi.WRRDMARead, 100, 64, engine.Millisecond, 1, 1, 0.95, 1},
		{abi.WRRDMAWrite, 100, 64, engine.Millisecond, 1, 16, 0.94, 1},
		{abi.WRRDMAWrite, 100, 64, 20 * engine.Millisecond, 1, 1, 0.75, 1},
		{abi.WRRDMARead, 100, 64, 20 * engine.Millisecond, 1, 1, 0.6, 1},
		{abi.WRRDMAWrite, 100, 64, 50 * engine.Millisecond, 1, 1, 0.6, 1},
		{abi.WRRDMAWrite, 1000, 256, engine.Millisecond, 1, 1, 0.92, 1},
		{abi.WRRDMAWrite, 1000, 256, 20 * engine.Millisecond, 1, 1, 0.35, 1},
		{abi.WRRDMAWrite, 1000, 1024, 20 * engine.Millisecond, 1, 1, 0.5, 1},
		{abi.WRRDMAWrite, 100, 64, engine.Millisecond, 2, 1, 0.92, 0.9},
		{abi.WRRDMAWrite, 1000, 256, 200 * engine.Microsecond, 2, 4, 0.93, 0.85},
		{abi.WRRDMAWrite, 10000, 212, 20 * engine.Microsecond, 16, 1, 0.93, 0.55},
	} {
		t.Run(fmt.Sprintf("%v/%dMbit/%dKiB/%gms/%dx%d", c.op, c.mbit, c.queueKiB, float64(c.rtt)/1e6, c.senders, c.pairs), func(t *testing.T) {
			rate := float64(c.mbit) * 1e6 / 8
			l := newReceiver(t, Options{
				Seed: 7, Latency: c.rtt / 2, Rate: int64(rate), OnePort: true, PathLimit: 7 << 18,
			}, c.op, abi.MTU1024, 16)
			for range c.senders {
				l.addSender(t, 0, c.pairs)
			}
			l.w.SetQueue(c.queueKiB << 10)
			used := l.goodput(t, max(engine.Duration(50e6/rate*1e9), 100*engine.Millisecond)) / rate
			n := l.counters()
			fair := l.fairness()
			t.Logf("%.3f used, %.3f fair, %d packets sent, %d of them again, %d timeouts, %d dropped", used, fair, n.SentPkts, n.RetransmittedPkts, n.Timeouts, l.w.Hit[Overflowed])
			require.GreaterOrEqual(t, used, c.used)
			require.GreaterOrEqual(t, fair, c.fair)
		})
	}
}

// TestIncast: senders into one buffer that marks what comes when it is half
// full, as a soft device does, use all of the path's rate and lose next to
// nothing once each has measured its round trip. Used and lost are parts of
// the rate and of the packets, 0 … 1.
func TestIncast(t *testing.T) {
	for _, c := range []struct {
		senders, pairs, bufferKiB int
		mtu                       abi.MTU
		used, lost                float64
	}{
		{1, 1, 100, abi.MTU4096, 0.95, 0}, // the packets that Linux's default of 212,992 bytes holds
		{16, 1, 100, abi.MTU4096, 0.9, 0.015},
		{16, 1, 208, abi.MTU4096, 0.9, 0.001},
		{16, 4, 208, abi.MTU1024, 0.9, 0.001},
	} {
		t.Run(fmt.Sprintf("%dx%d/%dKiB/%v", c.senders, c.pairs, c.bufferKiB, c.mtu), func(t *testing.T) {
			const rate = 1.25e9
			l := newReceiver(t, Options{
				Seed: 7, Latency: 10 * engine.Microsecond, Rate: rate, OnePort: true, PathLimit: c.bufferKiB << 10 * 15 / 16,
			}, abi.WRRDMAWrite, c.mtu, 16)
			for range c.senders {
				l.addSender(t, 0, c.pairs)
			}
			l.w.SetQueue(c.bufferKiB << 10)
			l.w.SetMark(c.bufferKiB << 9)
			l.goodput(t, 100*engine.Millisecond)
			sent, dropped := l.counters().SentPkts, l.w.Hit[Overflowed]
			used := l.goodput(t, 20*engine.Millisecond) / rate
			n := l.counters()
			lost := float64(l.w.Hit[Overflowed]-dropped) / float64(n.SentPkts-sent)
			t.Logf("%.3f used, %.4f lost, %d of %d marks obeyed", used, lost, n.NoticesRcvd, l.w.Hit[Marked])
			require.GreaterOrEqual(t, used, c.used)
			require.LessOrEqual(t, lost, c.lost)
		})
	}
}
