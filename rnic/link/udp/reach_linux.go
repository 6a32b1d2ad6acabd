package udp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Reach implements link.Link.
func (s *socket) Reach(peer netip.Addr, patience time.Duration) error {
	err := s.ways.reach(peer.Unmap(), time.Now(), patience, func() error {
		return reach(s.local.Addr(), peer.Unmap(), s.caps.NetDev, s.caps.IfIndex, patience)
	})
	if err == nil {
		return nil
	}
	on := ""
	if s.caps.NetDev != "" { // lo that is down has no name here
		on = " on " + s.caps.NetDev
	}
	return fmt.Errorf("%v cannot be reached from %v%s: %w", peer.Unmap(), s.local.Addr(), on, err)
}

// reach looks for the way from local, an address of the interface netdev, to
// peer. A peer of which the system does not tell is taken to be reached: the
// question is about the calling thread's network namespace, which need not be
// the link's.
func reach(local, peer netip.Addr, netdev string, index int, patience time.Duration) error {
	fd, err := routeSocket(local, peer, index)
	switch {
	case errors.Is(err, errNoRoute):
		if own, e := interfaceFlags(netdev); e == nil && own&unix.IFF_UP == 0 {
			return fmt.Errorf("the interface is down: %w", syscall.ENODEV)
		}
		if local.IsLoopback() { // EINVAL, where there is a default route
			return fmt.Errorf("a loopback address is reached on this host only: %w", syscall.ENETUNREACH)
		}
		return err
	case err != nil:
		return nil
	}
	defer unix.Close(fd)
	if peer.WithZone("") == local.WithZone("") {
		return nil // also before the kernel has its route: that of a new IPv6 address comes later
	}
	ask, err := dialRoutes()
	if err != nil {
		return nil
	}
	defer ask.Close()
	way, err := ask.route(local, peer, 0)
	if err != nil || way.local {
		return nil
	}
	const wireless = unix.IFF_LOOPBACK | unix.IFF_NOARP // lo, dummy: addresses that leave by others
	if own, err := interfaceFlags(netdev); err == nil && own&wireless == 0 && way.out != index {
		if _, err := ask.route(local, peer, index); errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH) {
			return fmt.Errorf("no route leaves by the address's interface: %w", syscall.EHOSTUNREACH)
		}
	}
	return ask.awaitNeighbour(fd, way, patience)
}

// interfaceFlags asks for the IFF_ flags of an interface.
func interfaceFlags(name string) (uint16, error) {
	r, err := unix.NewIfreq(name)
	if err != nil {
		return 0, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	err = unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, r)
	return r.Uint16(), err
}

// routes is a socket of NETLINK_ROUTE, for requests with one answer.
type routes struct {
	fd     int
	answer [4096]byte
}

func dialRoutes() (*routes, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	return &routes{fd: fd}, nil
}

func (r *routes) Close() { _ = unix.Close(r.fd) }

// ask sends a request of a header and attributes, and returns the answer's
// payload, or the errno that was the answer.
func (r *routes) ask(kind uint16, header, attributes []byte) ([]byte, error) {
	b := make([]byte, unix.NLMSG_HDRLEN, 128)
	b = append(append(b, header...), attributes...)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], kind)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST)
	if err := unix.Sendto(r.fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, os.NewSyscallError("sendto", err)
	}
	n, _, err := unix.Recvfrom(r.fd, r.answer[:], unix.MSG_DONTWAIT) // the kernel answers within the call
	if err != nil {
		return nil, os.NewSyscallError("recvfrom", err)
	}
	all, err := syscall.ParseNetlinkMessage(r.answer[:n])
	if err != nil || len(all) == 0 || len(all[0].Data) < 4 {
		return nil, fmt.Errorf("an answer of netlink cannot be read: %w", syscall.EPROTO)
	}
	if all[0].Header.Type == unix.NLMSG_ERROR {
		return nil, syscall.Errno(-int32(binary.NativeEndian.Uint32(all[0].Data)))
	}
	return all[0].Data, nil
}

// attribute appends a struct rtattr.
func attribute(b []byte, kind uint16, value []byte) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofRtAttr+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	return append(b, value...)
}

// way is a route: its interface, and the neighbour that packets go to.
type way struct {
	local bool // to this host
	out   int
	hop   netip.Addr
}

// route asks for the route from local to peer; with an interface, only for one
// that leaves by it, and the errno of a lookup that finds none.
func (r *routes) route(local, peer netip.Addr, index int) (way, error) {
	head := make([]byte, unix.SizeofRtMsg)
	head[0], head[1], head[2] = unix.AF_INET, 32, 32 // rtm_family, rtm_dst_len, rtm_src_len
	if peer.Is6() {
		head[0], head[1], head[2] = unix.AF_INET6, 128, 128
	}
	attributes := attribute(nil, unix.RTA_DST, peer.AsSlice())
	attributes = attribute(attributes, unix.RTA_SRC, local.AsSlice())
	if index != 0 {
		// Without this IPv4 takes any address to be on an interface's link.
		binary.NativeEndian.PutUint32(head[8:], unix.RTM_F_FIB_MATCH)
		attributes = attribute(attributes, unix.RTA_OIF, binary.NativeEndian.AppendUint32(nil, uint32(index)))
	}
	b, err := r.ask(unix.RTM_GETROUTE, head, attributes)
	if err != nil {
		return way{}, err
	}
	if len(b) < unix.SizeofRtMsg {
		return way{}, syscall.EPROTO
	}
	w := way{local: b[7] == unix.RTN_LOCAL, hop: peer}
	for b = b[unix.SizeofRtMsg:]; len(b) >= unix.SizeofRtAttr; {
		n, kind := int(binary.NativeEndian.Uint16(b)), binary.NativeEndian.Uint16(b[2:])
		if n < unix.SizeofRtAttr || n > len(b) {
			return way{}, syscall.EPROTO
		}
		value := b[unix.SizeofRtAttr:n]
		switch {
		case kind == unix.RTA_OIF && len(value) == 4:
			w.out = int(binary.NativeEndian.Uint32(value))
		case kind == unix.RTA_VIA && len(value) > 2: // behind its family
			value = value[2:]
			fallthrough
		case kind == unix.RTA_GATEWAY:
			w.hop, _ = netip.AddrFromSlice(value)
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	return w, nil
}

// awaitNeighbour returns when the next hop's link address is known. If it is
// not, a datagram without payload to the discard port of a connected socket has
// the kernel look for it.
func (r *routes) awaitNeighbour(fd int, w way, patience time.Duration) error {
	const valid = unix.NUD_PERMANENT | unix.NUD_NOARP | unix.NUD_REACHABLE | unix.NUD_PROBE | unix.NUD_STALE | unix.NUD_DELAY
	head := make([]byte, unix.SizeofNdMsg)
	head[0] = unix.AF_INET // ndm_family
	if w.hop.Is6() {
		head[0] = unix.AF_INET6
	}
	binary.NativeEndian.PutUint32(head[4:], uint32(w.out))
	attributes := attribute(nil, unix.NDA_DST, w.hop.AsSlice())
	begin := time.Now()
	for pause := time.Millisecond; time.Since(begin) < patience; pause = min(2*pause, 64*time.Millisecond) {
		b, err := r.ask(unix.RTM_GETNEIGH, head, attributes)
		switch {
		case errors.Is(err, syscall.ENOENT):
		case err != nil || len(b) < unix.SizeofNdMsg || binary.NativeEndian.Uint16(b[8:])&valid != 0: // Linux before 5.0 answers for none
			return nil
		}
		if pause == time.Millisecond {
			_ = unix.Send(fd, nil, unix.MSG_DONTWAIT)
		}
		time.Sleep(pause)
	}
	if patience == 0 {
		return nil
	}
	return fmt.Errorf("the next hop %v does not answer: %w", w.hop, syscall.ETIMEDOUT)
}
