package rdmacm

import (
	"context"
	"fmt"
	"net/netip"
	"sync"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// maxEvents bounds the events that an id keeps for Next; an id has some six in
// its life.
const maxEvents = 64

// ID is a communication identifier: one end of a connection, or of one to be.
// Its owner destroys it. It is safe for concurrent use.
type ID struct {
	ch  *Channel
	num uint32 // the kernel's number, which may be 0
	uid uint64

	life context.Context // ends with the connection
	cut  context.CancelCauseFunc

	use  sync.RWMutex // shared by commands; Destroy takes it whole, because the number is another id's then
	gone bool         // guarded by use

	mu     sync.Mutex
	remote netip.AddrPort // guarded by mu: the addresses, for errors
	events []Event        // guarded by mu
	over   error          // guarded by mu: why none will come after these
	inited bool           // guarded by mu: a queue pair is in INIT for it
	local  bool           // guarded by mu: Disconnect was called here
	wake   chan struct{}  // room for one: there is something to look at
	done   chan struct{}  // closed when over is set

	backlog  int        // of a listener: how many requests wait for Accept at most
	requests []*Request // guarded by mu: that no Accept has taken yet
	closed   bool       // guarded by mu: the listener was closed
}

// NewID makes an id of the port space TCP for a reliable connection. Resolve
// and Listen do more.
func (c *Channel) NewID() (*ID, error) {
	id := newID(c)
	c.enter(id)
	req := abi.UCMCreateID{UID: id.uid, PS: abi.UCMPSTCP, QPType: abi.QPTRC}
	var resp abi.UCMCreateIDResp
	if err := c.do(&request{abi.UCMCmdCreateID, &req, &req.Response, &resp}); err != nil {
		c.leave(id)
		return nil, &Error{"create id", "", err}
	}
	id.num = resp.ID
	return id, nil
}

func newID(c *Channel) *ID {
	id := &ID{ch: c, wake: make(chan struct{}, 1), done: make(chan struct{})}
	id.life, id.cut = context.WithCancelCause(context.Background())
	return id
}

// Context ends when the connection does: when the peer or this side
// disconnects, the device goes, the id is destroyed or the channel closed;
// context.Cause says which. It serves context.AfterFunc, so that waiting for
// the end costs no goroutine.
func (id *ID) Context() context.Context { return id.life }

func (id *ID) name() string {
	id.mu.Lock()
	defer id.mu.Unlock()
	if id.remote.IsValid() {
		return id.remote.String()
	}
	return fmt.Sprintf("id %d", id.num)
}

// call runs a command on the id and names its error.
func (id *ID) call(op string, f func() error) error {
	id.use.RLock()
	err := error(errDestroyed)
	if !id.gone {
		err = f()
	}
	id.use.RUnlock()
	if err != nil {
		return &Error{op, id.name(), err}
	}
	return nil
}

// deliver is called by the channel's reader, or by a kernel that must not be
// called meanwhile.
func (id *ID) deliver(ev Event, pushed bool) {
	id.mu.Lock()
	local := id.local
	switch {
	case id.over != nil:
	case len(id.events) == maxEvents:
		id.endLocked(errOverflow)
		defer id.cut(errOverflow)
	default:
		id.events = append(id.events, ev)
	}
	id.mu.Unlock()
	id.notify()
	switch ev.Type {
	case abi.UCMEventDisconnected:
		end := func() {
			id.answer()
			id.cut(ev.ended(local))
		}
		if pushed {
			go end()
		} else {
			end()
		}
	case abi.UCMEventTimewaitExit, abi.UCMEventDeviceRemoval:
		id.cut(ev.ended(local))
	}
}

// answer sends the reply to a disconnect request: the kernel leaves it to the
// client, and the peer waits for it. After an own request it does nothing. It
// must not wait for Destroy, which may be waiting for the reader.
func (id *ID) answer() {
	if !id.use.TryRLock() {
		return
	}
	defer id.use.RUnlock()
	if !id.gone {
		_ = id.ch.disconnect(id.num)
	}
}

func (id *ID) notify() {
	select {
	case id.wake <- struct{}{}:
	default:
	}
}

// end says that no more events will come.
func (id *ID) end(why error) {
	id.mu.Lock()
	id.endLocked(why)
	id.mu.Unlock()
	id.cut(why)
}

func (id *ID) endLocked(why error) {
	if id.over == nil {
		id.over = why
		close(id.done)
	}
}

// Next gives the id's next event. It returns ctx.Err() when ctx ends, and an
// error that Is EBADF when the id was destroyed or net.ErrClosed when the
// channel was closed. The calls that wait for events of their own (Resolve,
// Connect, Accept) take those; the later ones are left for Next: DISCONNECTED,
// TIMEWAIT_EXIT, DEVICE_REMOVAL.
func (id *ID) Next(ctx context.Context) (Event, error) {
	for {
		id.mu.Lock()
		if len(id.events) > 0 {
			ev := id.events[0]
			id.events = id.events[1:]
			more := len(id.events) > 0
			id.mu.Unlock()
			if more {
				id.notify() // for another waiter
			}
			return ev, nil
		}
		over := id.over
		id.mu.Unlock()
		if over != nil {
			return Event{}, &Error{"wait for an event of", id.name(), over}
		}
		select {
		case <-ctx.Done():
			return Event{}, ctx.Err()
		case <-id.wake:
		case <-id.done:
		}
	}
}

// again leaves an event for Next once more.
func (id *ID) again(ev Event) {
	id.mu.Lock()
	id.events = append([]Event{ev}, id.events...)
	id.mu.Unlock()
	id.notify()
}

// await waits for an event of one type. Events that tell of a failure are
// errors, with the event; others are passed over.
func (id *ID) await(ctx context.Context, op string, want abi.UCMEvent) (Event, error) {
	for {
		ev, err := id.Next(ctx)
		if err == nil && ev.Type != want {
			if err = ev.Err(); err == nil && ev.Type == abi.UCMEventDisconnected {
				err = &DisconnectedError{Status: ev.Status}
			}
			if err == nil {
				continue
			}
		}
		if err == nil {
			err = ev.Err()
		}
		if err != nil {
			return ev, &Error{op, id.name(), err}
		}
		return ev, nil
	}
}

// Destroy gives the id back. Its pending work ends: a connection is
// disconnected, a request that was not answered is rejected, a resolution is
// cancelled. The queue pair stays as it is. EBADF the second time.
func (id *ID) Destroy() error {
	id.use.Lock()
	defer id.use.Unlock()
	if id.gone {
		return &Error{"destroy", id.name(), errDestroyed}
	}
	// The kernel answers how many events it has given, for clients that count
	// those that they still work on. Here leave waits for the one that may be
	// on its way.
	if err := id.ch.destroyID(id.num); err != nil {
		return &Error{"destroy", id.name(), err}
	}
	id.gone = true
	id.ch.leave(id)
	id.end(errDestroyed)
	return nil
}
