package doctor

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/rnic/link/udp/ports"
	"github.com/rdmashim/rdmashim/uapi"
)

// checkRoute looks for a way to the peer, or to the own network.
func checkRoute(e *exam) Check {
	if c, ok := e.noRoutes(); ok {
		return c
	}
	dst, what := e.target()
	if e.loopback() && e.kind == soft {
		return e.peerOfLoopback()
	}
	if !dst.IsValid() {
		return warn(fmt.Sprintf("ip route add PREFIX dev %s src %s", e.netDevName(), e.addr), "%s has no network around it (%s) and no route leads on: no peer is reached", e.addr, what)
	}
	r, err := e.sys.Route(dst, netip.Addr{})
	if err != nil {
		return fail(fmt.Sprintf("ip route add %s/%d dev %s src %s", dst, dst.BitLen(), e.netDevName(), addressOf(e.addr)), "no route to %s: %v", what, err)
	}
	if mtu := e.info.MTU; r.MTU != 0 && mtu != 0 && r.MTU < mtu+headroom {
		return warn(fmt.Sprintf("ip route change %s/%d dev %s mtu %d, or open the device with mtu=%d", dst, dst.BitLen(), r.NetDev, mtu+headroom, max(pathMTU(r.MTU), 256)),
			"the route to %s carries %d bytes, less than the active MTU of %d needs: connecting is refused with EMSGSIZE", what, r.MTU, mtu)
	}
	via := "directly"
	if r.Gateway.IsValid() {
		via = "by " + r.Gateway.String()
	}
	if r.Local {
		return pass("%s is on this machine%s", what, e.carried(r))
	}
	return pass("%s is reached %s on %s%s", what, via, r.NetDev, e.carried(r))
}

// noRoutes settles the check of a route where there is none to look at.
func (e *exam) noRoutes() (Check, bool) {
	switch {
	case e.sys.Route == nil:
		return skip("this system does not tell its routes"), true
	case !e.addr.IsValid():
		return skip("the device has no address"), true
	case e.loopback() && !e.o.Peer.IsValid() && e.kind == soft:
		return pass("%s is on this machine only; other machines reach soft:ADDRESS of 'rdmashim devices'", e.addr), true
	case e.dev == nil:
		return skip("the network device is not known"), true
	case e.addr.IsLinkLocalUnicast():
		return skip("a link-local address reaches its own link without a route"), true
	case e.o.Peer.IsValid() && e.o.Peer.Is4() != e.addr.Is4():
		return fail("name the peer's address of the same family, or a device with another address", "the peer %s and the device's address %s are of two families", e.o.Peer, e.addr), true
	}
	return Check{}, false
}

// peerOfLoopback: a loopback address reaches peers on this machine only.
func (e *exam) peerOfLoopback() Check {
	r, err := e.sys.Route(e.o.Peer, netip.Addr{})
	switch {
	case err != nil:
		return fail(fmt.Sprintf("ip route add %s/%d dev NETDEV", e.o.Peer, e.o.Peer.BitLen()), "no route to the peer %s: %v", e.o.Peer, err)
	case !r.Local:
		return fail("open the device on the address that the route has: rdmashim doctor --peer "+e.o.Peer.String()+" "+softOn(r.Src),
			"%s is on this machine only, and the peer %s is reached by %s", e.addr, e.o.Peer, r.NetDev)
	}
	return pass("the peer %s is on this machine%s", e.o.Peer, e.carried(r))
}

// carried says whether a soft device's bytes go to the peer through shared
// memory, and if not, why not. It asks at RoCEv2's port.
func (e *exam) carried(r Route) string {
	if e.kind != soft || !e.o.Peer.IsValid() || e.sys.Near == nil {
		return ""
	}
	peer := netip.AddrPortFrom(e.o.Peer, uapi.RoCEPort)
	err := e.sys.Near(peer)
	switch {
	case err == nil && strings.Contains(e.o.Device, "shm=off"):
		return ", and would be reached through shared memory without shm=off"
	case err == nil:
		return ", and is reached through shared memory"
	case errors.Is(err, syscall.EPERM):
		return ", and is reached by UDP: its process belongs to another user"
	case !r.Local:
		return ", and by UDP: it is not in this network namespace"
	case e.holdsPort(peer):
		return ", and is reached by UDP: it is no soft device, or has shm=off"
	}
	return "; no device is open there"
}

// holdsPort reports whether a socket takes what is sent to an address.
func (e *exam) holdsPort(at netip.AddrPort) bool {
	sockets, _ := ports.Sockets(e.sys.Kernel.Root)
	return slices.ContainsFunc(sockets, func(s ports.Socket) bool { return s.Takes(at) })
}

// softOn is the name of the soft device on an address.
func softOn(a netip.Addr) string {
	if a.Is6() {
		return "'soft:[" + a.String() + "]'"
	}
	return "soft:" + addressOf(a)
}

// elsewhere are addresses that no network has (RFC 5737, RFC 3849): a route to
// them is a default route.
var elsewhere = map[bool]netip.Addr{true: netip.MustParseAddr("198.51.100.1"), false: netip.MustParseAddr("2001:db8::1")}

// target is an address that the device should reach: the peer, a neighbour in
// the network around its address, or the end of a default route.
func (e *exam) target() (netip.Addr, string) {
	if e.o.Peer.IsValid() {
		return e.o.Peer, "the peer " + e.o.Peer.String()
	}
	if p := e.prefix(); p.IsValid() && p.Bits() < p.Addr().BitLen()-1 {
		if n := e.neighbour(p); n.IsValid() {
			return n, p.Masked().String()
		}
	}
	away := elsewhere[e.addr.Is4()]
	if _, err := e.sys.Route(away, netip.Addr{}); err == nil {
		return away, "what the default route leads to"
	}
	return netip.Addr{}, e.prefix().String()
}

// prefix is the network around the device's address.
func (e *exam) prefix() netip.Prefix {
	if e.dev == nil {
		return netip.Prefix{}
	}
	for _, a := range e.dev.Addrs {
		if a.Prefix.Addr() == e.addr.WithZone("") {
			return a.Prefix
		}
	}
	return netip.Prefix{}
}

// neighbour is an address of a network, neither its first nor its last, that
// this machine has not itself.
func (e *exam) neighbour(p netip.Prefix) netip.Addr {
	own := map[netip.Addr]bool{}
	for _, d := range e.devs {
		for _, a := range d.Addrs {
			own[a.Prefix.Addr()] = true
		}
	}
	for a := p.Masked().Addr().Next(); p.Contains(a.Next()); a = a.Next() {
		if !own[a] {
			return a
		}
	}
	return netip.Addr{}
}

// way is by which network device packets to the target leave that have the
// device's address as source.
func (e *exam) way() (dst netip.Addr, what, netdev string, err error) {
	if dst, what = e.target(); !dst.IsValid() {
		return dst, what, "", nil
	}
	r, err := e.sys.Route(dst, e.addr.WithZone(""))
	if r.Local {
		return netip.Addr{}, what, "", err
	}
	return dst, what, r.NetDev, err
}

// checkSourceRoute looks whether packets with the device's address leave by its
// network device: of two devices in one network the kernel prefers one.
func checkSourceRoute(e *exam) Check {
	if e.loopback() {
		return skip("%s does not leave this machine", addressOf(e.addr))
	}
	if c, ok := e.noRoutes(); ok {
		return skip("%s", c.Detail)
	}
	dst, what, netdev, err := e.way()
	switch {
	case err != nil:
		return skip("no route to %s: %v", what, err)
	case !dst.IsValid():
		return skip("no way leads off this machine (%s)", what)
	case netdev != e.dev.Name:
		return warn(fmt.Sprintf("ip route add %s dev %s src %s table 100; ip rule add from %s table 100", routePrefix(e, dst), e.dev.Name, e.addr, e.addr),
			"packets from %s to %s leave by %s, not by %s", e.addr, what, netdev, e.dev.Name)
	}
	if other := e.sameNetwork(); other != nil && e.sysctl("ipv4", "arp_ignore", e.dev.Name) == 0 && e.addr.Is4() {
		return warn("sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2",
			"%s is in %s, too, and either answers ARP for the other's address: packets may come in by the wrong one", other.Name, e.prefix().Masked())
	}
	return pass("packets from %s to %s leave by %s", e.addr, what, netdev)
}

func routePrefix(e *exam, dst netip.Addr) string {
	if p := e.prefix(); p.IsValid() && p.Contains(dst) {
		return p.Masked().String()
	}
	return fmt.Sprintf("%s/%d", dst, dst.BitLen())
}

// sameNetwork is another network device in the network around the address.
func (e *exam) sameNetwork() *netlinkmgr.NetDev {
	p := e.prefix()
	for i := range e.devs {
		d := &e.devs[i]
		if d.Name == e.dev.Name || !d.Up || d.Loopback {
			continue
		}
		for _, a := range d.Addrs {
			if p.IsValid() && !a.Prefix.Addr().IsLinkLocalUnicast() && p.Contains(a.Prefix.Addr()) {
				return d
			}
		}
	}
	return nil
}

// sysctl is a setting that is the larger of "all" and of the network device's
// (Documentation/networking/ip-sysctl.rst); -1 when it is not known.
func (e *exam) sysctl(family, name, netdev string) int {
	value := -1
	for _, d := range []string{"all", netdev} {
		text, ok := e.text("proc/sys/net/" + family + "/conf/" + d + "/" + name)
		if ok && len(text) == 1 && text[0] >= '0' && text[0] <= '9' {
			value = max(value, int(text[0]-'0'))
		}
	}
	return value
}

// checkRPFilter looks whether the reverse path filter drops what peers send.
func checkRPFilter(e *exam) Check {
	switch {
	case e.loopback():
		return skip("it does not look at this machine's own packets")
	case !e.addr.IsValid():
		return skip("the device has no address")
	case e.dev == nil:
		return skip("the network device is not known")
	case !e.addr.Is4():
		return skip("it is of IPv4 only")
	}
	value := e.sysctl("ipv4", "rp_filter", e.dev.Name)
	switch value {
	case -1:
		return skip("this system does not tell its setting")
	case 0:
		return pass("off on %s", e.dev.Name)
	case 2:
		return pass("loose on %s", e.dev.Name)
	}
	if e.sys.Route == nil {
		return skip("strict on %s, and this system does not tell its routes", e.dev.Name)
	}
	fix := fmt.Sprintf("sysctl -w net.ipv4.conf.%s.rp_filter=2", strings.ReplaceAll(e.dev.Name, ".", "/"))
	dst, what, netdev, err := e.way()
	switch {
	case err != nil || !dst.IsValid():
		return warn(fix, "strict on %s, and no route leads back to peers: what they send is dropped", e.dev.Name)
	case netdev != e.dev.Name:
		return fail(fix, "strict on %s, but the way back to %s is by %s: what comes from there by %s is dropped", e.dev.Name, what, netdev, e.dev.Name)
	}
	return pass("strict on %s, and the way back to %s is by it", e.dev.Name, what)
}
