package netlinkmgr

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"
)

// MonitorOptions are where a monitor tells what it sees.
type MonitorOptions struct {
	// Event is given each event, in order, one at a time.
	Event func(Event)
	// Log is told once what the monitor listens to; changes from then on are told.
	Log func(string)
	// Now is the clock of the events; nil is time.Now.
	Now func() time.Time
}

// lookEvery is how often the monitor looks unasked: what tells of ports, the
// kernel does not send to everybody.
const lookEvery = time.Second

// settling are the looks after a notice: the kernel changes ports and GID
// tables a moment after it tells of the network device or the address.
var settling = []time.Duration{time.Millisecond, 10 * time.Millisecond, 30 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond, time.Second}

// Monitor tells of changes of RDMA devices, their ports, GIDs and network
// devices in this network namespace until ctx ends, which is no error. What is
// there when it begins, it does not tell.
//
// Devices come, go and get names by RDMA's own notifications, or where the
// kernel has none (before 6.13) by uevents; network devices by RTNETLINK. Ports
// and GIDs have no messages: the monitor looks after each notice, and once a
// second.
func (m *Manager) Monitor(ctx context.Context, o MonitorOptions) error {
	w := &watcher{m: m, emit: o.Event, now: o.Now, uevents: m.k.Listen != nil, looked: map[string]int{}}
	if w.now == nil {
		w.now = time.Now
	}
	sys, err := m.System(ctx)
	if err != nil && !isNoRDMA(err) {
		return ended(ctx, err)
	}
	w.notified = sys.Monitor != nil && *sys.Monitor
	listening, stop := context.WithCancel(ctx)
	defer stop() // also when it fails
	notices, hears, err := w.listen(listening)
	if err != nil {
		return ended(ctx, err)
	}
	if err := w.start(ctx); err != nil {
		return ended(ctx, err)
	}
	if o.Log != nil {
		o.Log(hears)
	}
	return ended(ctx, w.run(ctx, notices))
}

// ended is no error when it was wished for.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// listen says what it hears.
func (w *watcher) listen(ctx context.Context) (<-chan Notice, string, error) {
	if w.m.k.Listen == nil {
		return nil, "looking at the state once a second", nil
	}
	notices, heard, err := w.m.k.Listen(ctx, w.notified)
	if err != nil {
		return nil, "", opError("listen to the kernel", permission("listen to the kernel", "CAP_NET_ADMIN", err))
	}
	hears := "listening to " + strings.Join(heard, ", ") + "; looking at the state after each of these and once a second"
	if !w.notified {
		hears += " (this kernel has no RDMA notifications)"
	}
	return notices, hears, nil
}

// run takes notices and looks until ctx ends. What the kernel told goes before
// what a look would find: a device before its port.
func (w *watcher) run(ctx context.Context, notices <-chan Notice) error {
	settled := len(settling) // looks since the last notice
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case n, ok := <-notices:
			if !ok {
				if ctx.Err() == nil {
					return &OpError{"listen to the kernel", fmt.Errorf("its sockets were closed: %w", syscall.EPIPE)}
				}
				return nil
			}
			if err := w.notice(ctx, n); err != nil {
				return err
			}
			settled = 0
		case <-timer.C:
			if n, ok := waiting(notices); ok {
				if err := w.notice(ctx, n); err != nil {
					return err
				}
				settled = 0
				break
			}
			if err := w.look(ctx, settled < len(settling)); err != nil {
				return err
			}
			settled = min(settled+1, len(settling))
		}
		wait := lookEvery
		if settled < len(settling) {
			wait = settling[settled]
		}
		timer.Reset(wait)
	}
}

// waiting takes a notice that is there already.
func waiting(notices <-chan Notice) (Notice, bool) {
	select {
	case n, ok := <-notices:
		return n, ok
	default:
		return Notice{}, false
	}
}

// notice tells what a notice says.
func (w *watcher) notice(ctx context.Context, n Notice) error {
	switch {
	case errors.Is(n.Err, syscall.ENOBUFS):
		clear(w.looked)
		w.tell(Event{Kind: EventLost, Source: SourceLook, To: n.Err.Error()})
		return w.look(ctx, true)
	case n.Err != nil:
		return opError("listen to the kernel", n.Err)
	case n.RDMA != nil:
		e, err := parseNotification(n.RDMA)
		if err != nil {
			return opError("listen to the kernel", err)
		}
		w.notification(e)
	case n.Uevent != nil:
		if u, ok := parseUevent(n.Uevent); ok {
			return w.uevent(ctx, u)
		}
	case n.Link != nil:
		w.link(*n.Link, n.Gone)
	}
	return nil
}
