package uapi

import (
	"sync"
	"time"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// DefaultKeepAlive is how long a connection is idle before its peer is asked for a sign of
// life, when nothing else is said.
const DefaultKeepAlive = 5 * time.Second

// keeper asks an idle connection's peer for signs of life: a zero-length WRITE, which the peer's
// device answers without its program. What it tells shows in the queue pair's state, not in
// completions, so that programs need not poll for it.
//
// It looks at a connection after each interval. If nothing was posted in it, it writes, and looks
// again when the retries must have been used up: a peer is noticed to be gone within two intervals
// and that time.
type keeper struct {
	conn     *connection
	interval time.Duration // 0: off
	grace    time.Duration

	mu      sync.Mutex
	timer   *time.Timer // guarded by mu; nil: not started, or stopped
	posted  uint32      // guarded by mu: how many requests there had been
	probing bool        // guarded by mu: an answer was awaited at the last look
	asked   time.Time   // guarded by mu: since when
}

func (k *keeper) init(conn *connection, interval time.Duration) {
	switch {
	case interval < 0:
		interval = 0
	case interval == 0:
		interval = DefaultKeepAlive
	}
	k.conn, k.interval = conn, interval
	k.grace = silence(&conn.q.config)
}

// silence is how long a silent peer is believed in, and a little more: (Retry+1) timeouts.
// Devices wait up to four times as long (IBA 9.9.2.1.1); those here do not. A queue pair that waits for ever is
// judged as by default.
func silence(q *QPConfig) time.Duration {
	timeout, retry := q.Timeout, q.Retry
	if timeout == 0 {
		timeout, retry = defaultTimeout, defaultRetry
	}
	t := time.Duration(retry+1) * (4096 << timeout)
	return t + t/4 + 100*time.Millisecond
}

func (k *keeper) start() {
	if k.interval == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.posted = k.conn.q.verbs.Sends().Posted
	k.timer = time.AfterFunc(k.interval, k.look)
}

func (k *keeper) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.timer != nil {
		k.timer.Stop()
		k.timer = nil
	}
}

// look is the timer's function.
func (k *keeper) look() {
	k.mu.Lock()
	if k.timer == nil {
		k.mu.Unlock()
		return
	}
	next, why := k.ask()
	if why == nil {
		k.timer.Reset(next)
		k.mu.Unlock()
		return
	}
	k.mu.Unlock()
	k.conn.fail(why) // the peer may live, and believe in the connection
}

// ask looks at the queue pair and tells when to look again, or why the connection has
// ended. Preconditions: mu is held.
func (k *keeper) ask() (time.Duration, error) {
	v := k.conn.q.verbs
	attr, err := v.Query()
	switch {
	case err != nil:
		return k.interval, k.conn.q.ctx.ended(err, &k.conn.q.dead, "the queue pair")
	case attr.State == abi.QPSErr:
		return 0, k.conn.verdict()
	}
	sends := v.Sends()
	idle := sends.Posted == k.posted
	k.posted = sends.Posted
	if !sends.Done { // what is on its way tells as well
		left := k.grace - time.Since(k.asked)
		switch {
		case !k.probing || !sends.Probing:
			k.probing = false
		case left > 0:
			return left, nil
		default: // this queue pair's retries do not end, or it is told in a moment
			return 0, ErrPeerSilent
		}
		return min(k.interval, k.grace), nil
	}
	k.probing = false
	if !idle {
		return k.interval, nil
	}
	sent, err := v.Probe()
	k.probing, k.asked = sent && err == nil, time.Now()
	return min(k.interval, k.grace), nil // after an error, too: the state says then what it means
}
