package guard

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
	// GuessBudget is how many guesses of an address have no consequence beyond
	// their queue pairs: more than a program with a mistake, or a suite of
	// tests that tries every wrong key, makes at a time.
	GuessBudget = 64

	// GuessPause is the time that an address waits for each guess beyond the
	// budget. At one a second all keys of 32 bits take 136 years.
	GuessPause = engine.Duration(time.Second)

	// maxGuessWait bounds the wait of an address that made many connections
	// first and guesses with all of them at once.
	maxGuessWait = engine.Duration(time.Hour)

	// maxGuessers bounds the number of addresses that a device remembers; the
	// address with the least to wait is forgotten.
	maxGuessers = 1024

	// noticeGap is the least time between two log lines of a kind.
	noticeGap = engine.Duration(time.Second)
)

// Guesses counts requests with wrong remote keys by the address of the peer
// that made them: a leaky bucket for each. To fill another address's bucket is
// to forge packets from there that name a queue pair connected with it, 24
// random bits, and the PSN that it expects: as many, unless the forger sent a
// REQ in that name, too, and so chose the PSN. Programs of one address share a
// bucket.
type Guesses struct {
	own      netip.AddrPort // a device does not keep itself from its own memory
	guessers map[netip.Addr]guesser
	refused  uint64      // connections, for that
	logged   engine.Time // when Count asked for a log line last; 0: never
}

// guesser is the bucket of an address.
type guesser struct {
	empty  engine.Time // when it will be empty
	logged bool        // it has been over the budget since it was empty
}

// NewGuesses returns the buckets of a device that answers at own.
func NewGuesses(own netip.AddrPort) Guesses {
	return Guesses{own: netip.AddrPortFrom(wire.Bare(own.Addr()), own.Port()), guessers: make(map[netip.Addr]guesser)}
}

// key is the bucket of a peer; the device has none.
func (g *Guesses) key(peer netip.AddrPort) (bucket netip.Addr, ok bool) {
	bucket = wire.Bare(peer.Addr())
	return bucket, netip.AddrPortFrom(bucket, peer.Port()) != g.own
}

// Count counts a guess of a peer's, and returns whether it is to be logged:
// when an address first exceeds its budget.
func (g *Guesses) Count(now engine.Time, peer netip.AddrPort) (log bool) {
	bucket, ok := g.key(peer)
	if !ok {
		return false
	}
	was, known := g.guessers[bucket]
	if !known && len(g.guessers) >= maxGuessers {
		g.forget()
	}
	is := guesser{empty: max(was.empty, now) + engine.Time(GuessPause), logged: was.logged && was.empty > now}
	is.empty = min(is.empty, now+engine.Time(GuessBudget*GuessPause+maxGuessWait))
	if is.wait(now) > 0 && !is.logged {
		is.logged = true
		log = mayLog(now, &g.logged)
	}
	g.guessers[bucket] = is
	return log
}

// mayLog reports whether the last log line of a kind was long ago, and if so,
// sets its time.
func mayLog(now engine.Time, last *engine.Time) bool {
	if *last != 0 && now-*last < engine.Time(noticeGap) {
		return false
	}
	*last = now
	return true
}

// forget makes room: the address with the least to wait goes.
func (g *Guesses) forget() {
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
	return max(engine.Duration(b.empty-now)-GuessBudget*GuessPause, 0)
}

// wait is how long there will be no new connection with peer.
func (g *Guesses) wait(now engine.Time, peer netip.AddrPort) engine.Duration {
	if bucket, ok := g.key(peer); ok {
		return g.guessers[bucket].wait(now)
	}
	return 0
}

// Refuse returns why there is no new connection with peer now, and counts the
// refusal; nil if there may be one. It Is EAGAIN.
func (g *Guesses) Refuse(now engine.Time, peer netip.AddrPort) error {
	if len(g.guessers) == 0 {
		return nil
	}
	wait := g.wait(now, peer)
	if wait == 0 {
		return nil
	}
	g.refused++
	return fmt.Errorf("%v asked for memory with wrong remote keys again and again, there is no new connection with it for %v: %w",
		peer.Addr(), time.Duration(wait).Round(time.Millisecond), syscall.EAGAIN)
}

// RefusePacket reports whether a packet of peer's for queue pair 1 is a REQ
// that is not to be answered, and counts it then: the peer asks again.
func (g *Guesses) RefusePacket(now engine.Time, peer netip.AddrPort, p *wire.Packet) bool {
	if len(g.guessers) == 0 || g.wait(now, peer) == 0 {
		return false
	}
	var h wire.MAD
	if h.Parse(p.Payload) != nil || !h.IsCM() || h.Attribute != wire.AttrREQ {
		return false
	}
	g.refused++
	return true
}

// Refused is the number of connections that were refused.
func (g *Guesses) Refused() uint64 { return g.refused }
