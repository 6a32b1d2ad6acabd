package rnic

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/guard"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// strangers holds a device's guards against packets of strangers.
// Guarded by Device.mu.
type strangers struct {
	numbers  *guard.Numbers // of queue pairs
	guesses  guard.Guesses
	unready  guard.Unready
	warnings []warning // to be logged
}

func newStrangers(secret [32]byte, own netip.AddrPort) strangers {
	return strangers{numbers: guard.NewNumbers(rand.NewChaCha8(secret)), guesses: guard.NewGuesses(own)}
}

// observe lets the guards look at a packet that q's engine has just received.
// Preconditions, here and below: d.mu is held.
func (q *QP) observe(now engine.Time, in *link.Packet, p *wire.Packet) {
	if shown, news := q.source.Shown(in, q.near != 0); news && q.engine.Genuine() {
		q.source = shown
	}
	if n := q.engine.Counters().NAKAccessSent; n != q.guesses {
		q.guesses = n
		q.countGuess(now)
	}
	if p.Opcode == wire.RCAck && p.AETH.Syndrome.IsRNR() {
		q.watchUnready(now)
	}
}

// countGuess counts a guess that q's engine has refused.
func (q *QP) countGuess(now engine.Time) {
	if peer := q.engine.Attr().Peer; q.d.guesses.Count(now, peer) {
		q.d.warn("a peer guesses remote keys: new connections with it are delayed", "peer", wire.Bare(peer.Addr()),
			"guesses", guard.GuessBudget+1, "delay of each more", time.Duration(guard.GuessPause))
	}
}

// watchUnready looks at a queue pair whose peer had no receive.
func (q *QP) watchUnready(now engine.Time) {
	if long := q.engine.Unready(now); q.d.unready.Log(now, long, &q.waited) {
		attr := q.engine.Attr()
		q.d.warn("a message waits for a receive: the peer has none posted", "qp", int(q.num),
			"peer", attr.Peer, "peer_qp", int(attr.DestQPN), "for", time.Duration(long).Round(time.Millisecond))
	}
}

// maxWarnings bounds the log lines that wait for the worker, which a slow
// logger may detain; more are dropped.
const maxWarnings = 256

// warning is a log line.
type warning struct {
	text string
	args []any
}

// warn has the worker log a line: a logger may block, and is called without the
// lock.
func (d *Device) warn(text string, args ...any) {
	if d.log != nil && len(d.warnings) < maxWarnings {
		d.warnings = append(d.warnings, warning{text, append([]any{"device", d.name}, args...)})
		d.wakeWorker()
	}
}
