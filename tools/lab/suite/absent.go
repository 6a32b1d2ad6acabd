//go:build !linux

package suite

import (
	"context"
	"net/netip"
	"syscall"
	"time"
)

// Other systems than Linux have Go's TCP and other projects' programs as
// references, and no guests.

func rawUDP(context.Context, int, time.Duration, partner) (float64, error) { return 0, syscall.ENOTSUP }

func udpSink(context.Context, int, func(netip.AddrPort) error) error { return syscall.ENOTSUP }

func read(uintptr, []byte) (int, error) { return 0, syscall.ENOTSUP }

// ServeNVMet fails.
func ServeNVMet(_, _, _ string) error { return syscall.ENOTSUP }

func setUpVeth(context.Context) (gid int, err error) { return 0, syscall.ENOTSUP }
