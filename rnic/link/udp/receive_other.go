//go:build !unix

package udp

import (
	"net/netip"
	"syscall"
)

// Listen refuses such systems.

func receive(uintptr, []byte) (int, netip.AddrPort, error) {
	return 0, netip.AddrPort{}, syscall.ENOTSUP
}

func readable(uintptr) bool  { return true }
func isEmpty(error) bool     { return false }
func isOfSending(error) bool { return false }
