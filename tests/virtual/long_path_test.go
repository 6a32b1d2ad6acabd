package virtual

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// longPath is traffic of one queue pair on a path without loss.
type longPath struct {
	*traffic
	a       *QP
	sampled bool   // the round trip was measured, and
	repeats uint64 // so many packets had been sent again before
}

// longGoodput is the goodput that rnic/engine's window allows, in bytes a
// second.
func longGoodput(rtt engine.Duration) float64 {
	window := min(1<<20*(1+rtt/(2*engine.Millisecond)), 4<<20)
	return float64(window/(trafficMTU+256)*trafficMTU) / (float64(rtt) / 1e9)
}

func newLongPath(t *testing.T, rtt engine.Duration, op abi.WROpcode, timeout wire.AckTimeout) *longPath {
	l := &longPath{}
	l.traffic = newReceiver(t, Options{Latency: rtt / 2, Rate: 20e9}, op, abi.MTU4096, timeout)
	l.addSender(t, 0, 1)
	l.a = l.pairs[0].a
	l.arrived = func() {
		if !l.sampled && l.a.Gauges().RTT != 0 {
			l.sampled, l.repeats = true, l.repeated()
		}
	}
	return l
}

// TestLongPath: on a path without loss, however long, only the window limits
// the goodput. A wrong first guess of the round trip may cost repeats in the
// beginning; a right estimate costs none. Nothing is sent again after the first
// measurement. Code 16, 268 ms, is uapi's ACK timeout. Code 14, 67 ms, is many
// a program's: less than some of the paths take.
func TestLongPath(t *testing.T) {
	for name, op := range trafficOpcodes {
		if testing.Short() && op == abi.WRSend {
			continue // as WRITEs, on virtual time
		}
		for _, ms := range []engine.Duration{1, 5, 20, 100, 300} {
			for _, v := range []struct {
				name     string
				timeout  wire.AckTimeout
				estimate bool
			}{{"guess", 16, false}, {"estimate", 16, true}, {"short timeout", 14, false}, {"no timeout", 0, false}} {
				if v.timeout == 14 && ms > 100 {
					continue // seven ACK timeouts are 470 ms
				}
				t.Run(fmt.Sprintf("%s/%dms/%s", name, ms, v.name), func(t *testing.T) {
					rtt := ms * engine.Millisecond
					l := newLongPath(t, rtt, op, v.timeout)
					if v.estimate {
						l.a.Estimate(rtt)
					}
					l.goodput(t, 10*rtt) // the window opens
					got := l.goodput(t, 10*rtt)
					require.InEpsilon(t, longGoodput(rtt), got, 0.2)
					require.True(t, l.sampled)
					require.LessOrEqual(t, l.repeats, uint64(8), "four timeouts, of two packets each")
					require.Equal(t, l.repeats, l.repeated(), "sent again after the round trip was measured")
					if v.estimate {
						require.Zero(t, l.repeats)
					}
				})
			}
		}
	}
}

// TestPathGrowsLonger: a path that was measured and then takes longer is
// measured again, also when the answer to a packet's first copy comes as soon
// after the last copy as answers came before: after a first timeout of 5 ms the
// last copy leaves at 5, 15 or 35 ms.
func TestPathGrowsLonger(t *testing.T) {
	for name, op := range trafficOpcodes {
		if testing.Short() && op == abi.WRSend {
			continue // as WRITEs, on virtual time
		}
		for _, ms := range []engine.Duration{6, 17, 37, 100} {
			t.Run(fmt.Sprintf("%s/%dms", name, ms), func(t *testing.T) {
				l := newLongPath(t, engine.Millisecond, op, 16)
				l.goodput(t, 20*engine.Millisecond)
				require.Zero(t, l.repeated())
				rtt := ms * engine.Millisecond
				l.w.latency = engine.Time(rtt / 2)
				l.goodput(t, 30*rtt)
				require.NotZero(t, l.repeated())
				require.InEpsilon(t, float64(rtt), float64(l.a.Gauges().RTT), 0.5)
				before := l.repeated()
				l.goodput(t, 30*rtt) // grows by a quarter each round trip
				require.Equal(t, before, l.repeated())
				require.InEpsilon(t, longGoodput(rtt), l.goodput(t, 10*rtt), 0.2)
			})
		}
	}
}
