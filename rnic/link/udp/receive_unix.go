//go:build unix && (!linux || udpportable)

package udp

import (
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"
)

// receive reads a datagram without blocking.
func receive(fd uintptr, b []byte) (n int, from netip.AddrPort, err error) {
	n, sa, err := unix.Recvfrom(int(fd), b, 0)
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		from = netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		from = netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port))
	}
	return n, from, err
}

// readable reports whether receive may find something, be it an error.
func readable(fd uintptr) bool {
	poll := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll[:], 0)
	return n != 0 || err != nil
}

func isEmpty(err error) bool { return err == unix.EAGAIN || err == unix.EWOULDBLOCK }

// isOfSending holds for errors about a packet that was sent earlier, or that go
// away by themselves.
func isOfSending(err error) bool {
	for _, e := range []error{unix.EINTR, unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.ENETDOWN, unix.EMSGSIZE, unix.EPROTO, unix.ECONNRESET} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
