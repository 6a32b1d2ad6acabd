package msgring

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/uapi"
)

// workerEntries is how many entries each completion queue of a Worker has, or
// what the device makes at most: those of 129 connections with rings of 16 KiB,
// of 41 with rings of 256 KiB.
const workerEntries = 16 << 10

// Worker is one goroutine that takes the completions of any number of
// connections, those of a device whose Config names it, and hands them on by
// the number of the queue pair. The goroutines that read and write wait for it
// and never work themselves. It makes completion queues as it needs them.
//
// An errand is a task for the worker, done behind all completions that a queue
// had when it was asked. The entries of a connection are free again only when
// its queue was polled empty behind the end of its queue pair: stale
// completions keep their room until then.
type Worker struct {
	device  *uapi.Device
	entries int
	life    context.Context
	stop    context.CancelFunc
	ended   chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	closed  bool // guarded by mu, as the fields below
	dead    bool // nothing waits for completions any more
	queues  []*queue
	conns   map[uapi.QP]*Conn // by queue pair, from before the peer can send
	count   int               // of connections, also of those without a queue pair yet
	errands []errand
	handed  uint64
	idle    sync.Cond // on mu: count is 0
}

type queue struct {
	cq   uapi.CQ
	used int // entries
}

type errand struct {
	queue *queue
	do    func()
}

// WorkerStats count a Worker's work.
type WorkerStats struct {
	Connections int    `json:"connections"` // now
	Queues      int    `json:"queues"`      // completion queues
	Completions uint64 `json:"completions"` // handed to connections
}

// NewWorker starts a worker for connections of the device. Close ends it.
// Errors are those of uapi.Device.CreateCQ.
func NewWorker(device *uapi.Device) (*Worker, error) {
	info, err := device.QueryDevice()
	if err != nil {
		return nil, err
	}
	w := &Worker{device: device, entries: min(workerEntries, info.MaxCQE), conns: map[uapi.QP]*Conn{}, ended: make(chan struct{})}
	w.idle.L = &w.mu
	cq, err := device.CreateCQ(w.entries)
	if err != nil {
		return nil, err
	}
	w.queues = []*queue{{cq: cq}}
	w.life, w.stop = context.WithCancel(context.Background())
	go w.run()
	return w, nil
}

// Stats reads the figures.
func (w *Worker) Stats() WorkerStats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return WorkerStats{Connections: w.count, Queues: len(w.queues), Completions: w.handed}
}

// Close aborts the connections that stand, waits until all are gone, and gives
// the queues back. A connection that is being made fails, or is the caller's to
// close; Close waits for it.
func (w *Worker) Close() error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return net.ErrClosed
	}
	w.closed = true
	for _, c := range w.conns {
		go c.abortStanding()
	}
	for w.count > 0 {
		w.idle.Wait()
	}
	w.mu.Unlock()
	w.stop()
	<-w.ended
	var err error
	for _, q := range w.queues {
		if e := unlessClosed(w.device.DestroyCQ(q.cq)); err == nil {
			err = e
		}
	}
	return err
}

// abortStanding aborts a connection that was made.
func (c *Conn) abortStanding() {
	c.mu.Lock()
	stands := c.stands
	c.mu.Unlock()
	if stands {
		_ = c.Abort()
	}
}

// claim finds room for a connection with so many entries, in the first queue
// that has it.
func (w *Worker) claim(device *uapi.Device, entries int) (*queue, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return nil, fmt.Errorf("msgring: Config.Workers names a worker that is closed: %w", net.ErrClosed)
	case device != w.device:
		return nil, fmt.Errorf("msgring: Config.Workers names a worker of another device: %w", syscall.EINVAL)
	}
	for _, q := range w.queues {
		if q.used+entries <= w.entries {
			q.used += entries
			w.count++
			return q, nil
		}
	}
	cq, err := w.device.CreateCQ(max(w.entries, entries))
	if err != nil {
		return nil, err
	}
	q := &queue{cq: cq, used: entries}
	w.queues = append(w.queues, q)
	w.count++
	_ = w.device.WakeCQ(w.queues[0].cq) // the wait under way does not know it
	return q, nil
}

// enter lets completions of a queue pair find its connection. Preconditions:
// the peer cannot send yet.
func (w *Worker) enter(qp uapi.QP, c *Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns[qp] = c
}

// leave gives a connection's entries back, and returns when the worker does not
// use its memory any more. Preconditions: the queue pair is destroyed.
func (w *Worker) leave(q *queue, qp uapi.QP, entries int) {
	left := make(chan struct{})
	w.behind(q, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.conns, qp)
		q.used -= entries
		close(left)
	})
	<-left
}

// gone notes that a connection that had left has given everything back.
func (w *Worker) gone() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.count--; w.count == 0 {
		w.idle.Broadcast()
	}
}

// behind has the worker call do behind all completions of a queue.
func (w *Worker) behind(q *queue, do func()) {
	w.mu.Lock()
	dead := w.dead
	if !dead {
		w.errands = append(w.errands, errand{q, do})
	}
	w.mu.Unlock()
	if dead {
		do()
		return
	}
	_ = w.device.WakeCQ(q.cq)
}

// run is the goroutine.
func (w *Worker) run() {
	defer close(w.ended)
	var wcs [batchSize]uapi.WC
	var cqs []uapi.CQ
	for {
		w.mu.Lock()
		for _, q := range w.queues[len(cqs):] {
			cqs = append(cqs, q.cq)
		}
		errands := w.errands
		w.errands = nil
		w.mu.Unlock()
		for _, e := range errands {
			for {
				n, err := w.device.PollQueue(e.queue.cq, wcs[:])
				if err != nil || n == 0 {
					break // WaitAny tells of the error, too
				}
				w.deliver(wcs[:n])
			}
			e.do()
		}
		n, err := w.device.WaitAny(w.life, cqs, wcs[:])
		if err != nil {
			w.die(err)
			return
		}
		w.deliver(wcs[:n])
	}
}

// deliver gives completions to their connections, in their order. Completions
// of queue pairs that are gone are dropped.
func (w *Worker) deliver(wcs []uapi.WC) {
	for len(wcs) > 0 {
		n := 1
		for n < len(wcs) && wcs[n].QP == wcs[0].QP {
			n++
		}
		w.mu.Lock()
		c := w.conns[wcs[0].QP]
		w.handed += uint64(n)
		w.mu.Unlock()
		if c != nil {
			if c.handle(nil, wcs[:n]) {
				c.finishReads()
			}
		}
		wcs = wcs[n:]
	}
}

// die ends the connections that are left, because the device or the worker was
// closed, and does the errands that stand. Later ones are done by their caller.
func (w *Worker) die(err error) {
	w.mu.Lock()
	w.dead = true
	errands := w.errands
	w.errands = nil
	var conns []*Conn
	for _, c := range w.conns {
		conns = append(conns, c)
	}
	w.mu.Unlock()
	for _, c := range conns {
		c.lose(err)
	}
	for _, e := range errands {
		e.do()
	}
}
