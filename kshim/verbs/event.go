package verbs

import (
	"context"
	"errors"
	"fmt"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
)

// readCompletions hands the events of the completion channel to their
// completion queues until Close. A kernel in this process hands them over
// itself.
func (c *Context) readCompletions() {
	if p, ok := c.comp.(kshim.Pusher); ok {
		p.Push(c.completed)
	}
	c.broken(readEvents(c.comp, abi.CompEventSize, c.completed))
}

// completed takes an event of the completion channel.
func (c *Context) completed(b []byte) {
	var ev abi.CompEvent
	if ev.Parse(b) != nil {
		return
	}
	if cq := c.lookupCQ(ev.CQHandle); cq != nil {
		cq.event()
	}
}

// readAsync hands asynchronous events to their objects until Close. Events for
// objects that are gone are ignored: the element is a number of ours, never a
// pointer.
func (c *Context) readAsync() {
	err := readEvents(c.async, abi.AsyncEventSize, func(b []byte) {
		var ev abi.AsyncEvent
		if ev.Parse(b) != nil {
			return
		}
		c.asyncEvent(&ev)
		c.watched(&ev)
	})
	c.broken(err)
}

func (c *Context) asyncEvent(ev *abi.AsyncEvent) {
	switch ev.EventType {
	case abi.EventCQErr:
		if cq := c.lookupCQ(ev.Element); cq != nil {
			cq.fail(errOverrun)
		}
	case abi.EventQPFatal, abi.EventQPReqErr, abi.EventQPAccessErr, abi.EventQPLastWQEReached:
		c.mu.Lock()
		qp := c.qps[ev.Element]
		c.mu.Unlock()
		if qp != nil {
			_, _ = qp.query() // the event may be older than a reset
		}
	case abi.EventDeviceFatal:
		for _, cq := range c.allCQs() {
			cq.fail(errFatal)
		}
	}
}

// readEvents reads until the file fails; one read is one event.
func readEvents(f kshim.File, size int, event func([]byte)) error {
	buf := make([]byte, size)
	for {
		n, err := f.Read(context.Background(), buf)
		if err != nil {
			return err
		}
		event(buf[:n])
	}
}

// broken takes the end of an event file. Unless the context is closing, no
// waiter would wake up any more: every completion queue fails.
func (c *Context) broken(err error) {
	select {
	case <-c.done:
		return
	default:
	}
	err = fmt.Errorf("event file: %w", errors.Join(err, errFatal))
	for _, cq := range c.allCQs() {
		cq.fail(err)
	}
}

func (c *Context) lookupCQ(key uint64) *CQ {
	cq, _ := c.cqs.Load(key)
	q, _ := cq.(*CQ)
	return q
}

// Event is an asynchronous event: of a port, of an object, or of the whole
// device when all are zero.
type Event struct {
	Type abi.EventType
	Port uint8
	QP   *QP
	CQ   *CQ
	SRQ  *SRQ
}

// Watch has every asynchronous event from now on given to f, after the context
// has acted on it, until stop is called. f must not block, nor call the
// context. Events of objects that are gone are not given.
func (c *Context) Watch(f func(Event)) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := new(func(Event))
	*key = f
	if c.watchers == nil {
		c.watchers = map[*func(Event)]struct{}{}
	}
	c.watchers[key] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.watchers, key)
	}
}

// Done is closed when Close begins.
func (c *Context) Done() <-chan struct{} { return c.done }

// watched hands an event to the watcher.
func (c *Context) watched(ev *abi.AsyncEvent) {
	e := Event{Type: ev.EventType}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch ev.EventType.Element() {
	case abi.ElementPort:
		e.Port = uint8(ev.Element)
	case abi.ElementQP:
		if e.QP = c.qps[ev.Element]; e.QP == nil {
			return
		}
	case abi.ElementCQ:
		if e.CQ = c.lookupCQ(ev.Element); e.CQ == nil {
			return
		}
	case abi.ElementSRQ:
		if e.SRQ = c.srqs[ev.Element]; e.SRQ == nil {
			return
		}
	}
	for f := range c.watchers {
		(*f)(e)
	}
}
