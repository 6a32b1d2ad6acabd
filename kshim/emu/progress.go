package emu

import (
	"context"
	"sync/atomic"

	"github.com/rdmashim/rdmashim/kshim"
)

var _ kshim.Driven = (*uverbsFile)(nil)

// driven is the device, if programs may drive it, or nil.
func (f *uverbsFile) driven() kshim.Driven {
	d, _ := f.dev.Device.(kshim.Driven)
	if f.state.Load() != fileOpen {
		return nil
	}
	return d
}

// Progress implements kshim.Driven.
func (f *uverbsFile) Progress() bool {
	d := f.driven()
	return d != nil && d.Progress()
}

// Assistant is a device, or an open file of one, that a thread of the kernel's
// works for. Assist does work, which rings doorbells, gives the program its
// answer, and does the device's work that is there, rounds times at most. The
// answer comes late to a program that would poll meanwhile, unless wanted says
// that the thread is. The device's own goroutine is not kept away.
type Assistant interface {
	Assist(rounds int, wanted func() bool, work, answer func())
}

// Assist implements Assistant.
func (f *uverbsFile) Assist(rounds int, wanted func() bool, work, answer func()) {
	if d, ok := f.driven().(Assistant); ok {
		d.Assist(rounds, wanted, work, answer)
		return
	}
	work()
	answer()
}

// News implements kshim.Driven.
func (f *uverbsFile) News() uint32 {
	if d := f.driven(); d != nil {
		return d.News()
	}
	return 0
}

// Lead implements kshim.Driven.
func (f *uverbsFile) Lead(ctx context.Context, news uint32, wakes *atomic.Uint32, seen uint32) bool {
	d := f.driven()
	return d != nil && d.Lead(ctx, news, wakes, seen)
}

// Rouse implements kshim.Driven. A Lead may be under way when the file has just
// been closed.
func (f *uverbsFile) Rouse() {
	if d, ok := f.dev.Device.(kshim.Driven); ok {
		d.Rouse()
	}
}

// Attendable is an open file of events. Attend reads by as, which is the file
// or stands before it. While there is no event it drives the device, for some
// milliseconds, unless others do; the host is told of no event meanwhile.
type Attendable interface {
	Attend(ctx context.Context, as kshim.File, buf []byte) (int, error)
}

// Attend implements Attendable.
func (f *eventFile) Attend(ctx context.Context, as kshim.File, buf []byte) (int, error) {
	if d, ok := f.owner.driven().(interface{ Attend(waits func() bool) }); ok && !f.async {
		f.queue.hush(true)
		defer f.queue.hush(false)
		d.Attend(f.queue.empty)
	}
	return as.Read(ctx, buf)
}
