package virtual

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
)

// TestGoodputUnderLoss holds floors of what a path carries that loses packets
// at random, in MB/s of 5,000 that the wire carries. Time is virtual, so the
// results repeat; a floor lies some percent below the result.
func TestGoodputUnderLoss(t *testing.T) {
	for _, c := range []struct {
		op   abi.WROpcode
		loss float64
		rtt  engine.Duration

		goBackN, selective float64
	}{
		{abi.WRRDMAWrite, 0, 20 * engine.Microsecond, 4900, 4900},
		{abi.WRRDMAWrite, 0.001, 20 * engine.Microsecond, 3900, 4900},
		{abi.WRRDMAWrite, 0.01, 20 * engine.Microsecond, 2500, 4700},
		{abi.WRRDMAWrite, 0.05, 20 * engine.Microsecond, 900, 4500},
		{abi.WRRDMAWrite, 0.1, 20 * engine.Microsecond, 330, 4000},
		{abi.WRRDMARead, 0.01, 20 * engine.Microsecond, 1200, 4500},
		{abi.WRRDMARead, 0.05, 20 * engine.Microsecond, 330, 3600},
		{abi.WRRDMARead, 0.2, 20 * engine.Microsecond, 1.5, 60}, // unless a loss was seen, the ACK timeout passes
		{abi.WRSend, 0.01, 20 * engine.Microsecond, 2200, 4700},
		{abi.WRSend, 0.05, 20 * engine.Microsecond, 900, 3800},
		{abi.WRRDMAWrite, 0.01, engine.Millisecond, 90, 750},
		{abi.WRRDMAWrite, 0.01, 20 * engine.Millisecond, 2, 85},
		{abi.WRRDMARead, 0.01, 20 * engine.Millisecond, 2, 50},
		{abi.WRRDMAWrite, 0.001, 300 * engine.Millisecond, 1.5, 8},
	} {
		if testing.Short() && c.op == abi.WRSend {
			continue // as WRITEs, on virtual time
		}
		for _, goBackN := range []bool{true, false} {
			name, floor := "selective", c.selective
			if goBackN {
				name, floor = "go-back-N", c.goBackN
			}
			t.Run(fmt.Sprintf("%v/%g%%/%gms/%s", c.op, 100*c.loss, float64(c.rtt)/1e6, name), func(t *testing.T) {
				l := newTraffic(t, Options{
					Seed: 7, Faults: Faults{Loss: c.loss}, Latency: c.rtt / 2, Rate: 5e9, Batching: 20 * engine.Microsecond, GoBackN: goBackN,
				}, 1, c.op, 16)
				l.w.SetQueue(4 << 20)
				d := 30 * engine.Millisecond
				if goBackN && c.loss >= 0.05 {
					d = engine.Second / 4 // few packets go: more time steadies the result
				}
				got := l.goodput(t, max(d, 100*c.rtt)) / 1e6
				n := l.counters()
				t.Logf("%.3f MB/s, %d packets sent, %d of them again, %d timeouts", got, n.SentPkts, n.RetransmittedPkts, n.Timeouts)
				require.GreaterOrEqual(t, got, floor)
			})
		}
	}
}

// TestGoodputOfManyPairs holds floors of what queue pairs get whose packets
// share one buffer of 4 MiB, as those of one socket do, in MB/s of 5,000.
func TestGoodputOfManyPairs(t *testing.T) {
	for _, c := range []struct {
		op    abi.WROpcode
		pairs int
		floor float64
	}{
		{abi.WRRDMAWrite, 1, 4800}, {abi.WRRDMAWrite, 4, 4800}, {abi.WRRDMAWrite, 8, 4800}, {abi.WRRDMAWrite, 16, 4800}, {abi.WRRDMAWrite, 64, 4800},
		{abi.WRRDMARead, 16, 4000}, {abi.WRRDMARead, 64, 4000},
	} {
		t.Run(fmt.Sprintf("%v/%d", c.op, c.pairs), func(t *testing.T) {
			l := newTraffic(t, Options{Latency: 10 * engine.Microsecond, Rate: 5e9, Batching: 20 * engine.Microsecond, PathLimit: 7 << 18}, c.pairs, c.op, 16)
			l.w.SetQueue(4 << 20)
			got := l.goodput(t, 25*engine.Millisecond) / 1e6
			n := l.counters()
			t.Logf("%.0f MB/s, %d packets sent, %d of them again, %d timeouts, %d dropped", got, n.SentPkts, n.RetransmittedPkts, n.Timeouts, l.w.Hit[Overflowed])
			require.GreaterOrEqual(t, got, c.floor)
		})
	}
}
