package uapitest

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"time"
)

// watch finds the goroutines that a piece of code started. Goroutines inherit
// their creator's profiler labels, so that those of other tests, which may run
// at the same time, are told apart.
type watch struct{ id string }

const watchLabel = "uapitest"

var watches atomic.Uint64

// run calls f and watches the goroutines that f starts.
func (w watch) run(f func()) {
	pprof.Do(context.Background(), pprof.Labels(watchLabel, w.id), func(context.Context) { f() })
}

// patience is how long goroutines may take to end once they were told to.
const patience = 5 * time.Second

// left is the stacks of the watched goroutines that do not end, or "".
func (w watch) left() string {
	const step = 5 * time.Millisecond
	stacks := w.stacks()
	for range patience / step {
		if stacks == "" {
			break
		}
		time.Sleep(step) // poll, bounded: there is no event for a goroutine's end
		stacks = w.stacks()
	}
	return stacks
}

// stacks is the watched goroutines' part of the goroutine profile.
func (w watch) stacks() string {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		return ""
	}
	mark := fmt.Sprintf("%q:%q", watchLabel, w.id)
	var found []string
	for block := range strings.SplitSeq(profile.String(), "\n\n") {
		if strings.Contains(block, mark) {
			found = append(found, block)
		}
	}
	return strings.Join(found, "\n\n")
}
