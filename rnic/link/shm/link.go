package shm

import (
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Options are Wrap's. The zero value gives the defaults.
type Options struct {
	// Logger gets one line for each reason for which a device of this host
	// is not met, and for a peer that breaks the rules of a ring; nil for none.
	Logger *slog.Logger
	// Patience bounds how long Meet waits for an answer; 0 is 2 s.
	Patience time.Duration
	// Dir is a directory in which devices of several network namespaces meet,
	// those of containers that share it; "" is none. It is this user's alone
	// (privatefile.CheckDir), or that of Users too. Addresses of the loopback
	// and link-local ones are each namespace's own, and not met there.
	Dir string
	// Users are the numbers of other users whose devices are met, if they name
	// this one's user in turn. They are trusted as this user is.
	Users []int
}

// ErrTwice, an EADDRINUSE, is Wrap's error for an address that a device of
// Options.Dir has already: packets to it would come to either.
var ErrTwice = fmt.Errorf("another device has the address: %w", syscall.EADDRINUSE)

// Link is the composite of the rings and another link. Its Meet and SetGone
// implement link.Near.
//
// Lock order: tx or rx, then mu; none is held while SetGone's function runs.
type Link struct {
	link.Link // the other one
	local     netip.AddrPort
	nonce     nonce
	start     time.Time
	options   Options
	tap       link.Tap
	place     place // sockets and bell
	gone      atomic.Pointer[func(device uint64)]

	mu      sync.Mutex
	devices map[netip.AddrPort]*device   // guarded by mu: those that live
	absent  map[netip.AddrPort]time.Time // guarded by mu: not to be asked until then
	warned  map[string]bool              // guarded by mu: the kinds of trouble that were logged
	closed  bool                         // guarded by mu
	procs   sync.WaitGroup

	ins   atomic.Int32 // rings that there are to be read
	met   atomic.Bool  // a device was met
	tx    sender
	rx    receiver
	count counters
}

// counters of a link, besides those of the other link.
type counters struct {
	Sent          atomic.Uint64 `name:"shm_sent_pkts"`    // that were put into rings
	SentBytes     atomic.Uint64 `name:"shm_sent_bytes"`   // their payload
	Received      atomic.Uint64 `name:"shm_rcvd_pkts"`    // that were taken out of rings
	ReceivedBytes atomic.Uint64 `name:"shm_rcvd_bytes"`   // their payload
	RefBytes      atomic.Uint64 `name:"shm_ref_bytes"`    // of shm_sent_bytes, those that were lent, not copied
	PulledBytes   atomic.Uint64 `name:"shm_pulled_bytes"` // of shm_rcvd_bytes, those that lay with the sender
	Recalled      atomic.Uint64 `name:"shm_recalled"`     // packets that were lost because their memory was taken back
	Peers         atomic.Uint64 `name:"shm_peers"`        // devices of this host that were met
	Deaths        atomic.Uint64 `name:"shm_deaths"`       // of them, those that hung up
	Fallback      atomic.Uint64 `name:"shm_fallback"`     // devices of this host that could not be met: UDP
	Broken        atomic.Uint64 `name:"shm_broken"`       // rings that ended because the peer broke their rules
	Full          atomic.Uint64 `name:"drop_shm_full"`    // packets that were dropped because a ring was full
	ICRC          atomic.Uint64 `name:"drop_icrc"`
}

// device is a device of this host that was met: one life of it.
type device struct {
	id    uint64
	addr  netip.AddrPort
	nonce nonce
	to    wire.Flow
	from  wire.Flow
	end   *sync.Once // of the report of its death

	out     *outbound // guarded by Link.tx
	givenUp bool      // guarded by Link.tx: it is asked for no other ring
	in      *inbound  // guarded by Link.rx
}

var _ link.Near = (*Link)(nil)

// SetTap implements link.Link: the other link has the tap as well.
func (l *Link) SetTap(t link.Tap) {
	l.tap = t
	l.Link.SetTap(t)
}

// Counters implements link.Link.
func (l *Link) Counters(dst []link.Counter) []link.Counter {
	return link.AppendCounters(l.Link.Counters(dst), &l.count)
}

// Reaches implements link.Near.
func (l *Link) Reaches(device uint64) bool {
	l.tx.Lock()
	defer l.tx.Unlock()
	for _, d := range l.tx.rings {
		if d.id == device {
			return true
		}
	}
	return false
}

// Progress implements link.Near.
func (l *Link) Progress(device uint64) (sent, taken uint64) {
	l.tx.Lock()
	defer l.tx.Unlock()
	for _, d := range l.tx.rings {
		if d.id == device && d.out.look() == nil {
			return d.out.published, d.out.head
		}
	}
	return 0, 0
}

// Hears implements link.Near.
func (l *Link) Hears(id uint64) bool {
	l.rx.Lock()
	defer l.rx.Unlock()
	return slices.ContainsFunc(l.rx.devices, func(d *device) bool { return d.id == id })
}

// SetGone implements link.Near.
func (l *Link) SetGone(f func(device uint64)) { l.gone.Store(&f) }

// warn logs a kind of trouble once.
func (l *Link) warn(kind, text string, args ...any) {
	l.mu.Lock()
	again := l.warned[kind]
	if l.warned == nil {
		l.warned = make(map[string]bool)
	}
	l.warned[kind] = true
	l.mu.Unlock()
	if !again && l.options.Logger != nil {
		l.options.Logger.Warn(text, args...)
	}
}
