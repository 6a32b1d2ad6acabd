package virtual

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
)

// TestGoodputOfPaths holds floors of what one queue pair gets on the hardest of
// the paths of the suite's --paths (tools/lab), in MB/s of 180 that the wire
// carries: as many as a bridge in user space. A host takes up to 100 µs to
// answer.
func TestGoodputOfPaths(t *testing.T) {
	const ms = engine.Millisecond
	for _, c := range []struct {
		faults            Faults
		rtt, d            engine.Duration
		write, send, read float64
	}{
		{Faults{}, 200 * ms, 4 * engine.Second, 10, 10, 9},
		{Faults{Loss: 0.01}, 20 * ms, engine.Second / 2, 45, 45, 40},
		{Faults{Loss: 0.2}, ms / 5, engine.Second / 8, 80, 80, 15},
		{Faults{Reorder: 0.25, MaxHold: ms}, ms / 5, engine.Second / 8, 35, 35, 60},
	} {
		for _, x := range []struct {
			op    abi.WROpcode
			floor float64
		}{{abi.WRRDMAWrite, c.write}, {abi.WRSend, c.send}, {abi.WRRDMARead, c.read}} {
			if testing.Short() && x.op == abi.WRSend {
				continue // as WRITEs, on virtual time
			}
			t.Run(fmt.Sprintf("%g%% lost %g%% reordered %gms/%v", 100*c.faults.Loss, 100*c.faults.Reorder, float64(c.rtt)/1e6, x.op), func(t *testing.T) {
				l := newReceiver(t, Options{
					Seed: 7, Latency: c.rtt / 2, Rate: 180e6, Batching: ms / 10, PathLimit: 7 << 18,
				}, x.op, abi.MTU1024, 16)
				l.addSender(t, 0, 1)
				l.w.SetQueue(4 << 20)
				l.goodput(t, 5*c.rtt) // the round trip is measured
				l.w.SetFaults(c.faults)
				got := l.goodput(t, c.d) / 1e6
				n := l.counters()
				t.Logf("%.2f MB/s, %d packets sent, %d of them again, %d timeouts", got, n.SentPkts, n.RetransmittedPkts, n.Timeouts)
				require.GreaterOrEqual(t, got, x.floor)
			})
		}
	}
}
