package rnic

import (
	"container/heap"
	"math"
	"slices"
	"sync/atomic"

	"github.com/rdmashim/rdmashim/rnic/engine"
)

// queues are the lists in which queue pairs wait for a goroutine that works for
// them. A queue pair may be in several at once, in each of them once, and its
// places say in which:
//
//	list     in it, because                  put in by            taken out by
//	notes    a doorbell found mu taken, or   QP.Doorbell, without  takeNotes
//	         waits in a stream               mu
//	changed  completions, state or timeout   markChanged           serveChanged
//	         may have changed
//	senders  it may have packets to send     schedule, fill        fill
//	held     its engine may hold an          addHeld               piggyback,
//	         acknowledgement                                       releaseAcks
//	timers   the worker must look at it at   serveChanged          serveTimers
//	         wakeAt
//
// Invariants:
//   - a goroutine that puts a queue pair in changed calls serveChanged before it
//     is done with the device, though it may free mu in between;
//   - a queue pair whose engine may have packets to send is in senders: fill,
//     which takes it out, puts it back if there are more;
//   - a queue pair whose engine has a timeout is in timers, or in changed or
//     senders, from where it gets into timers;
//   - a queue pair whose engine holds an acknowledgement is in held or senders;
//   - a queue pair that is gone leaves held and timers at once, and is skipped
//     by the next goroutine that takes it out of another list.
//
// All but notes, which is deviceLock's, and owed is guarded by Device.mu, as
// are the places.
type queues struct {
	changed []*QP
	senders senderList
	held    []*QP
	owed    atomic.Bool // held is not empty
	timers  timerHeap
}

// places are those of a queue pair in the queues.
type places struct {
	noted    atomic.Bool // in deviceLock.notes
	nextNote *QP         // behind it there; of the goroutine that set or clears noted

	changed bool        // in queues.changed
	listed  bool        // in queues.senders
	inHeld  bool        // in queues.held
	slot    int         // in queues.timers, or notInHeap
	wakeAt  engine.Time // key in queues.timers, not later than the engine's timeout
}

// noteList holds queue pairs whose doorbell found the lock taken: a stack that
// needs no lock. A note stands for everything that was published before it.
type noteList struct{ top atomic.Pointer[QP] }

func (l *noteList) empty() bool { return l.top.Load() == nil }

// leave puts q in the list, unless it is in.
func (l *noteList) leave(q *QP) {
	if q.noted.Swap(true) {
		return // take clears noted before its caller looks at the ring
	}
	for {
		top := l.top.Load()
		q.nextNote = top
		if l.top.CompareAndSwap(top, q) {
			return
		}
	}
}

// take empties the list and calls serve with each that was in it.
func (l *noteList) take(serve func(*QP)) {
	for q := l.top.Swap(nil); q != nil; {
		next := q.nextNote
		q.nextNote = nil
		q.noted.Store(false)
		serve(q)
		q = next
	}
}

// schedule puts q, to which something happened, into changed and senders: it
// may have packets to send, completions, or another timeout.
func (l *queues) schedule(q *QP) {
	l.markChanged(q)
	l.senders.push(q)
}

// markChanged is schedule for a queue pair that has just been asked for
// packets.
func (l *queues) markChanged(q *QP) {
	if !q.changed {
		q.changed = true
		l.changed = append(l.changed, q)
	}
}

// nextChanged takes a queue pair out of changed, or returns nil.
func (l *queues) nextChanged() *QP {
	last := len(l.changed) - 1
	if last < 0 {
		return nil
	}
	q := l.changed[last]
	l.changed[last] = nil
	l.changed = l.changed[:last]
	q.changed = false
	return q
}

// addHeld puts q, whose engine holds an acknowledgement, into held.
func (l *queues) addHeld(q *QP) {
	if !q.inHeld {
		q.inHeld = true
		l.held = append(l.held, q)
		l.owed.Store(true)
	}
}

// filterHeld calls keep with each queue pair of held, and takes those out for
// which it is false.
func (l *queues) filterHeld(keep func(*QP) bool) {
	l.held = slices.DeleteFunc(l.held, func(q *QP) bool {
		q.inHeld = keep(q)
		return !q.inHeld
	})
	l.owed.Store(len(l.held) > 0)
}

// forget takes a queue pair out of where it would wait, since it goes.
func (l *queues) forget(q *QP) {
	if q.inHeld {
		l.filterHeld(func(h *QP) bool { return h != q })
	}
	l.timers.remove(q)
}

// senderList is a first-in first-out list of queue pairs that may have packets
// to send.
type senderList struct {
	q    []*QP // a ring buffer whose length is a power of two
	head int
	n    int
}

func (l *senderList) at(i int) **QP { return &l.q[(l.head+i)&(len(l.q)-1)] }

// push appends a queue pair that is not in the list yet.
func (l *senderList) push(q *QP) {
	if q.listed {
		return
	}
	if l.n == len(l.q) {
		bigger := make([]*QP, max(16, 2*len(l.q)))
		for i := range l.n {
			bigger[i] = *l.at(i)
		}
		l.q, l.head = bigger, 0
	}
	*l.at(l.n) = q
	l.n++
	q.listed = true
}

// pop takes the queue pair that has waited longest, or returns nil.
func (l *senderList) pop() *QP {
	if l.n == 0 {
		return nil
	}
	p := l.at(0)
	q := *p
	*p = nil
	l.head = (l.head + 1) & (len(l.q) - 1)
	l.n--
	q.listed = false
	return q
}

// moveToFront lets q be next.
func (l *senderList) moveToFront(q *QP) {
	for i := range l.n {
		if *l.at(i) != q {
			continue
		}
		for ; i > 0; i-- {
			*l.at(i) = *l.at(i - 1)
		}
		*l.at(0) = q
		return
	}
}

const (
	notInHeap = -1
	noAlarm   = engine.Time(math.MaxInt64)
)

// timerHeap orders queue pairs by the time at which the worker must look at
// them. That time may be earlier than the engine's timeout, which each packet
// moves further away: it is then looked up anew, and the heap does not change
// per packet.
type timerHeap []*QP

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].wakeAt < h[j].wakeAt }
func (h timerHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].slot, h[j].slot = i, j }
func (h *timerHeap) Push(x any)        { q := x.(*QP); q.slot = len(*h); *h = append(*h, q) }

func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	q := (*h)[last]
	(*h)[last], q.slot = nil, notInHeap
	*h = (*h)[:last]
	return q
}

// first is when the first queue pair must be looked at, or noAlarm.
func (h timerHeap) first() engine.Time {
	if len(h) == 0 {
		return noAlarm
	}
	return h[0].wakeAt
}

// wake has q looked at by the time t.
func (h *timerHeap) wake(q *QP, t engine.Time) {
	switch {
	case q.slot == notInHeap:
		q.wakeAt = t
		heap.Push(h, q)
	case t < q.wakeAt:
		q.wakeAt = t
		heap.Fix(h, q.slot)
	}
}

// pop takes the first queue pair out. The heap is not empty.
func (h *timerHeap) pop() *QP { return heap.Pop(h).(*QP) }

// remove takes q out, if it is in.
func (h *timerHeap) remove(q *QP) {
	if q.slot != notInHeap {
		heap.Remove(h, q.slot)
	}
}
