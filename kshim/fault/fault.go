package fault

import (
	"runtime/debug"
	"syscall"
)

// Begin lets bad accesses of the calling goroutine panic. It returns the
// setting for End to restore.
func Begin() (before bool) { return debug.SetPanicOnFault(true) }

// End is deferred. It restores the setting from before Begin, and sets *err to
// fault after a bad access. Any other panic passes.
func End(before bool, err *error, fault error) {
	debug.SetPanicOnFault(before)
	r := recover()
	if r == nil {
		return
	}
	if _, bad := r.(interface{ Addr() uintptr }); !bad {
		panic(r)
	}
	*err = fault
}

// Copy copies src to dst, which has room for it; one of them is a program's. It
// returns EFAULT after a bad access, when a part may have been copied. As a
// kernel's own copies it is invisible to the race detector: programs share
// buffers among calls that they do not look at.
//
//go:norace
func Copy(dst, src []byte) (err error) {
	defer End(Begin(), &err, syscall.EFAULT)
	//lint:ignore S1001 copy is instrumented in any case
	for i := range src {
		dst[i] = src[i]
	}
	return nil
}
