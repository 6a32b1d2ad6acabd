package udp

import (
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// routeMTU asks for the MTU of the route from local to peer, both of one
// family: the route's, else its interface's, or the one that a router on the
// way has reported. index is the interface of link-local addresses.
func routeMTU(local, peer netip.Addr, index int) (int, error) {
	if !peer.IsValid() || local.Is4() != peer.Is4() {
		return 0, fmt.Errorf("udp: route from %v to %v: %w", local, peer, unix.EAFNOSUPPORT)
	}
	family, level, option := unix.AF_INET, unix.IPPROTO_IP, unix.IP_MTU
	if peer.Is6() {
		family, level, option = unix.AF_INET6, unix.IPPROTO_IPV6, unix.IPV6_MTU
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	// The source address may decide on the route.
	if err := unix.Bind(fd, sockaddr(local, 0, index)); err != nil {
		return 0, fmt.Errorf("udp: route from %v: %w", local, os.NewSyscallError("bind", err))
	}
	if err := unix.Connect(fd, sockaddr(peer, 9, index)); err != nil { // sends nothing
		return 0, fmt.Errorf("udp: route from %v to %v: %w", local, peer, os.NewSyscallError("connect", err))
	}
	mtu, err := unix.GetsockoptInt(fd, level, option)
	if err != nil {
		return 0, os.NewSyscallError("getsockopt", err)
	}
	return mtu, nil
}

func sockaddr(a netip.Addr, port, index int) unix.Sockaddr {
	if a.Is4() {
		return &unix.SockaddrInet4{Port: port, Addr: a.As4()}
	}
	sa := &unix.SockaddrInet6{Port: port, Addr: a.As16()}
	if a.IsLinkLocalUnicast() {
		sa.ZoneId = uint32(index)
	}
	return sa
}
