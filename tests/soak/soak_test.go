package soak

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
)

var (
	flagN    = flag.Int("sim.n", 0, "how many seeds the soak runs; 0: 2000, all of the 10000 with tools/test --all, fewer with -short or -race")
	flagSeed = flag.Uint64("sim.seed", 0, "run this seed only, and print every event with -v")
	flagFrom = flag.Uint64("sim.from", 1, "the first seed of the soak")
	flagStop = flag.Int("sim.stop", 5, "failed seeds after which the soak stops")
)

// seeds is how many seeds the soak runs.
func seeds() int {
	switch {
	case *flagN > 0:
		return *flagN
	case testing.Short() || amount.Race:
		return 100
	}
	return amount.Of(2000, seedsEverywhere)
}

const seedsEverywhere = 10_000

// kinds is how many kinds of events the soak is to come to.
const kinds = 145

// replay is the command that runs a seed again, in the module's directory.
func replay(seed uint64) string {
	return fmt.Sprintf("go test ./tests/soak -run TestSoak -v -sim.seed=%d", seed)
}

// TestSoak runs the seeds on all processors, each seed on one.
func TestSoak(t *testing.T) {
	if *flagSeed != 0 {
		runOne(t, *flagSeed)
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // worlds are small, and many
	start := time.Now()
	total, failed := soak(*flagFrom, seeds(), *flagStop)
	for _, f := range failed {
		t.Errorf("seed %d (trace %016x): %v\n\treplay: %s", f.Seed, uint64(f.Trace), f.Err, replay(f.Seed))
	}
	// At the beginning of lines, where tools/test looks for it.
	fmt.Printf("soak: %d seeds in %.1f s\n", seeds(), time.Since(start).Seconds())
	for line := range strings.Lines(total.String()) {
		fmt.Print("soak: ", line)
	}
	if len(failed) > 0 || seeds() < 1000 {
		return // too few to reach everything
	}
	require.Equal(t, kinds, len(total), "the soak is to reach other kinds of events")
}

// runOne runs a seed with its events shown.
func runOne(t *testing.T, seed uint64) {
	var log func(string)
	if testing.Verbose() {
		log = func(line string) { fmt.Println(line) }
	}
	rep := Run(seed, log)
	t.Logf("seed %d, trace %016x", seed, uint64(rep.Trace))
	if rep.Err != nil {
		t.Errorf("seed %d (trace %016x): %v\n\treplay: %s", seed, uint64(rep.Trace), rep.Err, replay(seed))
	}
}

// soak runs n seeds and stops early after some failures.
func soak(from uint64, n, stop int) (total tally, failed []Report) {
	var mu sync.Mutex
	var next int
	total = tally{}
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			for len(failed) < stop && next < n {
				next++
				seed := from + uint64(next) - 1
				mu.Unlock()
				rep := Run(seed, nil)
				mu.Lock()
				for name, k := range rep.Tally {
					total[name] += k
				}
				if rep.Err != nil {
					failed = append(failed, rep)
				}
			}
		})
	}
	wg.Wait()
	return total, failed
}
