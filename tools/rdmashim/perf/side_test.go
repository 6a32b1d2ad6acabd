package perf

import (
	"context"
	"errors"
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

func TestMain(m *testing.M) { leak.Main(m) }

// pair is the two sides of a measurement, connected, on devices with options.
func pair(t *testing.T, options string, c Config) (client, server *Side) {
	t.Helper()
	a, b := uapitest.Pair(t, options)
	client, err := NewSide(a, c, true)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	server = must.Get(NewSide(b, c, false))(t)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	here, there := net.Pipe()
	connected := make(chan error, 1)
	go func() { connected <- server.Connect(t.Context(), there) }()
	require.NoError(t, client.Connect(t.Context(), here))
	require.NoError(t, <-connected)
	require.NoError(t, here.Close())
	require.NoError(t, there.Close())
	return client, server
}

// run is one run of a bandwidth.
func run(t *testing.T, client, server *Side) Result {
	t.Helper()
	require.NoError(t, client.Prepare(client.Config.Sizes[0]))
	require.NoError(t, server.Prepare(client.Config.Sizes[0]))
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	r, err := client.Bandwidth(ctx)
	cancel()
	require.NoError(t, errors.Join(err, <-served))
	return r
}

// TestChargeCoversSide: a client is charged for all memory that its wishes cost
// the server.
func TestChargeCoversSide(t *testing.T) {
	_, b := uapitest.Pair(t, "")
	for name, c := range map[string]Config{
		"small":         {Op: Write, QPs: 1, Depth: 1},
		"deep":          {Op: Write, QPs: 1, Depth: MaxDepth},
		"deep receives": {Op: Send, QPs: 1, Depth: 10000},
		"inline":        {Op: Write, QPs: 1, Depth: MaxDepth, Inline: 512},
		"lists":         {Op: Send, QPs: 2, Depth: 5000, List: 5000},
		"queue pairs":   {Op: Send, QPs: 1000, Depth: 8},
		"checked":       {Op: Write, QPs: 1, Depth: 1, Check: true, Sizes: []int{8 << 20}},
	} {
		t.Run(name, func(t *testing.T) {
			c.Iterations, c.Moderation, c.List = 1, 1, max(c.List, 1)
			if c.Sizes == nil {
				c.Sizes = []int{8}
			}
			used := func() int64 {
				runtime.GC()
				runtime.GC() // queues' memory goes behind the first
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return int64(m.HeapAlloc)
			}
			before := used()
			s := must.Get(NewSide(b, c, false))(t)
			defer s.Close()
			for _, qp := range s.qps {
				must.Get(b.LocalEndpoint(qp))(t) // takes receives from now on
			}
			require.NoError(t, s.Prepare(c.Sizes[0]))
			_ = s.Verify(0)
			require.LessOrEqual(t, used()-before, c.Bytes()+c.besides())
		})
	}
}

// A check of bytes finds one that is not as it was sent, wherever it lies, and
// one of atomics an addition that is missing.
func TestVerify(t *testing.T) {
	config := Config{Op: Write, Sizes: []int{100}, Iterations: 20, Warmup: 5, QPs: 2, Depth: 4, List: 1, Moderation: 2, Events: true, Check: true}
	client, server := pair(t, "", config)
	r := run(t, client, server)
	require.Equal(t, 40, r.Iterations)
	require.NoError(t, server.Verify(r.Total))
	for slot := range 2 {
		for at := range config.Sizes[0] {
			b := &server.mem[server.in(slot)+at]
			*b ^= 0x10
			var corrupt *CorruptError
			require.ErrorAs(t, server.Verify(r.Total), &corrupt)
			require.Equal(t, []int{slot, at}, []int{corrupt.Slot, corrupt.Offset})
			*b ^= 0x10
		}
	}

	config.Op, config.Sizes = Atomic, []int{AtomicSize}
	client, server = pair(t, "", config)
	r = run(t, client, server)
	require.Equal(t, 50, r.Total)
	require.NoError(t, server.Verify(r.Total))
	require.ErrorContains(t, server.Verify(r.Total+1), "51 additions of 1 made 50")
}

// Percentiles are those of all that was recorded, to three digits.
func TestPercentiles(t *testing.T) {
	h := newHistogram()
	for ns := int64(1000); ns <= 10_000_000; ns += 1000 { // 1 µs to 10 ms
		require.NoError(t, h.RecordValue(ns))
	}
	l := newLatency(h)
	for _, c := range []struct{ is, want float64 }{
		{l.Min, 1}, {l.Max, 10_000}, {l.Typical, 5000}, {l.Avg, 5000.5}, {l.Stdev, 2886.75}, {l.P99, 9900}, {l.P999, 9990},
	} {
		require.InEpsilon(t, c.want, c.is, 0.002)
	}
}
