package rnic

import (
	"sync"
	"time"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/engine"
)

// How many batches a caller sends at most before it leaves the rest to the
// worker: a program wants its thread back, the receiver must not let the
// socket's buffer run over.
const (
	doorbellBatches = 4
	receiverBatches = 2
	workerBatches   = 8
)

// serveChanged does what follows from the changes of queue pairs: completions
// go to their rings, packets leave, timers are set. It frees the lock while it
// sends. Preconditions, here and below: mu is held.
func (d *Device) serveChanged(batches int) {
	for _, q := range d.changed {
		if !q.gone && (q.engine.HasCompletions() || q.engine.State() == abi.QPSErr) {
			q.complete()
			q.report() // before the peer hears of it, and the program can reset it
		}
	}
	d.transmit(batches)
	now := d.now()
	for q := d.nextChanged(); q != nil; q = d.nextChanged() {
		if !q.gone {
			d.serveOne(now, q)
		}
	}
	d.gsi.report()
	d.setAlarm(now)
}

func (d *Device) serveOne(now engine.Time, q *QP) {
	q.complete()
	q.watchReceives(now)
	q.report()
	q.bell.Store(q.takesDoorbells())
	q.flying.Store(q.engine.Awaits())
	if q.listed {
		return // it gets its turn at the transmitter, and comes here again
	}
	if t, ok := q.nextTimeout(); ok {
		d.timers.wake(q, t)
	}
}

// transmitter is the token of the goroutine that sends, and what it sends.
type transmitter struct {
	sending bool          // guarded by mu: the token is taken
	sent    *sync.Cond    // of mu: a batch has left, or the token is free
	batch   *engine.Batch // of the holder of the token
}

// batches are of closed devices: the memory of a new one is cleared, which
// takes as long as all else of making a device.
var batches sync.Pool

// takeBatch returns a batch for n packets of any path MTU.
func takeBatch(n int) *engine.Batch {
	if b, ok := batches.Get().(*engine.Batch); ok && cap(b.Packets) == n {
		return b
	}
	return engine.NewBatch(n)
}

// giveBatch leaves the batch of a closed device to another one.
func giveBatch(b *engine.Batch) {
	clear(b.Packets[:cap(b.Packets)]) // they hold what was lent
	b.Reset()
	batches.Put(b)
}

// transmit sends at most so many batches, unless another goroutine has the
// transmitter. The queue pairs take turns; each turn ends with the batch. The
// worker sends the rest.
func (d *Device) transmit(batches int) {
	if d.sending {
		return
	}
	d.sending = true
	for ; batches > 0 && d.lost == nil && !d.closed; batches-- {
		d.fill()
		if len(d.batch.Packets) == 0 {
			break
		}
		d.mu.Mutex.Unlock()
		err := d.link.Send(d.batch.Packets)
		d.mu.Lock()
		d.takeNotes()
		d.batch.Reset()
		d.sent.Broadcast()
		if err != nil {
			d.fail(err)
		}
	}
	d.sending = false
	d.sent.Broadcast()
	if (d.senders.n > 0 || d.gsi.cm.Pending()) && d.lost == nil && !d.closing {
		d.wakeWorker()
	}
}

// fill collects a batch from the senders.
func (d *Device) fill() {
	now := d.now()
	if d.gsi.cm.Pending() { // a DREQ, perhaps
		d.piggyback(now)
	}
	d.fillFinalAcks(now)
	d.gsi.fill(d.batch)
	for range d.senders.n {
		if d.batch.Full() {
			return
		}
		q := d.senders.pop()
		if q.gone {
			continue
		}
		q.turns++
		if q.transmit(now) {
			d.senders.push(q)
		}
		d.markChanged(q)
		if q.engine.HoldsAck() {
			d.addHeld(q)
		}
	}
	if len(d.batch.Packets) > 0 && len(d.held) > 0 {
		d.piggyback(now)
	}
}

func (d *Device) wakeWorker() {
	select {
	case d.kick <- struct{}{}:
	default:
	}
}

// alarm wakes the worker.
type alarm struct {
	*time.Timer
	at engine.Time // when; noAlarm if it is not set
}

func newAlarm() alarm {
	a := alarm{time.NewTimer(time.Hour), noAlarm}
	a.Stop()
	return a
}

// setAlarm lets the worker run at the first timeout, not before. A goroutine
// that sends sees to final acknowledgements by itself, and sets it behind that.
func (d *Device) setAlarm(now engine.Time) {
	t := min(d.timers.first(), d.gsi.first())
	if !d.sending {
		t = min(t, d.final.next)
	}
	if t == d.alarm.at || d.closed {
		return
	}
	d.alarm.at = t
	if t == noAlarm {
		d.alarm.Stop()
		return
	}
	d.alarm.Reset(max(time.Duration(t-now), 0))
}

// work is the worker: it serves timeouts, and sends the packets that callers
// left.
func (d *Device) work() {
	for {
		rang := false
		select {
		case <-d.quit:
			return
		case <-d.kick:
		case <-d.alarm.C:
			rang = true
		}
		d.worked.Add(1)
		d.mu.Lock()
		if rang {
			d.alarm.at = noAlarm
		}
		if !d.closing {
			d.serveReturned()
			d.serveTimers()
			d.serveChanged(workerBatches)
		}
		log, warnings := d.log, d.warnings
		d.warnings = nil
		d.mu.Unlock()
		for _, w := range warnings {
			log.Warn(w.text, w.args...)
		}
	}
}

// serveTimers serves the queue pairs whose time has come. The link's packets
// are received before a peer counts as silent: this process may have slept.
func (d *Device) serveTimers() {
	now, heard := d.now(), false
	for d.timers.first() <= now {
		q := d.timers.pop()
		rc, is := q.engine.(*engine.QP)
		suspects := is && rc.Suspects(now)
		if suspects && q.near != 0 {
			sent, taken := d.near.Progress(q.near)
			rc.Taken(now, sent, taken)
		}
		t, ok := q.nextTimeout()
		if suspects && !heard {
			d.timers.wake(q, t)
			if heard = true; !d.receiveReady() {
				return
			}
			continue
		}
		if ok && t <= now {
			q.engine.HandleTimeout(now)
			d.schedule(q)
		} else if ok {
			d.timers.wake(q, t)
		}
	}
	if d.gsi.first() <= now && !heard && !d.receiveReady() {
		return
	}
	d.gsi.cm.HandleTimeout(cm.Time(now))
}

// receiveBatches bounds the batches that the worker receives.
const receiveBatches = 64

// receiveReady receives what the link has, with mu released meanwhile; false
// when the device closes.
func (d *Device) receiveReady() bool {
	d.mu.Unlock()
	d.drive.Receiver.Lock()
	for range receiveBatches {
		if n, err := d.receive(); n == 0 || err != nil {
			break
		}
	}
	d.drive.Receiver.Unlock()
	d.mu.Lock()
	return !d.closing
}

// fail ends all queue pairs when the link is gone.
func (d *Device) fail(err error) {
	if d.lost != nil || d.closing {
		return
	}
	d.lost = err
	d.down.Store(true)
	now := d.now()
	for _, q := range d.qps {
		if q != nil {
			q.toError(now)
		}
	}
	if d.events != nil {
		d.events.Event(1, abi.EventPortErr) // QueryPort says DOWN from here on
	}
}
