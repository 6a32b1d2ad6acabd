package device

import (
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"

	"github.com/rdmashim/rdmashim/rnic/link/udp/ports"
)

// Loopbacks are the addresses that a plain soft device may take. Only Linux
// answers on all of 127.0.0.0/8.
func Loopbacks() []netip.Addr {
	n := 1
	if runtime.GOOS == "linux" {
		n = 16
	}
	addrs := make([]netip.Addr, n)
	for i := range addrs {
		addrs[i] = netip.AddrFrom4([4]byte{127, 0, 0, byte(1 + i)})
	}
	return addrs
}

// roceSockets are the UDP sockets of this machine; known is false where the
// system does not tell.
type roceSockets struct {
	list  []ports.Socket
	known bool
}

func readSockets() (s roceSockets) {
	s.list, s.known = ports.Sockets(os.DirFS("/"))
	return s
}

// taken reports whether packets to the address's RoCE port get to a socket,
// bound whether the socket is at that very address.
func (h *roceSockets) taken(a netip.Addr) bool {
	at := netip.AddrPortFrom(a, RoCEPort)
	return slices.ContainsFunc(h.list, func(s ports.Socket) bool { return s.Takes(at) })
}

func (h *roceSockets) bound(a netip.Addr) bool {
	at := netip.AddrPortFrom(a, RoCEPort)
	return slices.ContainsFunc(h.list, func(s ports.Socket) bool { return s.Local == at })
}

// LoopbackListeners are the loopback addresses at which a listener may be:
// 127.0.0.1, those of the others that plain soft devices take at which there is
// a device, and ::1.
func LoopbackListeners() []netip.Addr {
	sockets := readSockets()
	var list []netip.Addr
	for i, a := range Loopbacks() {
		if i == 0 || sockets.bound(a) {
			list = append(list, a)
		}
	}
	return append(list, netip.IPv6Loopback())
}

// SilentLast moves those of this host's addresses to the end at which no device
// takes packets: an attempt there would only use time up.
func SilentLast(list []netip.AddrPort) []netip.AddrPort {
	if len(list) < 2 {
		return list
	}
	isSilent := silentAddrs()
	var first, last []netip.AddrPort
	for _, to := range list {
		if isSilent(to.Addr()) {
			last = append(last, to)
		} else {
			first = append(first, to)
		}
	}
	return append(first, last...)
}

// Silent reports whether an address is this host's and no device takes packets
// there.
func Silent(a netip.Addr) bool { return silentAddrs()(a) }

// silentAddrs looks at the machine once, for Silent.
func silentAddrs() func(netip.Addr) bool {
	sockets := readSockets()
	if !sockets.known {
		return func(netip.Addr) bool { return false }
	}
	local := localAddrs()
	return func(a netip.Addr) bool {
		return (a.IsLoopback() || slices.Contains(local, a.WithZone(""))) && !sockets.taken(a)
	}
}

// localAddrs are the addresses of this machine's interfaces.
func localAddrs() []netip.Addr {
	var list []netip.Addr
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if ip, ok := prefixAddr(a); ok {
			list = append(list, ip)
		}
	}
	return list
}

// prefixAddr is the address of an interface's prefix.
func prefixAddr(a net.Addr) (netip.Addr, bool) {
	if prefix, ok := a.(*net.IPNet); ok {
		ip, ok := netip.AddrFromSlice(prefix.IP)
		return ip.Unmap(), ok
	}
	return netip.Addr{}, false
}
