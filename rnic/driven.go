package rnic

import (
	"context"
	"sync/atomic"

	"github.com/rdmashim/rdmashim/rnic/drive"
)

// Progress implements kshim.Driven, as News, Lead and Rouse do.
func (d *Device) Progress() bool { return d.drive.Progress() }

// Assist does work, which rings doorbells, and then as much of what follows as
// rnic/drive's does. The device's own goroutine is not woken for that: with one
// processor it would take the program's.
func (d *Device) Assist(rounds int, work func()) {
	if d.near != nil {
		d.near.StayAwake()
		defer d.near.MaySleep()
	}
	work()
	d.drive.Assist(rounds)
}

// News is rnic/drive's.
func (d *Device) News() uint32 { return d.drive.News() }

// Lead is rnic/drive's.
func (d *Device) Lead(ctx context.Context, news uint32, wakes *atomic.Uint32, seen uint32) bool {
	return d.drive.Lead(ctx, news, wakes, seen)
}

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
