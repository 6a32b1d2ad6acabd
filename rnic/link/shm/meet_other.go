//go:build !linux

package shm

import (
	"fmt"
	"net/netip"
	"syscall"

	"github.com/rdmashim/rdmashim/rnic/link"
)

type place struct{}

func (place) drain(int) bool { return false }

// Wrap returns an error that Is ENOTSUP: only Linux has abstract sockets and
// sealed memory.
func Wrap(link.Link, Options) (*Link, error) {
	return nil, fmt.Errorf("shm: not on this system: %w", syscall.ENOTSUP)
}

func unmap([]byte) {}

// Meet implements link.Near.
func (*Link) Meet(netip.AddrPort) uint64 { return 0 }
