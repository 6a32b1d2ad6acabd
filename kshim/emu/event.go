package emu

import (
	"context"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
)

// source is the events of one type of one object in a queue. They are all
// alike, so that posting one is counting.
type source struct {
	queue   *eventQueue // nil: no file takes its events
	element uint64
	event   abi.EventType

	// guarded by queue.mu
	dead        bool
	reported    uint32 // events that were read
	first, last *run   // the ones that wait
}

// run is consecutive events of one source.
type run struct {
	source     *source
	n          uint32
	prev, next *run // in the queue
	later      *run // of the same source
}

// maxRuns bounds a queue without a reader. Linux has no such bound: it takes
// memory for every event.
const maxRuns = 1 << 16

// eventQueue is struct ib_uverbs_event_queue: events come out in the order in
// which they were posted. Waiting is by channels only.
type eventQueue struct {
	wake chan struct{} // one token: something may be there
	done chan struct{} // closed when no more events will come

	mu         sync.Mutex
	head, tail *run // guarded by mu, as are all
	runs       int  // in the queue
	spare      *run // used before, by next
	ready      readiness
	push       func(element uint64, event abi.EventType) bool   // to the reader, false: no room; or nil
	withdraw   func(element uint64, event abi.EventType) uint32 // takes unread ones back, or nil
	ended      func()                                           // tells that reader of the end, or nil
	err        error                                            // the answer to a read of an empty queue
}

func newEventQueue() *eventQueue {
	return &eventQueue{wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// post adds one event of the source.
func (s *source) post() {
	q := s.queue
	if q == nil {
		return
	}
	q.mu.Lock()
	open := q.err == nil && !s.dead
	switch {
	case !open:
	case q.head == nil && q.push != nil && q.push(s.element, s.event):
		s.reported++
		open = false
	default:
		q.append(s)
	}
	q.mu.Unlock()
	if open {
		q.notify()
	}
}

// retire drops the source's waiting events and all that it may post later, and
// returns how many of its events were read (ib_uverbs_release_uevent).
func (s *source) retire() (reported uint32) {
	q := s.queue
	if q == nil {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	s.dead = true
	for s.first != nil {
		q.unlink(s.first)
	}
	if q.withdraw != nil && s.reported > 0 {
		s.reported -= q.withdraw(s.element, s.event)
	}
	return s.reported
}

func (q *eventQueue) notify() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// append adds an event of s at the end. In a queue that is too long it joins
// those of s that wait, before others that are older: none is lost.
func (q *eventQueue) append(s *source) {
	q.ready.event()
	at := q.tail
	if (at == nil || at.source != s) && q.runs >= maxRuns {
		at = s.last
	}
	if at != nil && at.source == s && at.n < 1<<32-1 {
		at.n++
		return
	}
	r := q.spare
	if r == nil {
		r = new(run)
	} else {
		q.spare = r.next
	}
	*r = run{source: s, n: 1, prev: q.tail}
	if q.tail != nil {
		q.tail.next = r
	} else {
		q.head = r
	}
	q.tail = r
	if s.last != nil {
		s.last.later = r
	} else {
		s.first = r
	}
	s.last = r
	q.runs++
}

// unlink takes the first run of a source out of the queue.
func (q *eventQueue) unlink(r *run) {
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		q.head = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	} else {
		q.tail = r.prev
	}
	s := r.source
	if s.first = r.later; s.first == nil {
		s.last = nil
	}
	q.runs--
	if q.head == nil && q.err == nil {
		q.ready.none()
	}
	*r = run{next: q.spare}
	q.spare = r
}

// close ends the queue. Reads answer err, after the waiting events if keep is
// set.
func (q *eventQueue) close(err error, keep bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == errClosed { //nolint:errorlint // our own value
		return
	}
	if !keep {
		for q.head != nil {
			q.unlink(q.head)
		}
	}
	if q.err == nil {
		close(q.done)
	}
	q.err = err
	if err == errClosed { //nolint:errorlint // our own value
		q.ready.none()
	} else {
		q.ready.event()
	}
	q.end()
}

// end tells a reader that events are pushed to of their end, after the last.
// Preconditions: mu is held.
func (q *eventQueue) end() {
	if q.head == nil && q.err != nil && q.ended != nil {
		q.ended()
	}
}

// take waits for an event. room is how much the reader has for its size.
func (q *eventQueue) take(ctx context.Context, room, size int) (element uint64, event abi.EventType, err error) {
	for {
		q.mu.Lock()
		if r := q.head; r != nil {
			if s := r.source; room >= size {
				s.reported++
				element, event = s.element, s.event
				if r.n--; r.n == 0 {
					q.unlink(r)
				}
			} else {
				err = fail(syscall.EINVAL, "an event is %d bytes, the buffer %d", size, room)
			}
			more := q.head != nil
			q.mu.Unlock()
			if more {
				q.notify() // the token that woke us was for all of them
			}
			return element, event, err
		}
		err = q.err
		q.mu.Unlock()
		if err != nil {
			return 0, 0, err
		}
		select {
		case <-ctx.Done():
			return 0, 0, ctx.Err()
		case <-q.wake:
		case <-q.done:
		}
	}
}

// pushTo hands over the events that wait, and every later one, while f has
// room.
func (q *eventQueue) pushTo(f func(element uint64, event abi.EventType) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.push = f
	q.refill()
}

// refill hands over events that wait. Preconditions: mu is held.
func (q *eventQueue) refill() {
	for q.push != nil && q.head != nil && q.push(q.head.source.element, q.head.source.event) {
		q.head.source.reported++
		if q.head.n--; q.head.n == 0 {
			q.unlink(q.head)
		}
	}
	q.end()
}

// eventFile is a file that events are read from: the asynchronous one of a
// context, or a completion channel.
type eventFile struct {
	file
	queue *eventQueue
	owner *uverbsFile
	async bool

	uverbs  moduleHold              // its code is there
	sources map[deviceEvent]*source // guarded by owner.mu: of an asynchronous file
}

var (
	_ kshim.File   = (*eventFile)(nil)
	_ kshim.Pusher = (*eventFile)(nil)
)

// openEvents opens an event file of a context: it has a number, which the
// client does not know yet.
func (f *uverbsFile) openEvents(async bool) (*eventFile, error) {
	const path = "[infinibandevent]" // the kernel's name for both
	e := &eventFile{file: newFile(f.proc, path), queue: newEventQueue(), owner: f, async: async}
	f.proc.machine.share(&e.uverbs, &f.uverbs)
	f.held.Add(1)
	if err := f.proc.install(e, &e.file, false); err != nil {
		f.proc.machine.put(&e.uverbs)
		f.drop()
		return nil, err
	}
	if s, ok := e.host.(EventSink); ok {
		e.pushToSink(s)
	} else {
		e.queue.mu.Lock()
		e.queue.ready = readiness{host: e.host}
		e.queue.mu.Unlock()
	}
	return e, nil
}

func (f *eventFile) size() int {
	if f.async {
		return abi.AsyncEventSize
	}
	return abi.CompEventSize
}

// Read returns one event: struct ib_uverbs_comp_event_desc or
// ib_uverbs_async_event_desc. When the context it belongs to has gone it is
// EIO.
func (f *eventFile) Read(ctx context.Context, buf []byte) (int, error) {
	size := f.size()
	element, event, err := f.queue.take(ctx, len(buf), size)
	if err != nil {
		if err == ctx.Err() {
			return 0, err
		}
		return 0, explain(err, "read", f.path)
	}
	f.encode(buf, element, event)
	return size, nil
}

func (f *eventFile) encode(buf []byte, element uint64, event abi.EventType) {
	if f.async {
		(&abi.AsyncEvent{Element: element, EventType: event}).Put(buf)
	} else {
		(&abi.CompEvent{CQHandle: element}).Put(buf)
	}
}

// Push implements kshim.Pusher.
func (f *eventFile) Push(to func([]byte)) {
	buf := make([]byte, f.size()) // guarded by the queue's lock
	f.queue.pushTo(func(element uint64, event abi.EventType) bool {
		f.encode(buf, element, event)
		to(buf)
		return true
	})
}

// pushToSink has the host give events to the program, of which those that are
// unread can be taken back.
func (f *eventFile) pushToSink(s EventSink) {
	buf := make([]byte, f.size()) // guarded by the queue's lock
	f.queue.withdraw = func(element uint64, event abi.EventType) uint32 {
		f.encode(buf, element, event)
		return uint32(s.Withdraw(buf))
	}
	f.queue.ended = s.End
	f.queue.pushTo(func(element uint64, event abi.EventType) bool {
		f.encode(buf, element, event)
		return s.Put(buf)
	})
}

// Refill gives events that wait to the host's sink, which has room again.
func (f *eventFile) Refill() {
	f.queue.mu.Lock()
	defer f.queue.mu.Unlock()
	f.queue.refill()
}

func (f *eventFile) Close() error {
	f.shut(func() {
		f.queue.close(errClosed, false)
		f.owner.forget(f)
		f.proc.machine.put(&f.uverbs)
		f.owner.drop()
	})
	return nil
}

// abandon ends a context's event files with the context.
func (f *eventFile) abandon(keep bool) {
	if !f.isClosed() {
		f.queue.close(fail(syscall.EIO, "the context has gone"), keep)
	}
}

func (q *eventQueue) hush(on bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ready.hush(on)
}

// empty reports whether a read would wait.
func (q *eventQueue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.head == nil && q.err == nil
}
