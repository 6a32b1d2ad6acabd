package session

import (
	"sync"
	"sync/atomic"
	"time"
)

// A handler that returns at once runs in the goroutine that reads its
// connection: no goroutine is started, and none is woken. A method's handlers
// run so once its score reaches briefRuns: +1 for a run of at most briefTime,
// -slowRuns for a longer one, within ±mostRuns. Meanwhile a timer waits to let
// another goroutine take the reading over, so that a handler that blocks all
// the same holds up its connection for readerWaits only.
const (
	briefTime   = 50 * time.Microsecond
	briefRuns   = 16
	mostRuns    = 64
	slowRuns    = 24
	readerWaits = time.Millisecond
)

// pace is the score of a method.
type pace struct {
	runs atomic.Int32
}

// countRun counts a run that took so long. Of two notes at once one may be
// lost, which does no harm.
func (p *pace) countRun(took time.Duration) {
	n := p.runs.Load()
	if took <= briefTime {
		p.runs.Store(min(n+1, mostRuns))
	} else {
		p.runs.Store(max(n-slowRuns, -mostRuns))
	}
}

func (p *pace) brief() bool { return p.runs.Load() >= briefRuns }

// paces holds the pace of each method, by name: strangers choose the names, so
// beyond maxPaces all begin anew.
type paces struct {
	mu sync.Mutex
	by map[string]*pace
}

const maxPaces = 1024

func (p *paces) of(method string) *pace {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.by[method]
	if x == nil {
		if p.by == nil || len(p.by) >= maxPaces {
			p.by = map[string]*pace{}
		}
		x = &pace{}
		p.by[method] = x
	}
	return x
}

// relay hands the reading of a connection from a goroutine that runs a handler
// to another one.
type relay struct {
	run   atomic.Uint64 // odd while a handler runs in the reader
	timer *time.Timer
}

// begin has take start another reader when a handler has run for long.
func (r *relay) begin(take func()) {
	r.timer = time.AfterFunc(time.Hour, func() {
		if n := r.run.Load(); n%2 == 1 && r.run.CompareAndSwap(n, n+1) {
			take()
		}
	})
	r.timer.Stop()
}

// inline runs a handler in the reader. It returns false when another goroutine
// has taken the reading over meanwhile.
func (r *relay) inline(handler *running) (reads bool) {
	n := r.run.Add(1)
	r.timer.Reset(readerWaits)
	handler.run()
	if reads = r.run.CompareAndSwap(n, n+1); reads {
		r.timer.Stop()
	}
	return reads
}
