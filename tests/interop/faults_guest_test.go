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
// as well as its answers, each kind with the counter that proves it.
var faults = []struct {
	name, options string
	counters      []string
}{
	{"all but corruption", "loss=2%&dup=4%&reorder=4%&delay=1ms&seed=5", []string{"fault_loss", "fault_dup", "fault_reorder", "fault_delay"}},
	{corruption, "corrupt=4%&seed=6", []string{"fault_corrupt"}},
}

const corruption = "corruption"

// TestFaults moves messages in both directions while the soft side's packets
// are lost, doubled, reordered, delayed or corrupted: every byte arrives all
// the same. What rxe refuses for its ICRC shows in the difference of the
// packets sent and received; not every kernel logs it.
func TestFaults(t *testing.T) {
	for i, c := range faults {
		for j, f := range families {
			t.Run(c.name+" "+f.name, func(t *testing.T) {
				name := softName(f, 1+i, "?"+c.options)
				mtu := mtus[(i+j)%len(mtus)]
				before := freshCounter("rcvd_pkts")
				sent := underFault(t, f, name, mtu, c.counters)
				if c.name == corruption {
					// Bits that change on the way, such as FECN, are not
					// covered.
					refused := sent - (freshCounter("rcvd_pkts") - before)
					require.Positive(t, int64(refused), "rxe received every packet although some were corrupted")
					lab.kmsg.badICRCs(t)
				} else {
					require.Zero(t, lab.kmsg.badICRCs(t), "rxe saw a bad ICRC although none was made")
				}
			})
		}
	}
}

// underFault moves messages and returns how many packets the soft side sent.
func underFault(t *testing.T, f family, name string, mtu int, made []string) (sent uint64) {
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
	for _, fault := range made {
		require.NotZero(t, counters[fault], "no such fault was made: %s", fault)
	}
	return counters["sent_pkts"]
}
