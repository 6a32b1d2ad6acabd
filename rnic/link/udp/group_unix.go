//go:build linux || darwin

package udp

import (
	"errors"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// listenGroup binds a socket to a group's address, which other sockets may
// bind, too, and joins the group on the interface of the address local. Package
// net would bind to all addresses, which one device of a host can at best.
func listenGroup(group, local netip.AddrPort, index int) (*net.UDPConn, error) {
	family, v4 := unix.AF_INET6, group.Addr().Is4()
	if v4 {
		family = unix.AF_INET
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	f := os.NewFile(uintptr(fd), group.String())
	defer f.Close()
	unix.CloseOnExec(fd)
	var to unix.Sockaddr = &unix.SockaddrInet6{Addr: group.Addr().As16(), Port: int(group.Port()), ZoneId: uint32(index)}
	if v4 {
		to = &unix.SockaddrInet4{Addr: group.Addr().As4(), Port: int(group.Port())}
	}
	err = errors.Join(
		os.NewSyscallError("setsockopt", unix.SetsockoptInt(fd, unix.SOL_SOCKET, reuse, 1)),
		os.NewSyscallError("bind", unix.Bind(fd, to)),
	)
	setGroupOptions(fd, v4)
	if v4 {
		m := &unix.IPMreq{Multiaddr: group.Addr().As4(), Interface: local.Addr().As4()}
		err = errors.Join(err, os.NewSyscallError("setsockopt", unix.SetsockoptIPMreq(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, m)))
	} else {
		m := &unix.IPv6Mreq{Multiaddr: group.Addr().As16(), Interface: uint32(index)}
		err = errors.Join(err, os.NewSyscallError("setsockopt", unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, m)))
	}
	if err != nil {
		return nil, err
	}
	conn, err := net.FilePacketConn(f)
	if err != nil {
		return nil, err
	}
	return conn.(*net.UDPConn), nil
}
