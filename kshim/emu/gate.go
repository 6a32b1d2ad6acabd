package emu

import (
	"runtime"
	"sync/atomic"
)

// gate lets commands through until it is shut; shut waits for those inside. It
// is a read-write lock with a count for each of 16 lanes, so that readers of
// different lanes share no cache line.
type gate struct {
	isShut atomic.Bool
	lanes  [gateLanes]gateLane
}

const gateLanes = 16

type gateLane struct {
	inside atomic.Int32
	_      [60]byte // a cache line each
}

// enter reports whether the gate is open. If so, leave must follow soon.
func (g *gate) enter(lane uint32) bool {
	l := &g.lanes[lane%gateLanes]
	l.inside.Add(1)
	if g.isShut.Load() {
		l.inside.Add(-1)
		return false
	}
	return true
}

func (g *gate) leave(lane uint32) { g.lanes[lane%gateLanes].inside.Add(-1) }

// shut returns when no command is inside, and none will be. Commands are inside
// for a short time: for copies, not for waits.
func (g *gate) shut() {
	g.isShut.Store(true)
	for i := range g.lanes {
		for g.lanes[i].inside.Load() != 0 {
			runtime.Gosched()
		}
	}
}
