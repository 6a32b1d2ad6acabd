package core

import (
	"flag"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rdmashim/rdmashim/tests/amount"
)

var (
	flagN    = flag.Int("core.n", 0, "how many seeds the soak runs; 0: 3000, all of the 10000 with tools/test --all, 500 with -short or -race")
	flagSeed = flag.Uint64("core.seed", 0, "run this seed only, and print every operation with -v")
)

// TestSoak runs random programs on two connections with a lossless, ordered
// pipe between them that delivers random pieces, and holds them against an
// oracle: every byte arrives once and in order, no credit is exceeded, and at
// the end both sides agree on everything.
func TestSoak(t *testing.T) {
	if *flagSeed != 0 {
		w := newWorld(*flagSeed)
		w.log = testing.Verbose()
		if err := w.run(); err != nil {
			t.Fatal(err)
		}
		return
	}
	n := uint64(amount.Of(3_000, 10_000))
	if testing.Short() || amount.Race {
		n = 500
	}
	if *flagN > 0 {
		n = uint64(*flagN)
	}
	var next, failed atomic.Uint64
	var wg sync.WaitGroup
	var mu sync.Mutex
	var sum tally
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			var mine tally
			for seed := next.Add(1); seed <= n && failed.Load() < 5; seed = next.Add(1) {
				w := newWorld(seed)
				if err := w.run(); err != nil {
					failed.Add(1)
					t.Errorf("seed %d: %v\n\treplay: go test ./uapi/qmux/core -run TestSoak -v -core.seed=%d", seed, err, seed)
				}
				mine.add(&w.tally)
			}
			mu.Lock()
			sum.add(&mine)
			mu.Unlock()
		})
	}
	wg.Wait()
	t.Logf("%+v", sum)
	if n >= 500 && failed.Load() == 0 {
		sum.check(t)
	}
}

// tally counts what the seeds have reached.
type tally struct {
	Streams, Bytes, Resets, ResetsAt, Stops, Datagrams, Pings int
	Blocked, StreamsBlocked, FinsAlone, Grown, Closes, Cuts   int
	Lent, Awaited                                             int
}

func (a *tally) add(b *tally) {
	to, from := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for i := range to.NumField() {
		to.Field(i).SetInt(to.Field(i).Int() + from.Field(i).Int())
	}
}

func (a *tally) check(t *testing.T) {
	for field, n := range reflect.ValueOf(*a).Fields() {
		if n.IsZero() {
			t.Errorf("the soak never reached %s", field.Name)
		}
	}
}
