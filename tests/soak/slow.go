package soak

import "github.com/rdmashim/rdmashim/rnic/engine"

// slowPlan is a program that is slow with receives: it keeps a few posted, and
// takes its time after each before it posts another. The zero value is none.
type slowPlan struct {
	ahead int         // so many are posted at first
	lag   engine.Time // from a completion until the next is posted
}

// offerReceives posts receives as the program of the receiving end does: those
// of some are late, and some go on slowly.
func (l *lane) offerReceives() {
	r := l.run
	if s := l.to.plan.slow; s.ahead > 0 {
		l.postReceives(s.ahead)
		return
	}
	l.postReceives(len(l.receives) - int(l.to.plan.lateShare*float64(len(l.receives))))
	for i := l.recvReady; i < len(l.receives); i++ {
		r.tally["disturbance: late receive"]++
		r.soon(engine.Time(r.rand.Intn(int(r.plan.chaos))), func() { l.postReceives(1) })
	}
}

// drained lets a slow program post another receive, some time after one
// completed.
func (l *lane) drained() {
	if s := l.to.plan.slow; s.ahead > 0 && !l.run.calm && l.to.failedAt < 0 {
		l.run.tally["disturbance: receive drained slowly"]++
		l.run.soon(s.lag, func() { l.postReceives(1) })
	}
}
