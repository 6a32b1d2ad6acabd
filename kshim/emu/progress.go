package emu

import (
	"context"
	"sync/atomic"

	"github.com/rdmashim/rdmashim/kshim"
)

var (
	_ kshim.Progresser = (*uverbsFile)(nil)
	_ kshim.Attender   = (*uverbsFile)(nil)
)

// Progress lets the device work in this call. See kshim.Progresser.
func (f *uverbsFile) Progress() bool {
	if f.state.Load() != fileOpen {
		return false
	}
	p, ok := f.dev.Device.(kshim.Progresser)
	return ok && p.Progress()
}

// News counts the device's completions. See kshim.Attender.
func (f *uverbsFile) News() uint32 {
	if a, ok := f.dev.Device.(kshim.Attender); ok {
		return a.News()
	}
	return 0
}

// Attend lets the device work in this call, and waits. See kshim.Attender.
func (f *uverbsFile) Attend(ctx context.Context, news uint32, wakes *atomic.Uint32, seen uint32) bool {
	if f.state.Load() != fileOpen {
		return false
	}
	a, ok := f.dev.Device.(kshim.Attender)
	return ok && a.Attend(ctx, news, wakes, seen)
}

// Rouse ends an Attend. See kshim.Attender.
func (f *uverbsFile) Rouse() {
	if a, ok := f.dev.Device.(kshim.Attender); ok {
		a.Rouse()
	}
}
