package rnic

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/rnic/engine"
)

// In a stream of single posts many leave with one send, and each completes in
// order, whether the program polls, waits or does neither.
func TestStreamSharesSends(t *testing.T) {
	for name, rest := range map[string]func(t *testing.T, a, b *testDevice){
		"polls": func(t *testing.T, a, b *testDevice) {
			for a.Progress() || b.Progress() {
			}
		},
		"arms":            func(t *testing.T, a, _ *testDevice) { require.NoError(t, a.qp.send.cq.Arm(false)) },
		"something else ": func(*testing.T, *testDevice, *testDevice) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b, links := countedPair(t)
				const bursts, burst = 20, 60
				id := uint64(0)
				for k := range bursts {
					if k == 1 { // the first one made it a stream
						links[0].sends.Store(0)
					}
					first := id
					for range burst {
						id++
						a.qp.postRaw(write(a, b, id, 0, 0, 64))
					}
					rest(t, a, b)
					synctest.Wait()
					for i := first + 1; i <= id; i++ {
						a.qp.send.waitStatus(i, abi.WCSuccess)
					}
				}
				sends := int(links[0].sends.Load())
				require.LessOrEqual(t, sends, (bursts-1)*burst/4) // the median is a fifteenth, with -race, which schedules at random
				// After a poll nobody looks at the link for a millisecond: a
				// probe may be quicker.
				require.LessOrEqual(t, a.counter(t, "retransmitted_pkts"), uint64(bursts))
			})
		})
	}
}

// Two messages that follow each other are no stream: none waits. The third is.
func TestPairsAreNoStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, _ := countedPair(t)
		q := a.qp.qp
		now := engine.Time(0)
		rings := func(pause time.Duration) bool {
			now += engine.Time(pause)
			if q.streams(now) {
				return false
			}
			q.stream.last.Store(int64(now))
			return true
		}
		for _, size := range []int{64, 16 << 10, 64 << 10} {
			q.flying.Store(true)
			q.stream.size.Store(int64(size))
			gap := ring.StreamGap(size)
			for range 10 {
				require.True(t, rings(time.Second))
				require.True(t, rings(gap))
			}
			require.False(t, rings(gap))
			require.True(t, rings(gap+1))
			require.True(t, rings(gap))
			q.flying.Store(false)
			require.True(t, rings(gap), "nothing would end the wait")
		}
	})
}

// The bytes that wait are bounded, too: of long messages few wait.
func TestStreamIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, _ := countedPair(t)
		q := a.qp.qp
		for size, most := range map[uint32]int{0: 64, 64: 64, 4 << 10: 64, 16 << 10: 16, 48 << 10: 5, 1 << 31: 1} {
			q.stream.took(size)
			require.Equal(t, most, q.stream.most(), size)
			q.leaveNote()
			require.Equal(t, int64(1)+int64(q.sq.Spare(most-1)), q.stream.from.Load())
			q.served(0)
		}
	})
}

// A closing device sends the rest of a stream at once.
func TestCloseSendsTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, _ := countedPair(t)
		for id := range uint64(30) {
			b.mem.buf[id] = 0
			a.mem.buf[id] = byte(id + 1)
			a.qp.postRaw(write(a, b, id, int(id), int(id), 1))
		}
		a.Close()
		synctest.Wait()
		for id := range 30 {
			require.Equal(t, byte(id+1), b.mem.buf[id], id)
		}
	})
}
