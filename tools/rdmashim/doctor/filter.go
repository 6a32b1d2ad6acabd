package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"strings"
	"syscall"
)

// checkFirewall asks the packet filter about packets to the device, and from it.
func checkFirewall(e *exam) Check {
	if c, ok := e.noFilter(); ok {
		return c
	}
	var maybe *Verdict
	for _, p := range []Packet{{Hook: HookPrerouting, Dst: e.addr}, {Hook: HookInput, Dst: e.addr}, {Hook: HookOutput, Src: e.addr}, {Hook: HookPostrouting, Src: e.addr}} {
		v, err := e.sys.Filter(e.packet(p))
		if err != nil {
			return filterUnknown(err)
		}
		if v.Drop && v.Sure {
			return fail(e.allow(v), "packets to UDP port %d are dropped: %s", e.port, v.Rule)
		}
		if v.Drop && maybe == nil {
			maybe = &v
		}
	}
	if maybe != nil {
		return warn(e.allow(*maybe), "some packets to UDP port %d are dropped: %s", e.port, maybe.Rule)
	}
	if c, ok := e.unread(); ok {
		return c
	}
	return pass("UDP port %d passes, in and out", e.port)
}

// packet completes a packet to or from the device.
func (e *exam) packet(p Packet) Packet {
	p.V6, p.Port = e.addr.Is6(), e.port
	p.Src, p.Dst = p.Src.WithZone(""), p.Dst.WithZone("")
	p.NetDev, p.Index = e.dev.Name, e.dev.Index
	if e.o.Peer.IsValid() && !p.Src.IsValid() {
		p.Src = e.o.Peer
	}
	if e.o.Peer.IsValid() && !p.Dst.IsValid() {
		p.Dst = e.o.Peer
	}
	return p
}

// noFilter settles a check of the packet filter that cannot be asked.
func (e *exam) noFilter() (Check, bool) {
	switch {
	case e.sys.Filter == nil:
		return skip("this system's packet filter is not looked at"), true
	case e.dev == nil || !e.addr.IsValid():
		return skip("the network device or its address is not known"), true
	}
	return Check{}, false
}

func filterUnknown(err error) Check {
	if errors.Is(err, fs.ErrPermission) {
		return skip("only root (CAP_NET_ADMIN) may read the packet filter")
	}
	if absent(err) {
		return pass("nf_tables is not loaded: nothing is filtered by it")
	}
	return skip("the packet filter cannot be read: %v", err)
}

// unread is the check of rules that could not be read; ok says that there are such.
func (e *exam) unread() (Check, bool) {
	if e.sys.Unread == nil {
		return Check{}, false
	}
	if err := e.sys.Unread(); err != nil {
		return warn("install iptables, whose iptables-legacy-save prints them", "the tables of the old iptables are not known: %v", err), true
	}
	return Check{}, false
}

// absent: the kernel has no nf_tables.
func absent(err error) bool {
	return errors.Is(err, syscall.EPROTONOSUPPORT) || errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EINVAL)
}

// allow is the command that lets the packets pass, in the words of who made the
// rules.
func (e *exam) allow(v Verdict) string {
	table := strings.Fields(v.Rule)
	legacy := len(table) >= 5 && strings.HasSuffix(table[2], "(legacy)")
	switch {
	case strings.Contains(v.Rule, "firewalld"):
		return fmt.Sprintf("firewall-cmd --permanent --add-port=%d/udp; firewall-cmd --reload", e.port)
	case strings.Contains(v.Rule, "ufw"):
		return fmt.Sprintf("ufw allow %d/udp", e.port)
	case legacy:
		return e.legacyAccept(table)
	case len(table) >= 5 && table[0] == "table" && table[3] == "chain":
		return fmt.Sprintf("nft insert rule %s %s %s udp dport %d accept", table[1], table[2], strings.TrimSuffix(table[4], ":"), e.port)
	}
	return fmt.Sprintf("nft insert rule inet filter input udp dport %d accept", e.port)
}

// checkNAT looks for translation: the ICRC covers the addresses, so translated
// packets are dropped by who gets them.
func checkNAT(e *exam) Check {
	if e.loopback() {
		return skip("%s does not leave this machine", addressOf(e.addr))
	}
	if c, ok := e.behindNAT(); ok {
		return c
	}
	if c, ok := e.noFilter(); ok {
		return c
	}
	for _, p := range []Packet{{Hook: HookPostrouting, Src: e.addr, NAT: true}, {Hook: HookOutput, Src: e.addr, NAT: true}, {Hook: HookPrerouting, Dst: e.addr, NAT: true}, {Hook: HookInput, Dst: e.addr, NAT: true}} {
		v, err := e.sys.Filter(e.packet(p))
		if err != nil {
			return filterUnknown(err)
		}
		if !v.Rewrite {
			continue
		}
		fix := e.exempt(v, p.Hook)
		if v.Sure {
			return fail(fix, "packets of UDP port %d are translated, and the ICRC covers addresses: %s", e.port, v.Rule)
		}
		return warn(fix, "some packets of UDP port %d are translated, and the ICRC covers addresses: %s", e.port, v.Rule)
	}
	if c, ok := e.unread(); ok {
		return c
	}
	return pass("packets leave %s as they are", e.dev.Name)
}

// exempt is the command that keeps packets from being translated.
func (e *exam) exempt(v Verdict, h Hook) string {
	f := strings.Fields(v.Rule)
	if len(f) < 5 || f[0] != "table" {
		return "let the rule except UDP port " + fmt.Sprint(e.port)
	}
	if strings.HasSuffix(f[2], "(legacy)") {
		return e.legacyAccept(f)
	}
	return fmt.Sprintf("nft insert rule %s %s %s udp dport %d accept", f[1], f[2], strings.TrimSuffix(f[4], ":"), e.port)
}

// legacyAccept is the command for a table of the old iptables.
func (e *exam) legacyAccept(f []string) string {
	tool := "iptables-legacy"
	if f[1] == "ip6" {
		tool = "ip6tables-legacy"
	}
	return fmt.Sprintf("%s -t %s -I %s -p udp --dport %d -j ACCEPT", tool, strings.TrimSuffix(f[2], "(legacy)"), strings.TrimSuffix(f[4], ":"), e.port)
}

// behindNAT recognises a container's usual network: one end of a veth, a private
// address and a default route, in a network namespace of its own. What
// translates is then outside, where nothing can be seen.
func (e *exam) behindNAT() (Check, bool) {
	initial, known := e.initialNetNS()
	if e.dev == nil || !known || initial || e.dev.Kind != "veth" || !e.dev.Default || !e.addr.IsPrivate() || onLink(e.o.Peer, e) {
		return Check{}, false
	}
	return warn("give the container the machine's network (--network host), a macvlan or an ipvlan",
		"%s is one end of a veth in a namespace of its own, as containers have it: what leaves its machine is likely translated there, and the ICRC covers addresses", e.dev.Name), true
}

// onLink says whether an address is in the network around the device's.
func onLink(a netip.Addr, e *exam) bool {
	p := e.prefix()
	return a.IsValid() && p.IsValid() && p.Contains(a)
}
