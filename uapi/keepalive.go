package uapi

import (
	"sync"
	"time"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// DefaultKeepAlive is how long a connection is idle before its peer is asked
// for a sign of life, when nothing else is said.
const DefaultKeepAlive = 5 * time.Second

// prober sends a zero-length WRITE over an idle connection, which the peer's
// device answers without its program. A failure shows in the queue pair's
// state, not in completions, so that programs need not poll for it.
//
// It looks at a connection after each interval. If nothing was posted in it, it
// writes, and looks again when the retries must have been used up: a peer is
// noticed to be gone within two intervals and that time.
type prober struct {
	conn     *connection
	interval time.Duration // 0: off
	grace    time.Duration

	mu      sync.Mutex
	timer   *time.Timer // guarded by mu; nil: not started, or stopped
	posted  uint32      // guarded by mu: how many requests there had been
	probing bool        // guarded by mu: an answer was awaited at the last look
	asked   time.Time   // guarded by mu: since when
}

func (p *prober) init(conn *connection, interval time.Duration) {
	switch {
	case interval < 0:
		interval = 0
	case interval == 0:
		interval = DefaultKeepAlive
	}
	p.conn, p.interval = conn, interval
	p.grace = silence(&conn.q.config)
}

// silence is how long a silent peer is taken to be alive: (Retry+1) timeouts
// and a quarter. Devices wait up to four times as long (IBA 9.9.2.1.1); those
// here do not. A queue pair that waits for ever is judged as by default.
func silence(q *QPConfig) time.Duration {
	timeout, retry := ackTime(timeCode(q.Timeout, ackTime)), q.Retry
	if timeout == 0 {
		timeout, retry = defaultTimeout, defaultRetry
	}
	t := time.Duration(retry+1) * timeout
	return t + t/4 + 100*time.Millisecond
}

func (p *prober) start() {
	if p.interval == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.posted = p.conn.q.verbs.Sends().Posted
	p.timer = time.AfterFunc(p.interval, p.look)
}

func (p *prober) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}

// look is the timer's function.
func (p *prober) look() {
	p.mu.Lock()
	if p.timer == nil {
		p.mu.Unlock()
		return
	}
	next, why := p.checkPair()
	if why == nil {
		p.timer.Reset(next)
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	p.conn.fail(why) // the peer may live, and believe in the connection
}

// checkPair looks at the queue pair and tells when to look again, or why the
// connection has ended. Preconditions: mu is held.
func (p *prober) checkPair() (time.Duration, error) {
	v := p.conn.q.verbs
	attr, err := v.Query()
	switch {
	case err != nil:
		return p.interval, p.conn.q.device.ended(err, &p.conn.q.dead, "the queue pair")
	case attr.State == abi.QPSErr:
		return 0, p.conn.verdict()
	}
	sends := v.Sends()
	idle := sends.Posted == p.posted
	p.posted = sends.Posted
	if !sends.Done { // a request on its way notices a dead peer as well
		left := p.grace - time.Since(p.asked)
		switch {
		case !p.probing || !sends.Probing:
			p.probing = false
		case left > 0:
			return left, nil
		default: // this queue pair's retries do not end, or it is told in a moment
			return 0, ErrPeerSilent
		}
		return min(p.interval, p.grace), nil
	}
	answered := p.probing
	p.probing = false
	switch left := p.interval - time.Since(p.asked); {
	case !idle:
		return p.interval, nil
	case answered && left > 0:
		return left, nil
	}
	sent, err := v.Probe()
	p.probing, p.asked = sent && err == nil, time.Now()
	return min(p.interval, p.grace), nil // after an error, too: the state says then what it means
}
