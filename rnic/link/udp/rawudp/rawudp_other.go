//go:build !linux

package rawudp

import (
	"fmt"
	"runtime"
	"syscall"
)

// Pair is two sockets and the memory of both sides.
type Pair struct{}

// New refuses: this system has no GSO.
func New(Config) (*Pair, error) {
	return nil, fmt.Errorf("rawudp: GSO is not known on %s: %w", runtime.GOOS, syscall.ENOTSUP)
}

func (*Pair) Close() error   { return nil }
func (*Pair) Region() []byte { return nil }
func (*Pair) Source() []byte { return nil }
func (*Pair) Move(int) error { return syscall.ENOTSUP }
