package uapi

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/rdmashim/rdmashim/kshim/verbs"
)

// Event is something that a device tells of itself, its port or its objects
// (ibv_get_async_event).
type Event struct {
	Time time.Time
	Type EventType
	Port int // of port events; else 0
	QP   QP  // of queue pair events; else 0
	CQ   CQ  // of completion queue events; else 0
	SRQ  SRQ // of shared receive queue events; else 0
	// Lost counts the events that were lost since the one before was given,
	// because 64 of them waited to be taken.
	Lost int
}

// EventType is the kernel's name of an event (enum ib_event_type).
type EventType string

const (
	EventCQErr            EventType = "CQ_ERR"
	EventQPFatal          EventType = "QP_FATAL"
	EventQPReqErr         EventType = "QP_REQ_ERR"
	EventQPAccessErr      EventType = "QP_ACCESS_ERR"
	EventCommEst          EventType = "COMM_EST"
	EventSQDrained        EventType = "SQ_DRAINED"
	EventPathMig          EventType = "PATH_MIG"
	EventPathMigErr       EventType = "PATH_MIG_ERR"
	EventDeviceFatal      EventType = "DEVICE_FATAL"
	EventPortActive       EventType = "PORT_ACTIVE"
	EventPortErr          EventType = "PORT_ERR"
	EventLIDChange        EventType = "LID_CHANGE"
	EventPkeyChange       EventType = "PKEY_CHANGE"
	EventSMChange         EventType = "SM_CHANGE"
	EventSRQErr           EventType = "SRQ_ERR"
	EventSRQLimitReached  EventType = "SRQ_LIMIT_REACHED"
	EventQPLastWQEReached EventType = "QP_LAST_WQE_REACHED"
	EventClientReregister EventType = "CLIENT_REREGISTER"
	EventGIDChange        EventType = "GID_CHANGE"
	EventWQFatal          EventType = "WQ_FATAL"
)

// eventRoom is how many events wait to be taken.
const eventRoom = 64

// Events gives the device's events from now on, as they come, until ctx ends or
// the device is closed; then the channel is closed. A program needs no events
// to notice a fault: its calls fail and its waits are woken. Events say why,
// and when a port comes back. Each call has a channel of its own.
func (d *Device) Events(ctx context.Context) <-chan Event {
	type dated struct {
		verbs.Event
		at time.Time
	}
	in, out := make(chan dated, eventRoom), make(chan Event)
	var lost atomic.Int64
	stop := d.verbs.Watch(func(v verbs.Event) {
		select {
		case in <- dated{v, time.Now()}:
		default:
			lost.Add(1)
		}
	})
	go func() {
		defer close(out)
		defer stop()
		for {
			var v dated
			select {
			case v = <-in:
			case <-ctx.Done():
				return
			case <-d.verbs.Done():
				return
			}
			e := d.event(v.Event)
			e.Time, e.Lost = v.at, int(lost.Swap(0))
			select {
			case out <- e:
			case <-ctx.Done():
				return
			case <-d.verbs.Done():
				return
			}
		}
	}()
	return out
}

func (d *Device) event(v verbs.Event) Event {
	e := Event{Type: EventType(v.Type.String()), Port: int(v.Port)}
	if v.QP != nil {
		e.QP = QP(v.QP.Num())
	}
	if v.CQ != nil {
		e.CQ = handleOf(d, d.queues, func(q *completionQueue) bool { return q.verbs == v.CQ })
	}
	if v.SRQ != nil {
		e.SRQ = handleOf(d, d.shared, func(s *sharedQueue) bool { return s.verbs == v.SRQ })
	}
	return e
}

// handleOf finds the handle of the object that is it; 0 when it is gone.
func handleOf[H ~int, T any](d *Device, own map[H]*T, is func(*T) bool) H {
	d.mu.Lock()
	defer d.mu.Unlock()
	for h, x := range own {
		if is(x) {
			return h
		}
	}
	return 0
}

// Down says whether an event ends the use of the device's port, or of all of
// it.
func (e Event) Down() bool {
	return e.Type == EventPortErr || e.Type == EventDeviceFatal
}
