package udp

import (
	"errors"
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
	fd, err := routeSocket(local, peer, index)
	if err != nil {
		return 0, fmt.Errorf("udp: route from %v to %v: %w", local, peer, err)
	}
	defer unix.Close(fd)
	level, option := unix.IPPROTO_IP, unix.IP_MTU
	if peer.Is6() {
		level, option = unix.IPPROTO_IPV6, unix.IPV6_MTU
	}
	mtu, err := unix.GetsockoptInt(fd, level, option)
	if err != nil {
		return 0, os.NewSyscallError("getsockopt", err)
	}
	return mtu, nil
}

// routeSocket opens a UDP socket that is connected from local to the discard
// port of peer. The error Is errNoRoute if the system has no route.
func routeSocket(local, peer netip.Addr, index int) (fd int, err error) {
	family := unix.AF_INET
	if peer.Is6() {
		family = unix.AF_INET6
	}
	if fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	// The source address may decide on the route.
	if err = unix.Bind(fd, sockaddr(local, 0, index)); err != nil {
		err = os.NewSyscallError("bind", err)
	} else if err = unix.Connect(fd, sockaddr(peer, 9, index)); err != nil { // sends nothing
		err = fmt.Errorf("%w: %w", errNoRoute, err)
	}
	if err != nil {
		_ = unix.Close(fd)
	}
	return fd, err
}

// errNoRoute is the system's refusal of a route, beside its errno.
var errNoRoute = errors.New("no route")

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
