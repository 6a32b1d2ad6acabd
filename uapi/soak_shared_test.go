package uapi

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"
)

// stackReceives is the shared receive queue of a server, with the completion
// queue of all queue pairs that take from it, and an account of its receives.
//
// Receives are taken in the order in which they were posted, at most one a
// message. So the numbers of those that completed have no more gaps than there
// are messages under way and messages whose sender or queue pair has gone, and
// a queue that is full tells how many were taken. The same bounds say when a
// limit's event may come, and when it must.
type stackReceives struct {
	*stackSoak
	p       *stackProcess
	r       *rand.Rand
	srq     SRQ
	cq      CQ
	stop    context.CancelFunc
	running sync.WaitGroup
	gone    chan struct{} // closed: no completion comes any more

	mu     sync.Mutex
	takers map[QP]*stackTaker // guarded by mu, as all below
	place  map[WRID]uint64    // offset in memory of each receive that has not completed
	free   []uint64           // places
	posted int                // receives
	seen   int                // of them, that completed
	top    int                // the last one that completed was before it
	live   int                // messages under way
	dead   int                // messages whose connection has gone, which may have taken a receive each
	limit  int                // asked for; 0: none
	before int                // posted when that was
	taken  int                // receives just after that
	asked  time.Time          // when that was
	due    time.Time          // since when the event must be there; zero: it need not
}

// stackTaker is a queue pair that messages are sent to.
type stackTaker struct {
	came    chan WC
	missing int // messages whose completions have not come
}

const (
	soakReceive = 4096 // bytes of a receive
	soakShared  = 6    // receives that wait
	soakBurst   = 3    // messages that a client sends at a time
	soakPlaces  = soakShared + soakClients*4*soakBurst
	soakServer  = soakClients*soakSlot + soakPlaces*soakReceive
	soakPrompt  = time.Millisecond // for an event to be delivered: in a bubble, no time at all
)

// serve starts a server on a host.
func (s *stackSoak) serve(h *stackHost, r *rand.Rand) *stackProcess {
	p := s.launch(h, soakServer)
	q := &stackReceives{stackSoak: s, p: p, r: r, gone: make(chan struct{}), takers: map[QP]*stackTaker{}, place: map[WRID]uint64{}}
	for i := range uint64(soakPlaces) {
		q.free = append(q.free, soakClients*soakSlot+i*soakReceive)
	}
	var err error
	q.srq, err = p.CreateSRQ(SRQConfig{Depth: soakShared})
	s.check(err)
	q.cq, err = p.CreateCQ(soakPlaces)
	s.check(err)
	ctx, stop := context.WithCancel(context.Background())
	q.stop, p.shared = stop, q
	events := p.Events(ctx)
	q.fill()
	q.running.Go(func() { q.watch(ctx, events) })
	q.running.Go(func() { q.complete(ctx) })
	return p
}

// fails is whether an error is the process's end.
func (q *stackReceives) fails(err error) bool {
	if err != nil && q.p.death().IsZero() {
		q.failf("a server: %v", err)
	}
	return err != nil
}

// fill posts receives until the queue is full, and asks for the next event.
func (q *stackReceives) fill() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.post() {
		return
	}
	q.taken = q.posted - soakShared
	if q.taken < q.top || q.taken > q.seen+q.live+q.dead {
		q.failf("%d shared receives were taken; %d completed, messages are %d under way and %d without a connection", q.taken, q.seen, q.live, q.dead)
	}
	if q.live == 0 {
		q.dead = q.taken - q.seen // the others took none
	}
	q.limit, q.asked, q.due, q.before = 1+q.r.IntN(soakShared), time.Now(), time.Time{}, q.posted
	if q.fails(q.p.SetSRQLimit(q.srq, q.limit)) || !q.post() {
		return
	}
	q.taken = q.posted - soakShared // all those before the limit was set, at least
}

// post posts receives until the queue is full; false when the process has
// ended. Preconditions: mu is held.
func (q *stackReceives) post() bool {
	for {
		if len(q.free) == 0 {
			q.failf("%d receives of a server of %d messages under way have not come back", len(q.place), q.live)
		}
		at := q.free[0]
		id, err := q.p.PostSRQRecv(q.srq, q.p.mr, at, soakReceive)
		if errors.Is(err, syscall.ENOMEM) {
			return true
		}
		if q.fails(err) {
			return false
		}
		q.free, q.place[id], q.posted = q.free[1:], at, q.posted+1
	}
}

// watch posts receives when a limit's event comes, sometimes late, and resizes
// the completion queue under the traffic.
func (q *stackReceives) watch(ctx context.Context, events <-chan Event) {
	for e := range events {
		if e.SRQ != q.srq || e.Type != EventSRQLimitReached {
			continue
		}
		q.reach(e.Time)
		q.tally(func(c *stackCount) { c.limits++ })
		select { // virtual
		case <-time.After(time.Duration(q.r.IntN(2)*q.r.IntN(3000)) * time.Microsecond):
		case <-ctx.Done():
			return
		}
		if q.r.IntN(4) == 0 && !q.fails(q.p.ResizeCQ(q.cq, soakPlaces*(1+q.r.IntN(4)))) {
			q.tally(func(c *stackCount) { c.resizes++ })
		}
		q.fill()
	}
}

// reach checks that a limit's event comes in its time.
func (q *stackReceives) reach(at time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	left := q.before - q.seen - q.live - q.dead // at least
	switch {
	case q.limit == 0 || at.Before(q.asked):
		q.failf("an event of a shared receive queue that nobody asked for")
	case left >= q.limit:
		q.failf("an event of a shared receive queue at a limit of %d, but %d receives wait", q.limit, left)
	case !q.due.IsZero() && at.Sub(q.due) > soakPrompt:
		q.failf("an event of a shared receive queue came %v late", at.Sub(q.due))
	}
	q.limit = 0
}

// complete hands completions to the clients that wait for them.
func (q *stackReceives) complete(ctx context.Context) {
	defer close(q.gone)
	var wc [4]WC
	for {
		n, err := q.p.WaitQueue(ctx, q.cq, wc[:])
		if ctx.Err() != nil || q.fails(err) {
			return
		}
		for i := range wc[:n] {
			q.take(&wc[i])
		}
	}
}

func (q *stackReceives) take(w *WC) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at, waits := q.place[w.WRID]
	if !waits {
		q.failf("shared receive %d completes, which does not wait", w.WRID)
	}
	if taker := q.takers[w.QP]; taker != nil {
		q.live--
		taker.missing--
		select {
		case taker.came <- *w:
		default:
			q.failf("more receives complete than messages were sent: %v", w)
		}
	} else {
		q.dead--
		q.give(w.WRID, at)
	}
	q.seen++
	q.top = max(q.top, int(w.WRID)+1)
	if gaps := q.top - q.seen; gaps > q.live+q.dead || min(q.live, q.dead) < 0 {
		q.failf("%d shared receives were taken by %d messages under way and %d without a connection", gaps, q.live, q.dead)
	}
	switch {
	case q.limit == 0 || q.top <= q.taken || q.posted-q.top >= q.limit:
	case q.due.IsZero():
		q.due = time.Now()
	case time.Since(q.due) > soakPrompt:
		q.failf("a limit of %d, %d shared receives wait at most, and no event comes", q.limit, q.posted-q.top)
	}
}

// give returns a receive's place. Preconditions: mu is held.
func (q *stackReceives) give(id WRID, at uint64) {
	delete(q.place, id)
	q.free = append(q.free, at)
}

// begin announces n messages to a queue pair, whose completions the channel
// gets.
func (q *stackReceives) begin(qp QP, n int) <-chan WC {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.takers[qp]
	if t == nil {
		t = &stackTaker{came: make(chan WC, soakBurst)}
		q.takers[qp] = t
	}
	t.missing += n
	q.live += n
	return t.came
}

// end forgets a queue pair that has been destroyed.
func (q *stackReceives) end(qp QP) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.takers[qp]
	if t == nil {
		return // nothing was sent to it
	}
	delete(q.takers, qp)
	for len(t.came) > 0 {
		w := <-t.came
		q.give(w.WRID, q.place[w.WRID])
	}
	q.live -= t.missing
	q.dead += t.missing
}

// close ends the server's use of the queue, which nobody sends to any more, and
// counts its receives.
func (q *stackReceives) close() {
	q.stop()
	q.running.Wait()
	q.fill()
	q.tally(func(c *stackCount) { c.halfUsed += uint64(q.dead) })
	q.check(q.p.DestroySRQ(q.srq))
	q.check(q.p.DestroyCQ(q.cq))
}
