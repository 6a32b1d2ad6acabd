package path

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// flow is a sender that always has packets for a path of rate bytes a
// nanosecond, whose queue is as long as all flows on it make it.
type flow struct{ *swift }

type bottleneck struct {
	rate  float64
	base  Duration
	now   Time
	flows []*flow
}

const fluidPacket = 1024 + 256

func (b *bottleneck) add() *flow {
	f := &flow{newSwift(new(Measured), 80<<10)}
	f.Serve(1, fluidPacket)
	b.flows = append(b.flows, f)
	return f
}

// rtt is the round trip with what all have in flight.
func (b *bottleneck) rtt() Duration {
	all := 0
	for _, f := range b.flows {
		all += f.size
	}
	return max(b.base, Duration(float64(all)/b.rate))
}

// run lets rounds of four measurements pass.
func (b *bottleneck) run(rounds int) {
	for range rounds {
		for range 4 {
			rtt := b.rtt()
			b.now += Time(rtt/4 + 1)
			for _, f := range b.flows {
				f.Limited = true
				f.Acked(b.now, f.size/4, 0, 0)
				f.took(b.now, rtt)
			}
		}
	}
}

// The queue of a path that one sender fills stays within what it may be, and
// the path is busy.
func TestCongestionFillsPath(t *testing.T) {
	for _, base := range []Duration{20 * Microsecond, Millisecond, 20 * Millisecond, 200 * Millisecond} {
		for _, rate := range []float64{0.0125, 0.125, 1.25} {
			b := &bottleneck{rate: rate, base: base}
			f := b.add()
			b.run(100)
			least := b.rtt()
			for range 100 {
				b.run(1)
				least = min(least, b.rtt())
				if f.refill == 0 {
					require.LessOrEqual(t, b.rtt()-base, 2*mostAllowance+base/8, "%d %g", base, rate)
				}
			}
			full := max(int(rate*float64(base)), f.floor)
			require.GreaterOrEqual(t, max(f.size, f.refill), full*3/4, "%d %g", base, rate)
		}
	}
}

// took notes a round trip.
func (f *flow) took(now Time, rtt Duration) {
	f.measure(now, rtt)
	f.Acked(now, 0, rtt, 0)
}

// apart notes measurements that are a round trip apart.
func (f *flow) apart(b *bottleneck, rtts ...Duration) {
	for _, rtt := range rtts {
		b.now += Time(rtt)
		f.took(b.now, rtt)
	}
}

// A loss cuts where there is a queue, and once in two rounds; where there is
// none it does not.
func TestCongestionJudgesLosses(t *testing.T) {
	b := &bottleneck{}
	f := b.add()
	f.apart(b, Millisecond)
	for range 50 {
		f.Lost()
		f.apart(b, Millisecond)
	}
	require.Equal(t, 80<<10, f.size)
	f.size = 1_000_000
	for range 4 {
		f.Lost()
		f.Lost()
		f.Lost()
		f.apart(b, Millisecond+leastAllowance/2)
	}
	require.Equal(t, uint64(2), f.cuts)
	require.Equal(t, 490_000, f.size)
}

// A round in which a host was late cuts the size, which is back after ten
// rounds without a queue.
func TestCongestionGrowsAgain(t *testing.T) {
	b := &bottleneck{rate: 1e9, base: 20 * Millisecond}
	f := b.add()
	b.run(8)
	size := f.size
	for range 4 {
		f.apart(b, 50*Millisecond)
	}
	require.Less(t, f.size, size/2)
	b.run(10)
	require.Greater(t, f.size, size)
}

// A mark cuts without a loss or a queue; silence cuts at once, and once.
func TestCongestionCuts(t *testing.T) {
	b := &bottleneck{}
	f := b.add()
	f.size = 100_000
	f.Marked(b.now)
	f.apart(b, Millisecond)
	require.Equal(t, 50_000, f.size, "half, as long as all rounds were marked")
	f.apart(b, Millisecond, Millisecond)
	for range 50 {
		f.apart(b, Millisecond)
	}
	f.size = 100_000
	f.Marked(b.now + Time(Millisecond))
	require.Greater(t, f.size, 95_000, "a mark ends the round, and cuts the less the rarer it is")

	f = b.add()
	f.Timeout()
	require.Equal(t, 40<<10, f.size)
	f.Timeout()
	require.Equal(t, 40<<10, f.size, "nothing was measured in between")
	for range 100 {
		f.settling = 0
		f.Timeout()
	}
	require.Equal(t, f.floor, f.size)
}

// A late answer beside one in time is no queue.
func TestCongestionForgivesLateAnswers(t *testing.T) {
	b := &bottleneck{}
	f := b.add()
	f.apart(b, Millisecond)
	for range 20 {
		b.now++
		f.took(b.now, 10*Millisecond)
		f.apart(b, Millisecond, Millisecond, Millisecond, Millisecond, Millisecond)
	}
	require.Zero(t, f.cuts)
}

// A path that becomes longer is measured anew.
func TestCongestionFollowsLongerPath(t *testing.T) {
	b := &bottleneck{rate: 0.0125, base: Millisecond}
	f := b.add()
	b.run(100)
	b.base = 50 * Millisecond
	b.run(100)
	require.InEpsilon(t, float64(50*Millisecond), float64(f.Base), 0.1)
	require.Greater(t, f.size+f.refill, 400_000)
}

// A newcomer measures the queue of others as a part of the path; the shares
// become equal all the same.
func TestCongestionSharesWithNewcomer(t *testing.T) {
	b := &bottleneck{rate: 0.125, base: Millisecond}
	first := b.add()
	b.run(200)
	second := b.add()
	b.run(3000)
	var got [2]float64
	for range 2000 {
		b.run(1)
		got[0] += float64(first.size)
		got[1] += float64(second.size)
	}
	sum := got[0] + got[1]
	require.Greater(t, sum*sum/(2*(got[0]*got[0]+got[1]*got[1])), 0.9)
}

// A size that does not limit does not grow.
func TestCongestionGrowsOnNeed(t *testing.T) {
	f := new(bottleneck).add()
	for now := range Time(100) {
		f.Acked(now*Time(Millisecond), 10_000, 0, 0)
		f.took(now*Time(Millisecond), Microsecond)
	}
	require.Equal(t, 80<<10, f.size)
}
