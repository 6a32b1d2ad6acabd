//go:build guest && linux

package interop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// faults are the faults of the packets that the soft side sends, its requests
// as well as its answers, each with the counter that proves it.
var faults = []struct {
	name, options, counter string
	badICRC                bool
}{
	{"loss", "loss=4%&seed=1", "fault_loss", false},
	{"duplicates", "dup=10%&seed=2", "fault_dup", false},
	{"reordering", "reorder=5%&seed=3", "fault_reorder", false},
	{"delay", "delay=3ms&seed=4", "fault_delay", false},
	{"all but corruption", "loss=1%&dup=2%&reorder=2%&delay=1ms&seed=5", "fault_loss", false},
	{"corruption", "corrupt=4%&seed=6", "fault_corrupt", true},
}

// TestFaults moves messages in both directions while the soft side's packets
// are lost, doubled, reordered, delayed or corrupted: every byte arrives all
// the same. What rxe refuses for its ICRC shows in the difference of the
// packets sent and received; not every kernel logs it.
func TestFaults(t *testing.T) {
	for i, c := range faults {
		for j, f := range families {
			if (i+j)%2 == 1 {
				continue // one family for each
			}
			t.Run(c.name+" "+f.name, func(t *testing.T) {
				name := softName(f, 1+i, "?"+c.options)
				mtu := mtus[(i+j)%len(mtus)]
				before := freshCounter("rcvd_pkts")
				sent, made := underFault(t, f, name, mtu, c.counter)
				if c.badICRC {
					// Bits that change on the way, such as FECN, are not
					// covered.
					refused := sent - (freshCounter("rcvd_pkts") - before)
					require.Positive(t, int64(refused), "rxe received every packet although %d were corrupted", made)
					lab.kmsg.badICRCs(t)
				} else {
					require.Zero(t, lab.kmsg.badICRCs(t), "rxe saw a bad ICRC although none was made")
				}
			})
		}
	}
}

// underFault moves messages and returns how many packets the soft side sent,
// and how many faults were made.
func underFault(t *testing.T, f family, name string, mtu int, counter string) (sent, made uint64) {
	soft, rxe := devices(t, name, f, 1<<18)
	// A lost packet costs rxe the whole timeout: 134 ms.
	a, b := newPair(t, soft, rxe, uapi.QPConfig{MTU: mtu, Timeout: 134 * time.Millisecond})
	for _, way := range []struct{ from, to *end }{{a, b}, {b, a}} {
		for _, m := range messages {
			for _, n := range []int{1, 3*mtu + 1, 100_000} {
				move(t, way.from, way.to, m, n, 1)
			}
		}
		atomics(t, way.from, way.to)
		queueful(t, way.from, way.to, mtu)
	}
	counters := must.Get(a.device.Counters())(t)
	require.NotZero(t, counters[counter], "no fault was made")
	return counters["sent_pkts"], counters[counter]
}
