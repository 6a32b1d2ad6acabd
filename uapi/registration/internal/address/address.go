package address

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
)

// Parse reads a transport's Addr, the literal address of one interface. Others
// are EINVAL; kind is the transport's word.
func Parse(kind, addr string) (netip.Addr, error) {
	a, err := netip.ParseAddr(addr)
	if err != nil || a.IsUnspecified() || a.IsMulticast() {
		return a, fmt.Errorf("%s: Addr %q is not the IP address of an interface: %w", kind, addr, syscall.EINVAL)
	}
	return a.Unmap(), nil
}

// Interfaces lists the addresses of this machine's interfaces.
func Interfaces() string {
	addrs, _ := net.InterfaceAddrs()
	var list []string
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			list = append(list, p.Addr().String())
		}
	}
	return strings.Join(list, ", ")
}
