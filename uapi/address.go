package uapi

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/uapi/internal/device"
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
// wildcard stands for the IPv4 addresses among them. They are looked for when
// there is a wildcard.
func onThisHost(list []netip.AddrPort, host func() []netip.Addr) []netip.AddrPort {
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
		for _, a := range host() {
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
func (d *Device) hostAddrs() []netip.Addr {
	own := d.chosen.addr.Addr()
	list := []netip.Addr{own}
	spec := &d.where.Spec
	if gids, err := d.verbs.GIDs(uint8(d.chosen.port)); err == nil {
		for _, g := range gids {
			list = append(list, g.Addr.Unmap())
		}
	}
	list = append(list, opened.addrs(func(s *device.Spec) bool {
		return (s.Kind == device.Sim) == (spec.Kind == device.Sim) && s.Net == spec.Net
	})...)
	if own.IsLoopback() && spec.Kind != device.Sim {
		list = append(list, device.LoopbackListeners()...)
	}
	if spec.Kind != device.Host { // its one address is of one IP version
		list = slices.DeleteFunc(list, func(a netip.Addr) bool { return a.Is4() != own.Is4() })
	}
	return list
}

// addrs are the addresses of the open devices that are meant.
func (l *deviceList) addrs(meant func(*device.Spec) bool) []netip.Addr {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []netip.Addr
	for _, d := range l.list {
		if meant(&d.where.Spec) {
			list = append(list, d.chosen.addr.Addr())
		}
	}
	return list
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
