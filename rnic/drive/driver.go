package drive

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmashim/rdmashim/rnic/link"
)

// Engine is a device as its driver sees it.
type Engine interface {
	// Receive takes a batch from the link, if there is one, does all that
	// follows from it, and returns the number of packets. Of packets it calls
	// Driver.Arrived, of completions Driver.Announce. An error is the link's,
	// and every later call has it, too. Preconditions: Driver.Receiver is held.
	Receive() (int, error)

	// CatchUp does work that was postponed, unless another goroutine does, and
	// reports whether it did some. It does not block. Preconditions: nothing
	// was received.
	CatchUp() bool

	// Owes reports whether acknowledgements wait for packets that take them
	// along; SendOwed sends them.
	Owes() bool
	SendOwed()

	// InUse reports whether the packets of the last Receive take room that a
	// peer may need, until the next one.
	InUse() bool

	// Down reports whether the device is closed, or the link has failed.
	Down() bool

	// Fail ends the device, since the link has failed.
	Fail(error)
}

// Driver drives a device. Its methods are safe for concurrent use, unless they
// say otherwise.
type Driver struct {
	engine Engine
	link   link.Link
	quit   <-chan struct{} // closed: the device is
	start  time.Time       // 0 of its clock
	cores  int             // GOMAXPROCS at the start

	// Receiver is the token of the goroutine that receives.
	Receiver sync.Mutex
	arrived  atomic.Int64 // when packets came last
	brisk    atomic.Bool  // they came soon after those before

	own        ownership
	polling    polling
	waiters    waiters
	contention contention
	trial      trial
	wakeups    atomic.Uint64
}

// Init makes a driver ready. quit is closed before the link. Next: Listen, in a
// goroutine of its own.
func (d *Driver) Init(e Engine, l link.Link, quit <-chan struct{}) {
	d.engine, d.link, d.quit = e, l, quit
	d.start, d.cores = time.Now(), runtime.GOMAXPROCS(0)
	d.own.init()
	d.contention.still.Store(l.Caps().Inside && d.cores == 1)
}

// now is the driver's clock. It begins at 1, because 0 means no time.
func (d *Driver) now() time.Duration { return 1 + time.Since(d.start) }

// Wakeups is how often the listener has waited for the link.
func (d *Driver) Wakeups() uint64 { return d.wakeups.Load() }

// Arrived follows packets. now is a clock's time that began with the driver.
// Preconditions: Receiver is held.
func (d *Driver) Arrived(now time.Duration) {
	d.brisk.Store(now-time.Duration(d.arrived.Swap(int64(now))) < spinWithin)
}
