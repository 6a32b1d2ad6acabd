package core

// Pump is how the goroutines that wait for completions of one completion queue
// share the work: leader and followers. One of them at a time, the leader,
// waits for completions and hands them to the endpoints, also those that the
// others wait for; the others sleep until the leader, or another goroutine that
// makes their wish come true, wakes them. While no goroutine waits, none works.
//
// The caller drives each Waiter by Next, which is one step under the pump's
// lock and says what to do without it. Methods must not be called concurrently.
//
// Invariants:
//   - a waiter is registered before its first look, so that whatever makes its
//     wish come true later finds it;
//   - it looks after it has taken the token, each time, since the leader before
//     it may have made its wish come true;
//   - when it leaves and the token is free, another registered waiter is woken,
//     whether it led or not: the waiter that was woken to lead may be one that
//     leaves.
type Pump struct {
	leader  *Waiter
	waiters []*Waiter // registered, in the order in which they came
}

// Waiter is a goroutine that waits. Its zero value is ready to use, also again
// after Leave.
type Waiter struct{ step Step }

// Step is what a waiter does next.
type Step uint8

const (
	start Step = iota
	// Look: see whether the wish came true (or the endpoint was closed, or the
	// deadline has passed), and tell Next.
	Look
	// Lead: wait for completions or an interrupt, hand the completions out, and
	// wake the waiters of the endpoints that got any.
	Lead
	// Sleep: wait until another goroutine wakes this waiter.
	Sleep
	// Leave: return.
	Leave
)

// Next is the waiter's next step. done is what a Look saw, and means nothing
// after another step. With Leave it may return a successor, whom the caller
// wakes.
func (p *Pump) Next(w *Waiter, done bool) (step Step, successor *Waiter) {
	switch {
	case w.step == start:
		p.waiters = append(p.waiters, w)
		p.claim(w)
	case w.step != Look:
		p.claim(w)
	case done:
		w.step = start
		return Leave, p.leave(w)
	case p.leader == w:
		w.step = Lead
	default:
		w.step = Sleep
	}
	return w.step, nil
}

// claim takes the token if it is free.
func (p *Pump) claim(w *Waiter) {
	if p.leader == nil {
		p.leader = w
	}
	w.step = Look
}

func (p *Pump) leave(w *Waiter) (successor *Waiter) {
	for i := range p.waiters {
		if p.waiters[i] == w {
			last := len(p.waiters) - 1
			copy(p.waiters[i:], p.waiters[i+1:])
			p.waiters[last] = nil
			p.waiters = p.waiters[:last]
			break
		}
	}
	if p.leader == w {
		p.leader = nil
	}
	if p.leader == nil && len(p.waiters) > 0 {
		return p.waiters[0]
	}
	return nil
}

// Wake reports how to wake a waiter whose wish anything else than a completion
// has made come true: a deadline, a close, a post that ended. interrupt: end
// the leader's wait; else give the waiter the wake-up that Sleep waits for. A
// waiter that becomes the leader between the two looks before it waits.
// Preconditions: the state that the waiter looks at has changed already.
func (p *Pump) Wake(w *Waiter) (interrupt bool) { return p.leader == w }
