package rnic

import (
	"context"
	"sync/atomic"

	"github.com/rdmashim/rdmashim/rnic/drive"
	"github.com/rdmashim/rdmashim/rnic/engine"
)

// Progress implements kshim.Driven, as News, Lead and Rouse do.
func (d *Device) Progress() bool { return d.drive.Progress() }

// Assist does work, which rings doorbells, answers the program that waits for
// it, and does as much of what follows as rnic/drive's does. The device's own
// goroutine is not woken for that: with one processor it would take the
// program's. So would a program that has much under way and polls. It is
// answered when it has a completion, when the caller is wanted elsewhere, or
// after some milliseconds.
func (d *Device) Assist(rounds int, wanted func() bool, work, answer func()) {
	if d.near != nil {
		d.near.StayAwake()
		defer d.near.MaySleep()
	}
	news := d.News()
	work()
	if d.polledNext() {
		d.drive.Stay(func() bool { return d.News() != news || wanted() })
	}
	answer()
	d.drive.Assist(rounds)
}

// manyBytes is as much under way as makes it worth while to keep a program
// waiting, in bytes: with less the call costs more than the transfer.
const manyBytes = 256 << 10

// polledNext reports whether the program that rang last is about to poll in
// vain: it posts whenever it has taken a completion out, has taken them all,
// and has several requests under way. Of two programs that ring at once one may
// be taken for the other.
func (d *Device) polledNext() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.qps[d.rang]
	if q == nil {
		return false
	}
	c := q.sendCQ
	waiting, err := c.prod.Waiting()
	before := q.polled
	q.polled = c.entries - uint32(waiting)
	rc, is := q.engine.(*engine.QP)
	return q.polled != before && is && err == nil && waiting == 0 && rc.Outstanding() > 1 && rc.Unacknowledged() >= manyBytes
}

// News is rnic/drive's.
func (d *Device) News() uint32 { return d.drive.News() }

// Lead is rnic/drive's.
func (d *Device) Lead(ctx context.Context, news uint32, wakes *atomic.Uint32, seen uint32) bool {
	return d.drive.Lead(ctx, news, wakes, seen)
}

// Attend is rnic/drive's.
func (d *Device) Attend(waits func() bool) { d.drive.Attend(waits) }

// Rouse is rnic/drive's.
func (d *Device) Rouse() { d.drive.Rouse() }

// driven is the device as its driver sees it.
type driven Device

var _ drive.Engine = (*driven)(nil)

// Receive implements drive.Engine.
func (v *driven) Receive() (int, error) { return (*Device)(v).receive() }

// CatchUp implements drive.Engine: it serves a stream's work requests and, as
// the program has not answered the messages before, sends their
// acknowledgements.
func (v *driven) CatchUp() bool {
	d := (*Device)(v)
	if !d.owed.Load() && d.mu.notes.empty() || !d.mu.TryLock() {
		return false
	}
	d.sendHeld()
	d.mu.Unlock()
	return true
}

// Owes implements drive.Engine.
func (v *driven) Owes() bool { return v.owed.Load() }

// SendOwed implements drive.Engine.
func (v *driven) SendOwed() {
	v.mu.Lock()
	(*Device)(v).sendHeld()
	v.mu.Unlock()
}

// InUse implements drive.Engine.
func (v *driven) InUse() bool { return v.near != nil && v.near.InUse() }

// Down implements drive.Engine.
func (v *driven) Down() bool { return v.down.Load() }

// Fail implements drive.Engine.
func (v *driven) Fail(err error) {
	d := (*Device)(v)
	d.mu.Lock()
	d.fail(err)
	d.serveChanged(0)
	d.mu.Unlock()
}
