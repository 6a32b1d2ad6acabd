package uapi

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// DefaultPending is how many requests are being accepted at a time when
// ListenConfig.Pending says nothing.
const DefaultPending = 256

// squeezeAfter is how long a request that was accepted is left to its peer's
// confirmation when all places are taken: long enough for a round trip and two
// busy programs, and short enough for DefaultPending places to serve 1,000
// requests a second from addresses that were made up, which never confirm.
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

// admission decides which request Accept gives, and when. Requests cost nothing
// to send, from made-up addresses, so the work that they cause is bounded: no
// more than most are being accepted, no more than room wait, and an address has
// no more than its share of either. When a request waits for a place, the
// oldest one that is not confirmed makes way.
//
// Invariants: queued counts waiting by source address, and from given; leaving
// of those given were told to make way.
type admission struct {
	most, room int

	mu      sync.Mutex
	waiting []*Request // guarded by mu, as all below; the oldest first
	given   []*Request // by Accept, and not connected or refused yet; the oldest first
	queued  map[netip.Addr]int
	from    map[netip.Addr]int
	heard   map[netip.Addr]time.Time // of those in from: when one was confirmed last
	leaving int
	timer   *time.Timer   // calls press; nil until needed
	wake    chan struct{} // one token: a request may go
}

// place is a request's entry in an admission. Guarded by admission.mu.
type place struct {
	replied time.Time               // when the peer was answered; zero: not yet
	squeeze context.CancelCauseFunc // makes the request give its place up; nil: not now
	left    bool                    // it was told to
}

func newAdmission(most, room int) *admission {
	return &admission{most: most, room: room, queued: map[netip.Addr]int{}, from: map[netip.Addr]int{}, heard: map[netip.Addr]time.Time{}, wake: make(chan struct{}, 1)}
}

// addressShare is how many of n places one address may have: three quarters, so
// that a host that connects often is hardly slowed, and there is room for
// others beside it.
func addressShare(n int) int { return max(n*3/4, 1) }

// put lets a request wait, if there is room.
func (a *admission) put(r *Request) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	from := r.RemoteAddr.Addr()
	if len(a.waiting) >= a.room || a.queued[from] >= addressShare(a.room) {
		return false
	}
	a.queued[from]++
	a.waiting = append(a.waiting, r)
	a.press()
	return true
}

// take gives the oldest request that may go; nil if there is none.
func (a *admission) take() *Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := a.next()
	if i < 0 {
		return nil
	}
	r := a.waiting[i]
	a.waiting = slices.Delete(a.waiting, i, i+1)
	a.given = append(a.given, r)
	from := r.RemoteAddr.Addr()
	release(a.queued, from)
	a.from[from]++
	a.press()
	return r
}

// next is the index of the oldest request that may go, or -1. Preconditions,
// here and below: mu is held.
func (a *admission) next() int {
	if len(a.given) >= a.most {
		return -1
	}
	for i, r := range a.waiting {
		if a.from[r.RemoteAddr.Addr()] < addressShare(a.most) {
			return i
		}
	}
	return -1
}

// replied notes that r waits for its peer's confirmation.
func (a *admission) replied(r *Request, squeeze context.CancelCauseFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r.place = place{replied: time.Now(), squeeze: squeeze}
	a.press()
}

// done gives r's place back; its peer has confirmed it or not.
func (a *admission) done(r *Request, confirmed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.given = slices.DeleteFunc(a.given, func(g *Request) bool { return g == r })
	from := r.RemoteAddr.Addr()
	if confirmed {
		a.heard[from] = time.Now()
	}
	if release(a.from, from); a.from[from] == 0 {
		delete(a.heard, from)
	}
	if r.place.left {
		a.leaving--
	}
	r.place = place{}
	a.press()
}

// press wakes an Accept if a request may go. If none may, it makes room for the
// waiting requests, or says when it will.
func (a *admission) press() {
	if a.next() >= 0 {
		select {
		case a.wake <- struct{}{}:
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
		after, from := squeezeAfter, r.RemoteAddr.Addr()
		switch {
		case r.place.squeeze == nil:
			continue
		case a.leaving < wanted:
		case a.queued[from] > 0 && time.Since(a.heard[from]) > squeezeOwnAfter:
			after = squeezeOwnAfter
		default:
			continue
		}
		if left := after - time.Since(r.place.replied); left > 0 {
			if soonest == 0 || left < soonest {
				soonest = left
			}
			continue
		}
		r.place.squeeze(errSqueezed)
		r.place.squeeze, r.place.left = nil, true
		a.leaving++
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
func (a *admission) later(after time.Duration) {
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

// close ends it and returns the requests that wait.
func (a *admission) close() []*Request {
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

var errSqueezed = fmt.Errorf("%w: it did not confirm, and other requests wait (ListenConfig.Pending)", ErrUnreachable)
