//go:build !linux

package arena

import (
	"fmt"
	"syscall"
)

// Alloc returns an error that Is ENOTSUP: only Linux has sealed memory.
func Alloc(int) ([]byte, error) {
	return nil, fmt.Errorf("arena: not on this system: %w", syscall.ENOTSUP)
}

// Free returns false: no memory is from Alloc.
func Free([]byte) bool { return false }

// Find returns false.
func Find([]byte) (id, at uint64, ok bool) { return 0, 0, false }

// Keep does nothing.
func Keep() (stop func()) { return func() {} }
