package perf

import (
	"context"
	"math"
	"time"

	"github.com/rdmashim/rdmashim/uapi"
)

// stream keeps the queue pairs full until each has moved its messages, or, if
// d is not 0, until so much time has passed and each has moved one. The meter,
// if any, sees the progress. When ctx ends messages may be unfinished.
func (s *Side) stream(ctx context.Context, perQP int, d time.Duration, m *meter) error {
	if perQP == 0 {
		return nil
	}
	began := time.Now()
	clear(s.queues)
	s.flying = 0
	limit, last, base := s.Config.limit(), perQP, s.total
	next, open := 0, len(s.queues)
	for open > 0 || s.flying > 0 {
		// A completion is waited for only when nothing can be posted: posted
		// requests may be without one.
		for full := 0; full < len(s.queues) && s.flying < limit && open > 0; {
			i := next
			if next++; next == len(s.queues) {
				next = 0
			}
			n, ended, err := s.post(i, last, limit)
			if err != nil {
				return err
			}
			if full++; n > 0 {
				full = 0
			}
			if ended {
				open--
			}
		}
		if err := s.reap(ctx); err != nil {
			return err
		}
		now := m.count(s.total - base)
		if d > 0 && last > 1 {
			if now.IsZero() {
				now = time.Now()
			}
			if now.Sub(began) >= d {
				last = 1 // posted requests are seen to their end
				open = s.reopen()
			}
		} else if d > 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// reopen counts the queue pairs that have something left to post when the time
// is over: a first message, or one more that tells of those without completion.
func (s *Side) reopen() int {
	n := 0
	for i := range s.queues {
		if q := &s.queues[i]; q.posted == 0 || q.silent > 0 {
			n++
		}
	}
	return n
}

// post posts one list to queue pair i if there is room, of n messages, and says
// whether it was the queue pair's last: last messages are posted, and all of
// them will be told of.
func (s *Side) post(i, last, limit int) (n int, ended bool, err error) {
	c, q := &s.Config, &s.queues[i]
	want := last - q.posted
	if want <= 0 {
		if q.silent == 0 {
			return 0, false, nil
		}
		want = 1
	}
	n = min(c.List, want, c.Depth-(q.posted-q.done), limit-s.flying)
	if n <= 0 || n < c.List && n < want {
		return 0, false, nil // a list goes when there is room for it
	}
	slot := i % s.slots
	every, list := c.every(), c.List > c.Depth/2
	for k := range s.wrs[:n] {
		q.posted++
		q.silent++
		w := &s.wrs[k]
		w.Flags, w.ID = 0, uapi.WRID(q.posted)<<indexBits|uapi.WRID(i)
		if q.silent >= every || q.posted >= last || list && k == n-1 {
			w.Flags, q.silent = uapi.Signaled, 0
		}
		s.request(w, slot)
	}
	if _, err := s.rdma.Post(s.qps[i], s.wrs[:n]); err != nil {
		return 0, false, err
	}
	s.flying += n
	return n, q.posted >= last, nil
}

// request fills in the work request of a message of the run.
func (s *Side) request(w *uapi.WR, slot int) {
	c := &s.Config
	local := s.out(slot)
	w.RemoteAddr, w.RKey = s.peer.Addr+uint64(s.in(slot)), s.peer.RKey
	switch c.Op {
	case Write:
		w.Op = uapi.OpWrite
		if c.takesReceives() {
			w.Op = uapi.OpWriteImm
		}
	case Send:
		w.Op = uapi.OpSend
	case Read:
		w.Op = uapi.OpRead
		local, w.RemoteAddr = s.in(slot), s.peer.Addr+uint64(s.out(slot))
	case Atomic:
		w.Op, w.CompareAdd = uapi.OpFetchAdd, 1
	}
	if s.size <= c.Inline && (c.Op == Write || c.Op == Send) {
		w.Flags |= uapi.Inline
	}
	w.SGE[0] = uapi.SGE{MR: s.mr, Offset: uint64(local), Length: uint64(s.size)}
}

// Bandwidth is a run of a side that asks: the warm-up, then what is measured.
// With an error the result says what was done before it.
func (s *Side) Bandwidth(ctx context.Context) (Result, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	cpu := CPUTime()
	c := &s.Config
	m := newMeter(c.QPs*c.Iterations, c.limit())
	perQP, warm := c.Iterations, time.Duration(0)
	if c.Duration > 0 {
		m.section, perQP, warm = 0, math.MaxInt, warmest
	}
	before, u := s.total, startUsage()
	m.begin()
	err := s.stream(ctx, c.Warmup, warm, nil)
	if err == nil {
		s.fill(1)
		if c.Op == Read && c.Check {
			clear(s.mem[:s.slots*s.stride])
		}
		before, u = s.total, startUsage()
		m.begin()
		err = s.stream(ctx, perQP, c.Duration, m)
	}
	d := time.Since(m.began)
	r := Result{Bytes: s.size, Iterations: s.total - before, Seconds: d.Seconds(), Total: s.total}
	err = s.over(&r, err)
	u.end(&r)
	r.ClientCPU = (CPUTime() - cpu).Seconds()
	r.Bandwidth = newBandwidth(r, m.best)
	return r, err
}

// Serve answers until ctx ends, which is no error: context.Cause(ctx) tells
// why.
func (s *Side) Serve(ctx context.Context) error {
	c := &s.Config
	switch {
	case c.Latency && (c.Op == Write || c.Op == Send):
		return s.pong(ctx)
	case c.Slow > 0:
		return s.serveSlowly(ctx)
	case c.Op == Send:
		for ctx.Err() == nil {
			if err := s.reap(ctx); err != nil && ctx.Err() == nil {
				return err
			}
		}
	default:
		<-ctx.Done()
	}
	return nil
}

// serveSlowly takes one message in a time, and lets others wait.
func (s *Side) serveSlowly(ctx context.Context) error {
	slow := s.Config.Slow
	tick := time.NewTicker(max(slow, time.Millisecond))
	defer tick.Stop()
	began, owed := time.Now(), 0 // messages whose time has passed
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for due := int(time.Since(began)/slow) - owed; due > 0; {
			n, err := s.rdma.PollQueue(s.cq, s.wc[:min(due, len(s.wc))])
			if err == nil {
				err = s.take(max(n, 0))
			}
			if err != nil {
				return err
			}
			if n <= 0 {
				// The time went unused, and it does not come again.
				owed += due
				break
			}
			due, owed = due-n, owed+n
		}
	}
}

// meter finds the best rate of a section of a run.
type meter struct {
	all        int // messages
	section    int // messages; 0 takes none
	seen, next int
	began, at  time.Time
	best       float64 // messages a second
}

// sections is in how many parts a run is looked at for its peak, if a part is
// more than what completes at once.
const sections = 16

func newMeter(messages, outstanding int) *meter {
	return &meter{all: messages, section: max(1, messages/sections, min(messages, 2*outstanding))}
}

func (m *meter) begin() {
	m.began = time.Now()
	m.at, m.next = m.began, m.section
}

// count notes that n messages are done, and returns the time if it looked.
func (m *meter) count(n int) time.Time {
	if m == nil || m.section == 0 || n < m.next {
		return time.Time{}
	}
	now := time.Now()
	if d := now.Sub(m.at).Seconds(); d > 0 {
		m.best = max(m.best, float64(n-m.seen)/d)
	}
	m.seen, m.at, m.next = n, now, min(n+m.section, m.all)
	return now
}
