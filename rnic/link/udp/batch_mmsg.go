//go:build linux && !udpportable

package udp

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// This file holds what the system calls sendmmsg and recvmmsg need in memory.
// golang.org/x/net's batches would allocate an address per message.

// useGRO: this receiver can take merged datagrams apart.
const useGRO = true

// envelope holds the fields that a message header points to, apart from the
// data: an address, and control messages. A sent one is UDP_SEGMENT's 16 bits.
// Received ones are UDP_GRO's int, and the IP header's byte with the ECN field,
// as IP_TOS's byte or IPV6_TCLASS's int; of an entry of the error queue the
// error, and what a datagram has.
type envelope struct {
	addr    unix.RawSockaddrInet6 // or an Inet4
	control struct {
		hdr  unix.Cmsghdr
		data [128]byte
	}
}

// attach points a header's name at e.
func (e *envelope) attach(h *unix.Msghdr) { h.Name = (*byte)(unsafe.Pointer(&e.addr)) }

// setSegments makes the message one whose data is cut into datagrams of size
// bytes.
func (e *envelope) setSegments(h *unix.Msghdr, size int) {
	c := &e.control
	c.hdr.Level, c.hdr.Type = unix.SOL_UDP, unix.UDP_SEGMENT
	c.hdr.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(c.data[:], uint16(size))
	h.Control = (*byte)(unsafe.Pointer(c))
	h.SetControllen(unix.CmsgSpace(2))
}

// wantOptions makes room for the options that come with a message.
func (e *envelope) wantOptions(h *unix.Msghdr) {
	h.Control = (*byte)(unsafe.Pointer(&e.control))
	h.SetControllen(int(unsafe.Sizeof(e.control)))
}

// options returns the segment size of a received message, 0 if it is one
// datagram, and whether it met congestion: its ECN field is CE.
func (e *envelope) options(h *unix.Msghdr) (segment int, marked bool) {
	for c, data, b := nextControl(e.controls(h)); c != nil; c, data, b = nextControl(b) {
		switch {
		case c.Level == unix.SOL_UDP && c.Type == unix.UDP_GRO && len(data) >= 4:
			segment = int(int32(binary.NativeEndian.Uint32(data)))
		case c.Level == unix.IPPROTO_IP && c.Type == unix.IP_TOS:
			marked = data[0]&ecnMask == ecnCE
		case c.Level == unix.IPPROTO_IPV6 && c.Type == unix.IPV6_TCLASS && len(data) >= 4:
			marked = binary.NativeEndian.Uint32(data)&ecnMask == ecnCE
		}
	}
	return segment, marked
}

// controls are the bytes of a received message's control messages.
func (e *envelope) controls(h *unix.Msghdr) []byte {
	b := unsafe.Slice((*byte)(unsafe.Pointer(&e.control)), int(unsafe.Sizeof(e.control)))
	return b[:min(int(h.Controllen), len(b))]
}

// nextControl takes the first control message of b apart: its header and data,
// and the bytes behind it; nil when there is none.
func nextControl(b []byte) (c *unix.Cmsghdr, data, rest []byte) {
	if len(b) <= unix.CmsgLen(0) {
		return nil, nil, nil
	}
	c = (*unix.Cmsghdr)(unsafe.Pointer(&b[0])) // aligned, since CmsgSpace is
	n := int(c.Len)
	if n <= unix.CmsgLen(0) || n > len(b) {
		return nil, nil, nil
	}
	data = b[unix.CmsgLen(0):n]
	return c, data, b[min(unix.CmsgSpace(len(data)), len(b)):]
}

// errno returns the error of an entry that was read, and whether an ICMP
// message brought it.
func (e *envelope) errno(h *unix.Msghdr) (errno unix.Errno, icmp bool) {
	for c, data, b := nextControl(e.controls(h)); c != nil; c, data, b = nextControl(b) {
		if c.Level == unix.IPPROTO_IP && c.Type == unix.IP_RECVERR || c.Level == unix.IPPROTO_IPV6 && c.Type == unix.IPV6_RECVERR {
			return extendedError(data)
		}
	}
	return 0, false
}

// sendmmsg and recvmmsg return how many messages they moved. They do not block,
// nor tell the Go scheduler that they might (monitor_mmsg.go).
func sendmmsg(fd uintptr, msgs []unix.Mmsghdr) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&msgs[0])), uintptr(len(msgs)), unix.MSG_DONTWAIT, 0, 0)
	return int(n), errno
}

func recvmmsg(fd uintptr, msgs []unix.Mmsghdr, flags uintptr) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&msgs[0])), uintptr(len(msgs)), unix.MSG_DONTWAIT|flags, 0, 0)
	return int(n), errno
}

// readable reports whether there is something to read, or an error to fetch.
func readable(fd uintptr) bool {
	poll, now := unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}, unix.Timespec{}
	n, _, _ := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&poll)), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
	return n != 0 // also when it fails
}

// overflows is how many buffers the socket dropped because its receive buffer
// was full: the count that SO_RXQ_OVFL would add to each message. waiting is
// how much that buffer holds, in bytes as the kernel charges them.
func overflows(fd uintptr) (n, waiting uint32, ok bool) {
	var info [unix.SK_MEMINFO_DROPS + 1]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.RawSyscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info[0])), uintptr(unsafe.Pointer(&size)), 0)
	return info[unix.SK_MEMINFO_DROPS], info[unix.SK_MEMINFO_RMEM_ALLOC], errno == 0 && int(size) >= int(unsafe.Sizeof(info))
}

// point makes v describe b, which is not empty.
func point(v *unix.Iovec, b []byte) {
	v.Base = &b[0]
	v.SetLen(len(b))
}

// pointed is what v describes.
func pointed(v *unix.Iovec) []byte { return unsafe.Slice(v.Base, v.Len) }

// putAddr encodes a peer and returns the length of the socket address.
func putAddr(sa *unix.RawSockaddrInet6, peer netip.AddrPort, zone uint32) uint32 {
	a := peer.Addr().Unmap()
	if a.Is4() {
		sa4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(sa))
		*sa4 = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: swap(peer.Port()), Addr: a.As4()}
		return unix.SizeofSockaddrInet4
	}
	*sa = unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: swap(peer.Port()), Addr: a.As16()}
	if a.IsLinkLocalUnicast() {
		sa.Scope_id = zone
	}
	return unix.SizeofSockaddrInet6
}

// getAddr decodes a sender. The zone of a link-local address is left out: a
// link lives on one interface, and GIDs have none.
func getAddr(sa *unix.RawSockaddrInet6) netip.AddrPort {
	switch sa.Family {
	case unix.AF_INET:
		sa4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(sa))
		return netip.AddrPortFrom(netip.AddrFrom4(sa4.Addr), swap(sa4.Port))
	case unix.AF_INET6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr), swap(sa.Port))
	}
	return netip.AddrPort{}
}

// swap turns a port from the byte order of this machine to that of the network,
// or back.
func swap(port uint16) uint16 {
	var b [2]byte
	binary.NativeEndian.PutUint16(b[:], port)
	return binary.BigEndian.Uint16(b[:])
}

// scope is the interface that a link-local peer is on: the link's own.
func scope(index int, local netip.Addr) uint32 {
	if n, err := strconv.ParseUint(local.Zone(), 10, 32); err == nil {
		return uint32(n)
	}
	return uint32(index)
}
