package admission

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// squeezeAfter is how long a request that was accepted is left to its peer's
// confirmation when all places are taken: long enough for a round trip and two
// busy programs, and short enough for 256 places (uapi.DefaultPending) to serve
// 1,000 requests a second from addresses that were made up, which never
// confirm.
//
// squeezeOwnAfter is the same for requests of an address that has used its
// share up, when more of its own wait: they compete among themselves. An
// address that has confirmed one within that time is an honest host, however
// busy, and is left alone. A full backlog of an address that confirms none is
// gone after 8 s.
const (
	squeezeAfter    = 250 * time.Millisecond
	squeezeOwnAfter = time.Second
)

// Queue decides which request is accepted next, and when. Requests cost nothing
// to send, from made-up addresses, so the work that they cause is bounded: no
// more than most are being accepted, no more than room wait, and an address has
// no more than its share of either. When a request waits for a place, the
// oldest one that is not confirmed makes way.
//
// Invariants: queued counts waiting by source address, and from given; evicted
// counts those of given that are squeezed.
type Queue[R any] struct {
	// Wake has one token when a request may go.
	Wake chan struct{}

	most, room int
	squeezed   error

	mu      sync.Mutex
	waiting []*Place[R] // guarded by mu, as all below; the oldest first
	given   []*Place[R] // by Take, and not connected or refused yet; the oldest first
	queued  map[netip.Addr]int
	from    map[netip.Addr]int
	heard   map[netip.Addr]time.Time // of those in from: when one was confirmed last
	evicted int
	timer   *time.Timer // calls press; nil until needed
}

// Place is a request's entry in a Queue.
type Place[R any] struct {
	Request R
	From    netip.Addr // its sender

	// Guarded by the queue's mu.
	replied time.Time               // when the peer was answered; zero: not yet
	squeeze context.CancelCauseFunc // makes the request give its place up; nil: not now
	evicted bool                    // squeeze was called
}

// New makes a queue in which room requests may wait, and as many as most be
// accepted at a time. The cause of one that has to make way is squeezed.
func New[R any](most, room int, squeezed error) *Queue[R] {
	return &Queue[R]{most: most, room: room, squeezed: squeezed, queued: map[netip.Addr]int{}, from: map[netip.Addr]int{}, heard: map[netip.Addr]time.Time{}, Wake: make(chan struct{}, 1)}
}

// addressShare is how many of n places one address may have: three quarters, so
// that a host that connects often is hardly slowed, and there is room for
// others beside it.
func addressShare(n int) int { return max(n*3/4, 1) }

// Put lets a request wait, if there is room.
func (a *Queue[R]) Put(r *Place[R]) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	from := r.From
	if len(a.waiting) >= a.room || a.queued[from] >= addressShare(a.room) {
		return false
	}
	a.queued[from]++
	a.waiting = append(a.waiting, r)
	a.press()
	return true
}

// Take gives the oldest request that may go; nil if there is none.
func (a *Queue[R]) Take() *Place[R] {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.next()
	if i < 0 {
		return nil
	}
	r := a.waiting[i]
	a.waiting = slices.Delete(a.waiting, i, i+1)
	a.given = append(a.given, r)
	from := r.From
	release(a.queued, from)
	a.from[from]++
	a.press()
	return r
}

// next is the index of the oldest request that may go, or -1. Preconditions,
// here and below: mu is held.
func (a *Queue[R]) next() int {
	if len(a.given) >= a.most {
		return -1
	}
	for i, r := range a.waiting {
		if a.from[r.From] < addressShare(a.most) {
			return i
		}
	}
	return -1
}

// Replied starts the time that r has for its peer's confirmation.
func (a *Queue[R]) Replied(r *Place[R], squeeze context.CancelCauseFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r.replied, r.squeeze, r.evicted = time.Now(), squeeze, false
	a.press()
}

// Done gives r's place back; its peer has confirmed it or not.
func (a *Queue[R]) Done(r *Place[R], confirmed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.given = slices.DeleteFunc(a.given, func(g *Place[R]) bool { return g == r })
	from := r.From
	if confirmed {
		a.heard[from] = time.Now()
	}
	if release(a.from, from); a.from[from] == 0 {
		delete(a.heard, from)
	}
	if r.evicted {
		a.evicted--
	}
	r.replied, r.squeeze, r.evicted = time.Time{}, nil, false
	a.press()
}

// press wakes an Accept if a request may go. If none may, it makes room for the
// waiting requests, or says when it will.
func (a *Queue[R]) press() {
	if a.next() >= 0 {
		select {
		case a.Wake <- struct{}{}:
		default:
		}
		return
	}
	wanted := 0 // places
	for from, n := range a.queued {
		wanted += min(n, max(addressShare(a.most)-a.from[from], 0))
	}
	var soonest time.Duration
	for _, r := range a.given {
		after, from := squeezeAfter, r.From
		switch {
		case r.squeeze == nil:
			continue
		case a.evicted < wanted:
		case a.queued[from] > 0 && time.Since(a.heard[from]) > squeezeOwnAfter:
			after = squeezeOwnAfter
		default:
			continue
		}
		if left := after - time.Since(r.replied); left > 0 {
			if soonest == 0 || left < soonest {
				soonest = left
			}
			continue
		}
		r.squeeze(a.squeezed)
		r.squeeze, r.evicted = nil, true
		a.evicted++
	}
	if soonest > 0 {
		a.later(soonest)
	}
}

// release counts one less.
func release(m map[netip.Addr]int, from netip.Addr) {
	if m[from]--; m[from] == 0 {
		delete(m, from)
	}
}

// later calls press.
func (a *Queue[R]) later(after time.Duration) {
	if a.timer == nil {
		a.timer = time.AfterFunc(after, func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.press()
		})
		return
	}
	a.timer.Reset(after)
}

// Close ends it and returns the requests that wait.
func (a *Queue[R]) Close() []*Place[R] {
	a.mu.Lock()
	defer a.mu.Unlock()
	left := a.waiting
	a.waiting, a.room = nil, 0
	clear(a.queued)
	if a.timer != nil {
		a.timer.Stop()
	}
	return left
}
