package virtual

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
)

const ms = engine.Millisecond

// goodputCase is traffic of one node to another, and the MB/s that it is to
// reach in a time. Faults begin after warm.
type goodputCase struct {
	name    string
	o       Options
	op      abi.WROpcode
	mtu     abi.MTU
	pairs   int
	warm, d engine.Duration
	floor   float64
}

// underLoss are paths that lose packets at random, and carry 5,000 MB/s.
func underLoss() (list []goodputCase) {
	for _, c := range []struct {
		op   abi.WROpcode
		loss float64
		rtt  engine.Duration

		goBackN, selective float64
	}{
		{abi.WRRDMAWrite, 0, ms / 50, 4900, 4900},
		{abi.WRRDMAWrite, 0.001, ms / 50, 3900, 4900},
		{abi.WRRDMAWrite, 0.01, ms / 50, 2500, 4700},
		{abi.WRRDMAWrite, 0.05, ms / 50, 900, 4500},
		{abi.WRRDMAWrite, 0.1, ms / 50, 330, 4000},
		{abi.WRRDMARead, 0.01, ms / 50, 1200, 4500},
		{abi.WRRDMARead, 0.05, ms / 50, 330, 3600},
		{abi.WRRDMARead, 0.2, ms / 50, 1.5, 60}, // unless a loss was seen, the ACK timeout passes
		{abi.WRSend, 0.01, ms / 50, 2200, 4700},
		{abi.WRSend, 0.05, ms / 50, 900, 3800},
		{abi.WRRDMAWrite, 0.01, ms, 90, 750},
		{abi.WRRDMAWrite, 0.01, 20 * ms, 2, 85},
		{abi.WRRDMARead, 0.01, 20 * ms, 2, 50},
		{abi.WRRDMAWrite, 0.001, 300 * ms, 1.5, 8},
	} {
		o := Options{Seed: 7, Faults: Faults{Loss: c.loss}, Latency: c.rtt / 2, Rate: 5e9, Batching: ms / 50}
		g := goodputCase{fmt.Sprintf("%g%% lost/%gms/selective", 100*c.loss, float64(c.rtt)/1e6), o, c.op, abi.MTU4096, 1, 0, max(30*ms, 100*c.rtt), c.selective}
		list = append(list, g)
		g.name, g.o.GoBackN, g.floor = fmt.Sprintf("%g%% lost/%gms/go-back-N", 100*c.loss, float64(c.rtt)/1e6), true, c.goBackN
		if c.loss >= 0.05 { // few packets go: more time steadies the result
			g.d = max(engine.Second/4, 100*c.rtt)
		}
		list = append(list, g)
	}
	return list
}

// manyPairs are queue pairs whose packets share one buffer of 4 MiB, as those
// of one socket do.
func manyPairs() (list []goodputCase) {
	for _, c := range []struct {
		op    abi.WROpcode
		pairs int
		floor float64
	}{
		{abi.WRRDMAWrite, 1, 4800}, {abi.WRRDMAWrite, 4, 4800}, {abi.WRRDMAWrite, 8, 4800}, {abi.WRRDMAWrite, 16, 4800}, {abi.WRRDMAWrite, 64, 4800},
		{abi.WRRDMARead, 16, 4000}, {abi.WRRDMARead, 64, 4000},
	} {
		o := Options{Latency: ms / 100, Rate: 5e9, Batching: ms / 50, PathLimit: 7 << 18}
		list = append(list, goodputCase{fmt.Sprintf("%d pairs", c.pairs), o, c.op, abi.MTU4096, c.pairs, 0, 25 * ms, c.floor})
	}
	return list
}

// reordering are paths of 50 MB/s that hold a quarter of the packets up for
// 1 ms or less.
func reordering() (list []goodputCase) {
	for _, c := range []struct {
		op    abi.WROpcode
		rtt   engine.Duration
		floor float64
	}{{abi.WRRDMAWrite, ms / 5, 32}, {abi.WRSend, ms / 5, 32}, {abi.WRRDMARead, ms / 5, 27}, {abi.WRRDMAWrite, 20 * ms, 7}} {
		o := Options{Seed: 7, Faults: Faults{Reorder: 0.25, MaxHold: ms}, Latency: c.rtt / 2, Rate: 50e6}
		list = append(list, goodputCase{fmt.Sprintf("reordered/%gms", float64(c.rtt)/1e6), o, c.op, abi.MTU1024, 1, 0, engine.Second, c.floor})
	}
	return list
}

// hardPaths are the hardest of the paths of the suite's --paths (tools/lab),
// which carry 180 MB/s: as many as a bridge in user space. A host takes up to
// 100 µs to answer.
func hardPaths() (list []goodputCase) {
	for _, c := range []struct {
		name              string
		faults            Faults
		rtt, d            engine.Duration
		write, send, read float64
	}{
		{"long", Faults{}, 200 * ms, 4 * engine.Second, 10, 10, 9},
		{"long and lossy", Faults{Loss: 0.01}, 20 * ms, engine.Second / 2, 45, 45, 40},
		{"very lossy", Faults{Loss: 0.2}, ms / 5, engine.Second / 8, 80, 80, 15},
		{"reordering", Faults{Reorder: 0.25, MaxHold: ms}, ms / 5, engine.Second / 8, 35, 35, 60},
	} {
		for op, floor := range map[abi.WROpcode]float64{abi.WRRDMAWrite: c.write, abi.WRSend: c.send, abi.WRRDMARead: c.read} {
			o := Options{Seed: 7, Faults: c.faults, Latency: c.rtt / 2, Rate: 180e6, Batching: ms / 10, PathLimit: 7 << 18}
			list = append(list, goodputCase{c.name, o, op, abi.MTU1024, 1, 5 * c.rtt, c.d, floor})
		}
	}
	return list
}

// TestGoodput holds floors of what a path carries. Time is virtual, so the
// results repeat; a floor lies some percent below the result.
func TestGoodput(t *testing.T) {
	for _, c := range slices.Concat(underLoss(), manyPairs(), reordering(), hardPaths()) {
		if testing.Short() && c.op == abi.WRSend {
			continue // as WRITEs, on virtual time
		}
		t.Run(fmt.Sprintf("%v/%s", c.op, c.name), func(t *testing.T) {
			faults := c.o.Faults
			if c.warm > 0 {
				c.o.Faults = Faults{}
			}
			l := newReceiver(t, c.o, c.op, c.mtu, 16)
			l.addSender(t, 0, c.pairs)
			l.w.SetQueue(4 << 20)
			if c.warm > 0 { // the round trip is measured
				l.goodput(t, c.warm)
				l.w.SetFaults(faults)
			}
			got := l.goodput(t, c.d) / 1e6
			n := l.counters()
			t.Logf("%.2f MB/s, %d packets sent, %d of them again, %d timeouts, %d dropped", got, n.SentPkts, n.RetransmittedPkts, n.Timeouts, l.w.Hit[Overflowed])
			require.GreaterOrEqual(t, got, c.floor)
		})
	}
}
