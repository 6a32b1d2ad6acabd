package emu

import "github.com/rdmashim/rdmashim/kshim"

// progresser is a Device that a program which polls can drive: what its own
// goroutines would do happens in the call.
type progresser interface {
	// Progress does what there is to do without blocking, and reports whether
	// it did something. It is harmless after Close.
	Progress() bool
}

var _ kshim.Progresser = (*uverbsFile)(nil)

// Progress lets the device work in this call. See kshim.Progresser.
func (f *uverbsFile) Progress() bool {
	if f.state.Load() != fileOpen {
		return false
	}
	p, ok := f.dev.Device.(progresser)
	return ok && p.Progress()
}
