package uapi

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// lookupIP resolves host names.
var lookupIP = net.DefaultResolver.LookupNetIP

// resolve reads HOST:PORT, HOST being an address or a name, PORT a number or
// the name of a service. An empty host is the IPv6 wildcard. Addresses of IPv4
// come first, as GIDs are chosen.
func resolve(ctx context.Context, addr string) ([]netip.AddrPort, error) {
	if a, err := netip.ParseAddrPort(addr); err == nil {
		return []netip.AddrPort{netip.AddrPortFrom(a.Addr().Unmap(), a.Port())}, nil
	}
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, errs.Explain(syscall.EINVAL, "%v; write HOST:PORT", err)
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "tcp", service)
	if err != nil {
		return nil, errs.Explain(syscall.EINVAL, "port %q is neither 0 … 65535 nor a service: %v", service, err)
	}
	if host == "" {
		return []netip.AddrPort{netip.AddrPortFrom(netip.IPv6Unspecified(), uint16(port))}, nil
	}
	found, err := lookupIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	var list []netip.AddrPort
	for _, a := range found {
		if to := netip.AddrPortFrom(a.Unmap(), uint16(port)); !slices.Contains(list, to) {
			list = append(list, to)
		}
	}
	slices.SortStableFunc(list, func(a, b netip.AddrPort) int { return family(a.Addr()) - family(b.Addr()) })
	return list, nil
}

// withAnyPort makes HOST:0 of HOST, and leaves HOST:PORT.
func withAnyPort(addr string) string {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return net.JoinHostPort(strings.Trim(addr, "[]"), "0")
	}
	return addr
}

// family is 4 or 6.
func family(a netip.Addr) int {
	if a.Is4() {
		return 4
	}
	return 6
}

// onThisHost puts addresses of this host in the place of wildcards: an IPv4
// wildcard stands for the IPv4 addresses among them.
func onThisHost(list []netip.AddrPort, host []netip.Addr) []netip.AddrPort {
	var all []netip.AddrPort
	add := func(a netip.Addr, port uint16) {
		if at := netip.AddrPortFrom(a.Unmap(), port); !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	for _, to := range list {
		if !to.Addr().IsUnspecified() {
			add(to.Addr(), to.Port())
			continue
		}
		for _, a := range host {
			if a.Is4() || to.Addr().Is6() {
				add(a, to.Port())
			}
		}
	}
	return all
}

// hostAddrs are the addresses of this host that the device reaches: its own
// first, then those of the process's other devices on the same network, then,
// from a loopback address, the loopback addresses.
func (c *Context) hostAddrs() []netip.Addr {
	own := c.chosen.addr.Addr()
	list := []netip.Addr{own}
	spec := &c.backend.spec
	if gids, err := c.verbs.GIDs(uint8(c.chosen.port)); err == nil {
		for _, g := range gids {
			list = append(list, g.Addr.Unmap())
		}
	}
	list = append(list, opened.addrs(func(s *deviceSpec) bool {
		return (s.kind == kindSim) == (spec.kind == kindSim) && s.net == spec.net
	})...)
	if own.IsLoopback() && spec.kind != kindSim {
		list = append(list, loopbackListeners()...)
	}
	if spec.kind != kindHost { // its one address is of one IP version
		list = slices.DeleteFunc(list, func(a netip.Addr) bool { return a.Is4() != own.Is4() })
	}
	return list
}

// addrs are the addresses of the open devices that are meant.
func (l *contextList) addrs(meant func(*deviceSpec) bool) []netip.Addr {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []netip.Addr
	for _, c := range l.list {
		if meant(&c.backend.spec) {
			list = append(list, c.chosen.addr.Addr())
		}
	}
	return list
}

// loopbackListeners are the loopback addresses at which a listener may be:
// 127.0.0.1, those of the others that plain soft devices take at which there is
// a device, and ::1.
func loopbackListeners() []netip.Addr {
	held := heldPorts()
	var list []netip.Addr
	for i, a := range loopbacks() {
		if i == 0 || held.bound(a) {
			list = append(list, a)
		}
	}
	return append(list, netip.IPv6Loopback())
}

// silentLast moves those of this host's addresses to the end at which no device
// takes packets: an attempt there would only use time up.
func silentLast(list []netip.AddrPort) []netip.AddrPort {
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

// silent reports whether an address is this host's and no device takes packets
// there.
func silent(a netip.Addr) bool { return silentAddrs()(a) }

// silentAddrs looks at the machine once, for silent.
func silentAddrs() func(netip.Addr) bool {
	held := heldPorts()
	if !held.known {
		return func(netip.Addr) bool { return false }
	}
	local := localAddrs()
	return func(a netip.Addr) bool {
		return (a.IsLoopback() || slices.Contains(local, a.WithZone(""))) && !held.taken(a)
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

// minShare is the least time that an attempt gets while there are more
// addresses, as net.Dialer has it; a full round of a handshake takes a second
// after a loss.
const minShare = 2 * time.Second

// share returns one attempt's part of the time that ctx has left, with n
// attempts to go.
func share(ctx context.Context, n int) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if n == 1 || !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, max(time.Until(end)/time.Duration(n), minShare))
}
