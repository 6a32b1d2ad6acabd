//go:build linux || darwin

package conform

import (
	"context"
	"time"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/must"
)

// Handles that events carry.
const (
	sendQueue = 0xcafe0001
	recvQueue = 0xcafe0002
	queuePair = 0xcafe0003
)

// watched makes a connected queue pair whose completion queues, of 16 entries,
// raise their events in ch.
func (r *rig) watched() (qp *rawQP, scq, rcq *rawCQ, ch kshim.File) {
	w, _ := r.raw()
	fd, ch := w.channel()
	scq, rcq = w.createCQ(sendQueue, 16, fd), w.createCQ(recvQueue, 16, fd)
	qp = w.createQP(queuePair, scq, rcq)
	qp.connect()
	return qp, scq, rcq, ch
}

var eventTests = []test{
	{"event/completion", func(r *rig) {
		qp, scq, _, ch := r.watched()
		scq.arm(false)
		qp.post(qp.rdmaWrite())
		r.sayEvent(ch)
		scq.take(1)
		r.sayNoEvent(ch)
	}},
	{"event/not-armed", func(r *rig) {
		qp, scq, _, ch := r.watched()
		qp.write(scq)
		r.sayNoEvent(ch)
	}},
	{"event/one-for-each-arming", func(r *rig) {
		qp, scq, _, ch := r.watched()
		scq.arm(false)
		for range 3 {
			qp.post(qp.rdmaWrite())
		}
		scq.take(3)
		r.sayEvent(ch)
		r.sayNoEvent(ch)
		scq.arm(false)
		scq.arm(false) // twice is once
		qp.write(scq)
		r.sayEvent(ch)
		qp.write(scq)
		r.sayNoEvent(ch)
	}},
	{"event/not-for-what-was-there", func(r *rig) {
		qp, scq, _, ch := r.watched()
		qp.post(qp.rdmaWrite())
		eventually(func() bool { n, _ := scq.c.Ready(); return n == 1 })
		scq.arm(false)
		r.sayNoEvent(ch)
		qp.post(qp.rdmaWrite())
		r.sayEvent(ch)
	}},
	{"event/solicited-only", func(r *rig) {
		qp, _, rcq, ch := r.watched()
		rcq.arm(true)
		qp.message(0)
		rcq.take(1)
		r.sayNoEvent(ch)
		qp.message(abi.SendSolicited)
		rcq.take(1)
		r.sayEvent(ch)
	}},
	{"event/solicited-for-any", func(r *rig) {
		qp, _, rcq, ch := r.watched()
		rcq.arm(false)
		rcq.arm(true) // does not take the first back
		qp.message(0)
		rcq.take(1)
		r.sayEvent(ch)
		rcq.arm(true)
		rcq.arm(false)
		qp.message(0)
		rcq.take(1)
		r.sayEvent(ch)
	}},
	{"event/solicited-on-a-failure", func(r *rig) {
		qp, scq, _, ch := r.watched()
		scq.arm(true)
		qp.write(scq)
		r.sayNoEvent(ch)
		r.must(qp.modify(abi.ModifyQP{QPState: abi.QPSErr}, abi.QPMaskState))
		qp.post(qp.rdmaWrite()) // is flushed
		scq.take(1)
		_, err := ch.Read(r.within(500*time.Millisecond), make([]byte, 64))
		r.say("a failed one is told of: %t", err == nil)
	}},
	{"event/two-queues", func(r *rig) {
		qp, scq, rcq, ch := r.watched()
		rcq.arm(false)
		qp.message(0)
		r.sayEvent(ch)
		scq.arm(false)
		qp.post(qp.rdmaWrite())
		r.sayEvent(ch)
	}},
	onFile("event/two-channels", func(r *rig, w *raw) {
		fd1, ch1 := w.channel()
		fd2, ch2 := w.channel()
		scq, rcq := w.createCQ(sendQueue, 16, fd1), w.createCQ(recvQueue, 16, fd2)
		qp := w.createQP(queuePair, scq, rcq)
		qp.connect()
		scq.arm(false)
		rcq.arm(false)
		qp.message(0)
		r.sayEvent(ch1)
		r.sayEvent(ch2)
	}),
	{"event/no-channel", func(r *rig) {
		w, async := r.raw()
		qp, scq := w.connected(16, -1)
		scq.arm(false)
		qp.write(scq)
		r.sayNoEvent(async)
	}},
	onFile("event/small-buffer", func(r *rig, w *raw) {
		fd, ch := w.channel()
		qp, scq := w.connected(16, fd)
		scq.arm(false)
		qp.write(scq)
		r.result("reading 4 bytes", errOf(ch.Read(r.withDeadline(), make([]byte, 4))))
	}),
	{"event/deadline", func(r *rig) {
		w, async := r.raw()
		_, ch := w.channel()
		ctx := r.within(10 * time.Millisecond)
		r.result("completion channel", errOf(ch.Read(ctx, make([]byte, 64))))
		r.result("asynchronous events", errOf(async.Read(ctx, make([]byte, 64))))
	}},
	onFile("event/close-wakes", func(r *rig, w *raw) {
		_, ch := w.channel()
		done := start(func() error { return errOf(ch.Read(context.Background(), make([]byte, 64))) })
		pause()
		r.result("Close", ch.Close())
		r.result("Read", <-done)
		r.result("Close", ch.Close())
	}),
	{"event/counts-reported", func(r *rig) {
		qp, scq, _, ch := r.watched()
		for range 3 {
			scq.arm(false)
			qp.write(scq)
			r.sayEvent(ch)
		}
		r.result("destroying the queue pair", errOf(qp.destroy()))
		resp, err := scq.destroy()
		r.say("destroying the queue: %s, %d completion events, %d asynchronous", errText(err), resp.CompEventsReported, resp.AsyncEventsReported)
	}},
	onFile("event/unread-ones-go-with-the-queue", func(r *rig, w *raw) {
		fd, ch := w.channel()
		qp, scq := w.connected(16, fd)
		scq.arm(false)
		qp.write(scq)
		must.Get(qp.destroy())(r)
		resp, err := scq.destroy()
		r.say("destroying the queue: %s, %d completion events", errText(err), resp.CompEventsReported)
		r.sayNoEvent(ch)
	}),
	{"event/overrun", func(r *rig) {
		w, async := r.raw()
		scq := w.createCQ(sendQueue, 3, -1)
		rcq := w.createCQ(recvQueue, 16, -1)
		qp := w.createQP(queuePair, scq, rcq)
		qp.connect()
		for range scq.q.Cap() {
			qp.post(qp.rdmaWrite())
		}
		eventually(func() bool { n, _ := scq.c.Ready(); return n == scq.q.Cap() })
		r.sayNoEvent(async)
		qp.post(qp.rdmaWrite())
		r.sayEvent(async)
		qp.post(qp.rdmaWrite())
		r.sayEvent(async)
		n, err := scq.c.Ready()
		r.say("in the ring, all that fit: %t, %s", n == scq.q.Cap(), errText(err))
	}},
	{"event/drained-asked-for", func(r *rig) { r.drained(1) }},
	{"event/drained-not-asked-for", func(r *rig) { r.drained(0) }},
	{"event/none-on-a-failure", func(r *rig) {
		w, async := r.raw()
		qp, scq := w.connected(16, -1)
		wr := qp.rdmaWrite()
		wr.RKey ^= 0x5a00
		qp.post(wr)
		scq.take(1)
		r.sayNoEvent(async)
	}},
	{"event/none-on-the-first-packet", func(r *rig) {
		w, async := r.raw()
		qp, scq := w.connected(16, -1)
		qp.write(scq)
		r.sayNoEvent(async)
	}},
	{"event/after-the-device-file", func(r *rig) {
		w, async := r.raw()
		_, ch := w.channel()
		r.result("closing the device file", w.f.Close())
		r.result("reading the channel", errOf(ch.Read(r.withDeadline(), make([]byte, 64))))
		r.sayNoEvent(async)
		r.result("closing it", async.Close())
	}},
}

// drained goes to SQD with nothing outstanding.
func (r *rig) drained(notify uint8) {
	w, async := r.raw()
	qp, scq := w.connected(16, -1)
	qp.write(scq)
	r.result("to SQD", qp.modify(abi.ModifyQP{QPState: abi.QPSSQD, EnSQDAsyncNotify: notify}, abi.QPMaskState|abi.QPMaskEnSQDAsyncNotify))
	r.sayEvent(async)
	r.sayNoEvent(async)
	r.events("destroying it")(qp.destroy())
}
