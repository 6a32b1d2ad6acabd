package udp

import (
	"net"
	"net/netip"
	"strconv"
)

const (
	ip4Headers = 20 + 8
	ip6Headers = 40 + 8
	// maxDatagram is the largest UDP payload that IPv4 can carry.
	maxDatagram = 65535 - ip4Headers
	// ethernetMTU is assumed for an address that no interface claims.
	ethernetMTU = 1500
)

// holder finds the interface that has addr. Linux answers on all of a loopback
// interface's prefix (127.0.0.0/8), not just on the address that is listed.
func holder(addr netip.Addr) (name string, index, mtu int) {
	ifs, err := net.Interfaces()
	if err != nil {
		return "", 0, ethernetMTU
	}
	var within *net.Interface
	for i := range ifs {
		addrs, err := ifs[i].Addrs()
		if err != nil {
			continue
		}
		if z := addr.Zone(); z != "" && z != ifs[i].Name && z != strconv.Itoa(ifs[i].Index) {
			continue
		}
		for _, a := range addrs {
			n, ok := a.(*net.IPNet)
			if !ok {
				continue
			}
			if ip, ok := netip.AddrFromSlice(n.IP); ok && ip.Unmap() == addr.WithZone("") {
				return ifs[i].Name, ifs[i].Index, ifs[i].MTU
			}
			if ifs[i].Flags&net.FlagLoopback != 0 && n.Contains(addr.AsSlice()) {
				within = &ifs[i]
			}
		}
	}
	if within != nil {
		return within.Name, within.Index, within.MTU
	}
	return "", 0, ethernetMTU
}

// payloadMTU is the UDP payload that fits an interface's MTU.
func payloadMTU(mtu int, v4 bool) int {
	if v4 {
		return min(mtu-ip4Headers, maxDatagram)
	}
	return min(mtu-ip6Headers, maxDatagram)
}
