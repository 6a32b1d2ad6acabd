package rdmanet_test

import (
	"flag"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

var idle = flag.Int("rdmanet.idle", 0, "how many connections TestIdle makes, in place of 1,000 or, with -short, 100")

// TestIdle: idle connections have no goroutine, no timer but the keepalive's,
// and no more heap than docs/streams.md says; their rings and staging come on
// top of that.
func TestIdle(t *testing.T) {
	many := 1000
	if testing.Short() {
		many = 100
	}
	if *idle > 0 {
		many = *idle
	}
	for _, c := range []struct {
		name    string
		config  rdmanet.Config
		n       int
		heapKiB int // of both ends
	}{
		{"ring of 16 KiB", rdmanet.Config{Ring: 16 << 10}, many, 230},
		{"default", rdmanet.Config{}, max(many/10, 20), 500},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := softHost(t, c.config)
			h.join(t)
			goroutines, heap := runtime.NumGoroutine(), liveHeap()
			for range c.n {
				h.join(t)
			}
			require.Eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines+c.n/4 }, patience, 10*time.Millisecond, "goroutines of %d connections", c.n)
			kib := int(liveHeap()-heap) / c.n >> 10
			t.Logf("%d connections: %d KiB of heap each, both ends", c.n, kib)
			require.Less(t, kib, c.heapKiB)
		})
	}
	t.Run("timers", func(t *testing.T) {
		rate := runtime.MemProfileRate
		runtime.MemProfileRate = 1 // of each object
		defer func() { runtime.MemProfileRate = rate }()
		h := softHost(t, rdmanet.Config{Ring: 16 << 10})
		keepalive, others := timers()
		const n = 40
		for range n {
			h.join(t)
		}
		k, o := timers()
		require.Equal(t, int64(2*n), k-keepalive, "timers of the keepalive")
		require.Less(t, o-others, int64(n/8), "other timers")
	})
}

// liveHeap is how many bytes of the heap are in use.
func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// timers counts the timers in use, those of the keepalive and the others, as
// far as every object has been profiled. Timers of contexts are left out: those
// that bounded a handshake lie about, stopped, until the runtime finds them.
func timers() (keepalive, others int64) {
	for range 3 { // the profile is of the cycle before the last one
		runtime.GC()
	}
	records := make([]runtime.MemProfileRecord, 1<<16)
	n, _ := runtime.MemProfile(records, false)
	for _, r := range records[:min(n, len(records))] {
		made, kept, bound := false, false, false
		frames := runtime.CallersFrames(r.Stack())
		for more := true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			made = made || f.Function == "time.newTimer"
			kept = kept || strings.Contains(f.Function, "uapi.(*prober)")
			bound = bound || strings.HasPrefix(f.Function, "context.")
		}
		switch {
		case made && kept:
			keepalive += r.InUseObjects()
		case made && !bound:
			others += r.InUseObjects()
		}
	}
	return keepalive, others
}
