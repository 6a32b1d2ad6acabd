package session

import (
	"sync"
	"sync/atomic"
	"time"
)

// A handler that returns at once runs in the goroutine that reads its
// connection: no goroutine is started, and none is woken. A method's handlers
// run so while the last ones were brief, and no longer when one was not.
// Meanwhile another goroutine waits to take the reading over, so that a handler
// that blocks all the same holds up its connection for a moment only.
const (
	brief       = 50 * time.Microsecond
	briefRuns   = 16               // more brief runs than others, before a method's handlers run in the reader
	mostRuns    = 64               // that are remembered
	slowRuns    = 24               // brief runs that one which was not outweighs
	readerWaits = time.Millisecond // until another goroutine reads
)

// pace counts the brief runs of a method's handlers.
type pace struct {
	runs atomic.Int32 // brief ones, less those that others outweigh
}

// note notes how long a handler took. Notes at once may lose one another, which
// is no harm.
func (p *pace) note(took time.Duration) {
	n := p.runs.Load()
	if took <= brief {
		p.runs.Store(min(n+1, mostRuns))
	} else {
		p.runs.Store(max(n-slowRuns, -mostRuns))
	}
}

func (p *pace) brief() bool { return p.runs.Load() >= briefRuns }

// paces are those of methods, by name; methods beyond the bound are not brief.
type paces struct {
	mu sync.Mutex
	by map[string]*pace
}

const maxPaces = 1024

func (p *paces) of(method string) *pace {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.by[method]
	if x == nil && len(p.by) < maxPaces {
		if p.by == nil {
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
