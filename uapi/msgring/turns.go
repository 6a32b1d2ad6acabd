package msgring

import (
	"sync"

	"github.com/rdmashim/rdmashim/uapi/msgring/core"
)

// turns lets the goroutines that wait on a connection work for its completion
// queue in turn: core.Pump with a lock, and wake-ups.
type turns struct {
	conn *Conn
	mu   sync.Mutex
	pump core.Pump // guarded by mu
	// The goroutines that read, write and close.
	reader, writer, closer waiter
	// passer is of the goroutine that glances. It never sleeps: no goroutine
	// need wake it.
	passer  core.Waiter
	glances sync.Mutex
}

// waiter is a goroutine that may wait.
type waiter struct {
	core.Waiter
	wake chan struct{}
	// look reports whether the waiter may go on, and notes for it what it saw.
	// The connection's mu is held when it is called.
	look  func() bool
	waits bool // guarded by the connection's mu
}

func (t *turns) init(c *Conn) {
	t.conn = c
	t.reader.look, t.writer.look, t.closer.look = c.lookRead, c.lookWrite, c.lookClose
	for _, w := range t.all() {
		w.wake = make(chan struct{}, 1)
	}
}

func (t *turns) all() [3]*waiter { return [...]*waiter{&t.reader, &t.writer, &t.closer} }

// until waits until w may go on. Preconditions: mu is not held; no other
// goroutine waits as w.
func (t *turns) until(w *waiter) {
	c := t.conn
	c.mu.Lock()
	w.waits = true
	c.mu.Unlock()
	for done := false; ; {
		t.mu.Lock()
		step, successor := t.pump.Next(&w.Waiter, done)
		t.mu.Unlock()
		switch step {
		case core.Look:
			c.mu.Lock()
			done = w.look()
			w.waits = !done
			c.mu.Unlock()
		case core.Lead:
			c.work(w, true)
		case core.Sleep:
			<-w.wake
		case core.Leave:
			t.wake(successor)
			return
		}
	}
}

// glance takes in what has arrived and why the connection ended, and waits for
// nothing: the leader, if there is one, does the same. A peer that goes on
// sending does not hold it up.
func (t *turns) glance() {
	c := t.conn
	if !t.glances.TryLock() {
		return
	}
	defer t.glances.Unlock()
	for done := false; ; {
		t.mu.Lock()
		step, successor := t.pump.Next(&t.passer, done)
		t.mu.Unlock()
		switch step {
		case core.Lead:
			for left := c.config.entries(); left > 0; left -= batchSize {
				if c.work(nil, false) == 0 {
					break
				}
			}
			done = true
		case core.Sleep:
			done = true
		case core.Leave:
			t.wake(successor)
			return
		}
	}
}

// retire waits for a glance and ends all: memory and completion queue will be
// another connection's. Preconditions: no goroutine waits, or will.
func (t *turns) retire() { t.glances.Lock() }

// wake wakes the waiter that is to lead.
func (t *turns) wake(successor *core.Waiter) {
	for _, w := range t.all() {
		if &w.Waiter == successor {
			w.fill()
		}
	}
}

// fill ends the waiter's sleep, or its next one.
func (w *waiter) fill() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// rouse wakes waiters that may go on for another cause than a completion.
// Preconditions: that cause is there already.
func (t *turns) rouse(list ...*waiter) {
	for _, w := range list {
		t.mu.Lock()
		interrupt := t.pump.Wake(&w.Waiter)
		t.mu.Unlock()
		if interrupt {
			_ = t.conn.memory.device.WakeCQ(t.conn.memory.cq)
		} else {
			w.fill()
		}
	}
}

// ready reports whether a waiter waits and may go on. Preconditions: the
// connection's mu is held.
func (w *waiter) ready() bool { return w.waits && w.look() }
