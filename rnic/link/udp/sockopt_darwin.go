package udp

import "golang.org/x/sys/unix"

// setOptions asks for DF and for buffers.
func setOptions(fd uintptr, v4 bool, o Options) (granted, error) {
	s := int(fd)
	var err error
	if v4 {
		// Nothing says which identification goes with it. Soft devices solve
		// for it; others may refuse the packets, and the README says so.
		err = unix.SetsockoptInt(s, unix.IPPROTO_IP, unix.IP_DONTFRAG, 1)
	} else {
		err = unix.SetsockoptInt(s, unix.IPPROTO_IPV6, unix.IPV6_DONTFRAG, 1)
	}
	if err != nil {
		return granted{}, err
	}
	// darwin refuses a size above kern.ipc.maxsockbuf as a whole.
	for size := o.Buffer; size >= 64<<10; size /= 2 {
		if unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_RCVBUF, size) == nil {
			break
		}
	}
	for size := o.Buffer; size >= 64<<10; size /= 2 {
		if unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_SNDBUF, size) == nil {
			break
		}
	}
	var g granted
	g.recv, _ = unix.GetsockoptInt(s, unix.SOL_SOCKET, unix.SO_RCVBUF)
	return g, nil
}

// setGroupInterface has packets to groups of IPv6 leave by an interface.
func setGroupInterface(fd uintptr, index int) {
	_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, index)
}

// reuse lets sockets of several processes be bound to a group's address.
const reuse = unix.SO_REUSEPORT

func setGroupOptions(int, bool) {}
