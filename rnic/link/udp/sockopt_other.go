//go:build !linux && !darwin

package udp

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"syscall"
)

// setOptions refuses: nothing is known of the IPv4 header that a socket of this
// system sends, which the ICRC covers.
func setOptions(uintptr, bool, Options) (granted, error) {
	return granted{}, fmt.Errorf("RoCEv2 over sockets is not supported on %s: %w", runtime.GOOS, syscall.ENOTSUP)
}

func setGroupInterface(uintptr, int) {}

func listenGroup(_, _ netip.AddrPort, _ int) (*net.UDPConn, error) { return nil, syscall.ENOTSUP }
