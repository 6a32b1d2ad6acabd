package verbs

import (
	"context"
	"slices"
)

// waiter is a goroutine that may block until one of its queues wakes it. A wake
// fills the channel's one slot, so that none is lost between the waiter's last
// look at its queues and its sleep. A wake too many is harmless: the waiter
// looks again.
type waiter struct{ ch chan struct{} }

// join notes that the waiter may block; nil takes the queue's spare one.
func (cq *CQ) join(w *waiter) *waiter {
	cq.wakeMu.Lock()
	defer cq.wakeMu.Unlock()
	if w == nil {
		w, cq.spare = cq.spare, nil
	}
	if w == nil {
		w = &waiter{make(chan struct{}, 1)}
	}
	cq.waiters = append(cq.waiters, w)
	return w
}

func (cq *CQ) part(w *waiter) {
	cq.wakeMu.Lock()
	defer cq.wakeMu.Unlock()
	i := slices.Index(cq.waiters, w)
	cq.waiters = slices.Delete(cq.waiters, i, i+1)
}

// storeWaiter stores a waiter that has left all its queues for the next one.
func (cq *CQ) storeWaiter(w *waiter) {
	cq.wakeMu.Lock()
	defer cq.wakeMu.Unlock()
	select {
	case <-w.ch:
	default:
	}
	cq.spare = w
}

// wake has all waiters look again.
func (cq *CQ) wake() {
	cq.wakeMu.Lock()
	for _, w := range cq.waiters {
		select {
		case w.ch <- struct{}{}:
		default:
		}
	}
	cq.wakes.Add(1)
	cq.ctx.wakes.Add(1)
	cq.wakeMu.Unlock()
	cq.ctx.rouse()
}

// Wake has one Wait on the queue return 0 and no error: one that blocks, else
// the next one that finds no completion. Several Wakes before that count as
// one. It neither blocks nor allocates.
func (cq *CQ) Wake() {
	cq.token.Store(true)
	cq.wake()
}

// arm makes sure that an event will come for any completion from now on.
func (cq *CQ) arm() error {
	cq.armMu.Lock()
	defer cq.armMu.Unlock()
	if cq.armed.Swap(true) { // before the command, so that an event right after it is not overwritten
		return nil
	}
	err := cq.Arm(false)
	if err != nil {
		cq.armed.Store(false)
	}
	return err
}

// event takes an event of the completion channel. It does not block.
func (cq *CQ) event() {
	cq.armed.Store(false)
	cq.wake()
}

// Wait is Poll that waits until there is at least one completion. It returns
// ctx.Err() when ctx ends first; the completions then stay in the queue. It
// returns 0 and no error when Wake was called, and at once when wc has length
// 0. Several may wait on one queue.
func (cq *CQ) Wait(ctx context.Context, wc []WC) (int, error) {
	_, n, err := cq.ctx.WaitAny(ctx, []*CQ{cq}, wc)
	return n, err
}

// WaitAny is Wait for several queues of the context, at least one. It takes
// completions of one queue after the other until wc is full, each queue's in
// their order, and begins with another queue each time. An error is returned
// when no queue has completions, with the index of its queue.
func (c *Context) WaitAny(ctx context.Context, cqs []*CQ, wc []WC) (at, n int, err error) {
	if len(wc) == 0 {
		return 0, 0, nil
	}
	first, wakes := 0, &cqs[0].wakes
	if len(cqs) > 1 {
		first, wakes = int(c.turn.Add(1)%uint32(len(cqs))), &c.wakes
	}
	var w *waiter
	defer func() {
		if w != nil {
			partAll(cqs, w)
		}
	}()
	for {
		news, seen := c.news(), wakes.Load()
		if at, n, err = look(cqs, first, wc); n > 0 || err != nil || woken(cqs) {
			return at, n, err
		}
		if err = ctx.Err(); err != nil {
			return 0, 0, err
		}
		if c.lead(ctx, cqs, news, wakes, seen) {
			continue
		}
		if w == nil {
			w = joinAll(cqs)
		}
		armed, armErr := armAll(cqs)
		// The kernel does not tell of completions that came before it was
		// armed.
		if at, n, err = look(cqs, first, wc); n == 0 && err == nil && c.progress() {
			at, n, err = look(cqs, first, wc)
		}
		if n > 0 || err != nil || woken(cqs) {
			return at, n, err
		}
		if armErr != nil {
			return armed, 0, armErr
		}
		if slices.ContainsFunc(cqs, (*CQ).questioned) {
			continue
		}
		select {
		case <-w.ch:
		case <-ctx.Done():
			return 0, 0, ctx.Err()
		}
	}
}

// look takes the completions that are there, of the first-th queue first. An
// error that follows some completions is left for the next look.
func look(cqs []*CQ, first int, wc []WC) (at, n int, err error) {
	for i := range cqs {
		j := (first + i) % len(cqs)
		m, e := cqs[j].pollOnce(wc[n:])
		if n += m; n == len(wc) {
			break
		}
		if e != nil && err == nil {
			at, err = j, e
		}
	}
	if n > 0 {
		return 0, n, nil
	}
	return at, 0, err
}

// woken takes a token that Wake left.
func woken(cqs []*CQ) bool {
	for _, cq := range cqs {
		if cq.token.Load() && cq.token.Swap(false) {
			return true
		}
	}
	return false
}

func joinAll(cqs []*CQ) (w *waiter) {
	for _, cq := range cqs {
		w = cq.join(w)
	}
	return w
}

func partAll(cqs []*CQ, w *waiter) {
	for _, cq := range cqs {
		cq.part(w)
	}
	cqs[0].storeWaiter(w)
}

// armAll arms the queues, and returns the index of one where that failed.
func armAll(cqs []*CQ) (int, error) {
	for i, cq := range cqs {
		if err := cq.arm(); err != nil {
			cq.wake() // waiters that relied on this arming must try themselves
			return i, err
		}
	}
	return 0, nil
}

// questioned asks for the suspects' states, and reports whether one is in ERR.
func (cq *CQ) questioned() bool { return cq.suspects.Load() > 0 && cq.questionSuspects() }
