package rnic

import (
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// A request that names a remote key which its queue pair may not use ends the
// queue pair (IBA 9.9.3), so each guess costs a connection. These constants
// bound the rate at which one address gets new connections after such guesses.
const (
	// guessBudget is how many guesses of an address have no consequence beyond
	// their queue pairs: more than a program with a mistake, or a suite of
	// tests that tries every wrong key, makes at a time.
	guessBudget = 64

	// guessPause is the time that an address waits for each guess beyond the
	// budget. At one a second all keys of 32 bits take 136 years.
	guessPause = engine.Duration(time.Second)

	// maxGuessWait bounds the wait of an address that made many connections
	// first and guesses with all of them at once.
	maxGuessWait = engine.Duration(time.Hour)

	// maxGuessers bounds the number of addresses that a device remembers; the
	// address with the least to wait is forgotten.
	maxGuessers = 1024

	// noticeGap is the least time between two log lines about guessing
	// addresses.
	noticeGap = engine.Duration(time.Second)
)

// guesses counts requests with wrong remote keys by the address of the peer
// that made them: a leaky bucket for each. To fill another address's bucket is
// to forge packets from there that name a queue pair connected with it, 24
// random bits, and the PSN that it expects: as many, unless the forger sent a
// REQ in that name, too, and so chose the PSN. Programs of one address share a
// bucket.
type guesses struct {
	guessers map[netip.Addr]guesser
	refused  uint64      // connections, for that
	notice   netip.Addr  // to be logged, if valid
	noticed  engine.Time // when notice was set last
}

// guesser is the bucket of an address.
type guesser struct {
	empty engine.Time // when it will be empty
	told  bool        // it has been over the budget since it was empty
}

// count notes a guess, and whether it is to be logged: when an address first
// exceeds its budget.
func (g *guesses) count(now engine.Time, peer netip.Addr) (log bool) {
	if g.guessers == nil {
		g.guessers = make(map[netip.Addr]guesser)
	}
	was, known := g.guessers[peer]
	if !known && len(g.guessers) >= maxGuessers {
		g.forget()
	}
	is := guesser{empty: max(was.empty, now) + engine.Time(guessPause), told: was.told && was.empty > now}
	is.empty = min(is.empty, now+engine.Time(guessBudget*guessPause+maxGuessWait))
	if is.wait(now) > 0 && !is.told {
		is.told = true
		log = g.noticed == 0 || now-g.noticed >= engine.Time(noticeGap)
	}
	g.guessers[peer] = is
	if log {
		g.notice, g.noticed = peer, now
	}
	return log
}

// takeNotice returns the address that is to be logged, if any, once.
func (g *guesses) takeNotice() netip.Addr {
	peer := g.notice
	g.notice = netip.Addr{}
	return peer
}

// forget makes room: the address with the least to wait goes.
func (g *guesses) forget() {
	var least netip.Addr
	for a, b := range g.guessers {
		if !least.IsValid() || b.empty < g.guessers[least].empty {
			least = a
		}
	}
	delete(g.guessers, least)
}

// wait is how long there will be no new connection.
func (b guesser) wait(now engine.Time) engine.Duration {
	return max(engine.Duration(b.empty-now)-guessBudget*guessPause, 0)
}

// wait is how long there will be no new connection with peer.
func (g *guesses) wait(now engine.Time, peer netip.Addr) engine.Duration {
	return g.guessers[peer].wait(now)
}

// guessWait is wait for the device at peer. A device does not keep itself from
// its own memory. Preconditions, here and below: mu is held.
func (d *Device) guessWait(now engine.Time, peer netip.AddrPort) engine.Duration {
	if len(d.guesses.guessers) == 0 || d.isOwn(peer) {
		return 0
	}
	return d.guesses.wait(now, wire.Bare(peer.Addr()))
}

func (d *Device) isOwn(a netip.AddrPort) bool {
	return a.Port() == d.caps.Local.Port() && wire.Bare(a.Addr()) == wire.Bare(d.caps.Local.Addr())
}

// watchGuesses notes the guesses that q's engine has refused.
func (q *QP) watchGuesses(now engine.Time) {
	n := q.engine.Counters().NAKAccessSent
	if n == q.guesses {
		return
	}
	q.guesses = n
	if peer := q.engine.Attr().Peer; !q.d.isOwn(peer) && q.d.guesses.count(now, wire.Bare(peer.Addr())) {
		q.d.wakeWorker()
	}
}

// refuseGuesser returns why there is no new connection with peer, if so.
func (d *Device) refuseGuesser(peer netip.AddrPort) error {
	wait := d.guessWait(d.now(), peer)
	if wait == 0 {
		return nil
	}
	d.guesses.refused++
	return fmt.Errorf("%v asked for memory with wrong remote keys again and again, there is no new connection with it for %v: %w",
		peer.Addr(), time.Duration(wait).Round(time.Millisecond), syscall.EAGAIN)
}

// asksToConnect reports whether a packet for queue pair 1 is a REQ.
func asksToConnect(p *wire.Packet) bool {
	var h wire.MAD
	return h.Parse(p.Payload) == nil && h.IsCM() && h.Attribute == wire.AttrREQ
}

// tellGuesser logs that an address has exceeded its budget. Preconditions: mu
// is not held, since a logger may block.
func (d *Device) tellGuesser(peer netip.Addr) {
	if d.log != nil {
		d.log.Warn("a peer guesses remote keys: new connections with it are delayed", "device", d.name, "peer", peer,
			"guesses", guessBudget+1, "delay of each more", time.Duration(guessPause))
	}
}
