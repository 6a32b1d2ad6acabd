package engine

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/engine/path"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// fixed is a controller whose window never changes, and whose packets wait for
// nothing else. It counts what it is told.
type fixed struct {
	window int

	flows, packet           int
	sent, acked, measured   int
	losses, marks, timeouts int
}

func (f *fixed) control(_ *path.Measured, _ int) path.Controller { return f }

func (f *fixed) Serve(flows, packet int) { f.flows, f.packet = flows, packet }

func (f *fixed) Sent(_ Time, n int) { f.sent += n }

func (f *fixed) Acked(_ Time, n int, rtt Duration, _ int) {
	f.acked += n
	if rtt != 0 {
		f.measured++
	}
}

func (f *fixed) Lost() { f.losses++ }

func (f *fixed) Marked(Time) { f.marks++ }

func (f *fixed) Timeout() { f.timeouts++ }

func (f *fixed) Room() (bytes int, after Time) { return f.window, 0 }

// Another controller takes the place of Swift: a transfer over a network that
// loses packets ends with it, has never more in flight than its window, and
// fills that. It is told of all that is sent, arrives and is lost.
func TestControllerIsExchanged(t *testing.T) {
	const window, size, messages = 12 * (1024 + packetCost), 100_000, 8
	for name, stash := range map[string]func() *Stash{
		"selective": NewStash,
		"go back N": func() *Stash { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			f := fixed{window: window}
			n := newPair(t, cfg{edit: func(side int, c *Config) {
				if c.Stash = stash(); side == 0 {
					c.Paths = path.NewSet(0, f.control)
				}
			}})
			rng := rand.New(rand.NewPCG(1, 2))
			most := 0
			n.filter = func(from *host, _ *wire.Packet) (copies int, delay Time) {
				most = max(most, n.a.qp.Gauges().InFlight)
				if rng.IntN(20) == 0 {
					return 0, 0
				}
				return 1, 0
			}
			fill(n.a.mem, 3)
			for id := range uint64(messages) {
				n.complete(n.a, n.write(id, size))
			}
			requireSuccess(t, n.a.wcs, 0, 1, 2, 3, 4, 5, 6, 7)
			require.LessOrEqual(t, most, window)
			require.Greater(t, most, window-2*(1024+packetCost))
			cost := messages * (size + int(packets(size, 1024))*packetCost)
			require.Equal(t, cost, f.acked)
			require.Greater(t, f.sent, cost)
			require.NotZero(t, f.measured)
			require.NotZero(t, f.losses)
			require.Equal(t, []int{0, 1024 + packetCost}, []int{f.flows, f.packet})
			require.Equal(t, window, n.a.qp.Gauges().PathWindow)
		})
	}
}
