package address

import (
	"errors"
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

// Explain adds the addresses of this machine's interfaces to the error of a
// system that has none with the address; others stay.
func Explain(err error) error {
	if !errors.Is(err, syscall.EADDRNOTAVAIL) {
		return err
	}
	addrs, _ := net.InterfaceAddrs()
	var list []string
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			list = append(list, p.Addr().String())
		}
	}
	return fmt.Errorf("%w; the interfaces have %s", err, strings.Join(list, ", "))
}
