package udp

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Values of the ECN field (RFC 3168): ECT(0), the congestion mark, and all.
const ecnCapable, ecnCE, ecnMask = 2, 3, 3

// setOptions makes the socket send whole datagrams with DF set, and take ones
// without a UDP checksum over IPv6, as RoCEv2 devices send them: the ICRC takes
// its place. It asks for buffers, beyond the system's limit only with
// CAP_NET_ADMIN, and for segmentation offload.
func setOptions(fd uintptr, v4 bool, o Options) (granted, error) {
	s := int(fd)
	var err error
	if v4 {
		err = unix.SetsockoptInt(s, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
	} else {
		err = errors.Join(
			unix.SetsockoptInt(s, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO),
			unix.SetsockoptInt(s, unix.IPPROTO_UDP, unix.UDP_NO_CHECK6_RX, 1))
	}
	if err != nil {
		return granted{}, err
	}
	// Packets to multicast groups go as far as others.
	const hops = 64
	if v4 {
		_ = unix.SetsockoptInt(s, unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, hops)
	} else {
		_ = unix.SetsockoptInt(s, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, hops)
	}
	// Switches may mark packets of an ECN-capable transport instead of dropping
	// them, and received marks come with their packets. The ICRC leaves the
	// field out.
	if v4 {
		_ = unix.SetsockoptInt(s, unix.IPPROTO_IP, unix.IP_TOS, ecnCapable)
		_ = unix.SetsockoptInt(s, unix.IPPROTO_IP, unix.IP_RECVTOS, 1)
	} else {
		_ = unix.SetsockoptInt(s, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, ecnCapable)
		_ = unix.SetsockoptInt(s, unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS, 1)
	}
	ask := func(force, plain int) {
		if unix.SetsockoptInt(s, unix.SOL_SOCKET, force, o.Buffer) != nil {
			// A refusal is no error: the socket keeps the default.
			_ = unix.SetsockoptInt(s, unix.SOL_SOCKET, plain, o.Buffer)
		}
	}
	ask(unix.SO_SNDBUFFORCE, unix.SO_SNDBUF)
	ask(unix.SO_RCVBUFFORCE, unix.SO_RCVBUF)
	var g granted
	g.recv, _ = unix.GetsockoptInt(s, unix.SOL_SOCKET, unix.SO_RCVBUF)
	// An older kernel knows neither. UDP_SEGMENT is set for each send; 0 asks
	// whether it could be.
	g.offload.gso = !o.NoGSO && unix.SetsockoptInt(s, unix.IPPROTO_UDP, unix.UDP_SEGMENT, 0) == nil
	g.offload.gro = useGRO && !o.NoGRO && unix.SetsockoptInt(s, unix.IPPROTO_UDP, unix.UDP_GRO, 1) == nil
	return g, nil
}

// setGroupInterface has packets to groups of IPv6 leave by an interface; over
// IPv4 it is that of the socket's address.
func setGroupInterface(fd uintptr, index int) {
	_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, index)
}

// reuse lets sockets of several processes be bound to a group's address.
const reuse = unix.SO_REUSEADDR

// setGroupOptions has a group's socket receive what came by the interface on
// which it has joined, and over IPv6 datagrams without a checksum.
func setGroupOptions(fd int, v4 bool) {
	if v4 {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_ALL, 0)
		return
	}
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_ALL, 0)
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_NO_CHECK6_RX, 1)
}
