package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Ruleset is a command's listing of the packet filter.
type Ruleset struct {
	Command string // "nft", or the tool of old tables: "iptables-legacy"
	Text    string // of 'nft list ruleset' or iptables-save
}

// rule is a line of a ruleset.
type rule struct {
	command, table, chain string
	base                  bool // of a chain that packets to or from this machine enter first
	text                  string
}

func (r *rule) String() string {
	return fmt.Sprintf("%s table %s chain %s: %s", r.command, r.table, r.chain, r.text)
}

var (
	nftTable  = regexp.MustCompile(`^table (.+) \{$`)
	nftChain  = regexp.MustCompile(`^chain (\S+) \{$`)
	nftHook   = regexp.MustCompile(`hook (ingress|prerouting|input|output|postrouting) .*?(policy \w+)?;?$`)
	savedRule = regexp.MustCompile(`^-A (\S+) (.*)$`)
)

// rules takes a ruleset apart.
func (s *Ruleset) rules() (list []rule) {
	at := rule{command: s.Command}
	add := func(text string) {
		at.text = text
		list = append(list, at)
	}
	inChain := false
	for line := range strings.Lines(s.Text) {
		line = strings.TrimSpace(line)
		if m := nftTable.FindStringSubmatch(line); m != nil {
			at.table = m[1]
		} else if m := nftChain.FindStringSubmatch(line); m != nil {
			at.chain, at.base, inChain = m[1], false, true
		} else if line == "}" {
			inChain = false
		} else if m := nftHook.FindStringSubmatch(line); m != nil && inChain {
			at.base = true
			add(m[2])
		} else if inChain && !strings.HasPrefix(line, "type ") && line != "" {
			add(line)
		} else if table, ok := strings.CutPrefix(line, "*"); ok {
			at.table = table
		} else if policy, ok := strings.CutPrefix(line, ":"); ok && len(strings.Fields(policy)) > 1 {
			f := strings.Fields(policy)
			at.chain, at.base = f[0], ownChains[f[0]]
			add("policy " + strings.ToLower(f[1]))
		} else if m := savedRule.FindStringSubmatch(line); m != nil {
			at.chain, at.base = m[1], ownChains[m[1]]
			add(m[2])
		}
	}
	return list
}

// ownChains are iptables' chains for packets that this machine sends and gets.
var ownChains = map[string]bool{"PREROUTING": true, "INPUT": true, "OUTPUT": true, "POSTROUTING": true}

var (
	remarks   = regexp.MustCompile(`(comment|prefix) "[^"]*"|--(comment|log-prefix) ("[^"]*"|\S+)`)
	drops     = regexp.MustCompile(`(?i)\b(drop|reject)\b`)
	dropsAll  = regexp.MustCompile(`(?i)^(counter packets \d+ bytes \d+ |-j )?(policy )?(drop|reject)\b`)
	accepts   = regexp.MustCompile(`(?i)\baccept\b`)
	translate = regexp.MustCompile(`(?i)\b(masquerade|snat|dnat|redirect|netmap)\b`)
	ofTCP     = regexp.MustCompile(`\btcp\b`)
	portsIn   = regexp.MustCompile(`dports? (\{[^}]*\}|\S+)`)
	sourceIn  = regexp.MustCompile(`(?:saddr|-s) ([0-9a-f:.]+(?:/\d+)?)`)
	netdevIn  = regexp.MustCompile(`(?:^|[^!] )(?:[io]if(?:name)?|-[io]) "?([\w.@-]+)`)
)

// names says whether a rule names a UDP port as destination, alone or in a
// range.
func (r *rule) names(port uint16) bool {
	m := portsIn.FindStringSubmatch(r.text)
	if m == nil || ofTCP.MatchString(r.text) {
		return false
	}
	for _, item := range strings.FieldsFunc(m[1], func(c rune) bool { return strings.ContainsRune("{}, ", c) }) {
		first, last, ranged := strings.Cut(strings.ReplaceAll(item, ":", "-"), "-")
		if !ranged {
			last = first
		}
		low, err1 := strconv.Atoi(first)
		high, err2 := strconv.Atoi(last)
		if err1 == nil && err2 == nil && int(port) >= low && int(port) <= high {
			return true
		}
	}
	return false
}

// readRules lists the packet filter's rules, or is the check where that cannot
// be.
func (e *exam) readRules() (list []rule, c Check, ok bool) {
	switch {
	case e.sys.Rules == nil:
		return nil, skip("this system's packet filter is not looked at"), false
	case e.dev == nil || !e.addr.IsValid():
		return nil, skip("the network device or its address is not known"), false
	case !e.m.Capable(capNetAdmin):
		return nil, skip("only root (CAP_NET_ADMIN) may read the packet filter"), false
	}
	sets, err := e.sys.Rules(e.ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, skip("no command lists the packet filter here: install nftables"), false
	case err != nil:
		return nil, skip("the packet filter cannot be listed: %v", err), false
	}
	for _, s := range sets {
		for _, r := range s.rules() {
			r.text = strings.TrimSpace(remarks.ReplaceAllString(r.text, ""))
			list = append(list, r)
		}
	}
	return list, Check{}, true
}

// checkFirewall lists the rules that drop packets to the port, or all that no
// rule accepts. Whether a packet meets them only the kernel says, when it
// traces one.
func checkFirewall(e *exam) Check {
	if e.loopback() {
		return skip("what filters packets on %s shows in loopback", e.netDevName())
	}
	list, c, ok := e.readRules()
	if !ok {
		return c
	}
	accepted := map[string]bool{} // tables that accept the port
	var named, found []*rule
	for i := range list {
		r := &list[i]
		key := r.command + r.table
		switch {
		case r.names(e.port) && accepts.MatchString(r.text):
			accepted[key] = true
			named = append(named, r)
		case r.names(e.port) && drops.MatchString(r.text) && !accepted[key],
			r.base && dropsAll.MatchString(r.text):
			found = append(found, r)
		}
	}
	found = slices.DeleteFunc(found, func(r *rule) bool { return !r.names(e.port) && accepted[r.command+r.table] })
	switch {
	case len(found) > 0:
		return warn(e.accept(list, found[0])+"   (which rule a packet meets: "+e.trace(found[0])+")",
			"UDP port %d may be dropped: %s", e.port, joined(found))
	case len(named) > 0:
		return pass("UDP port %d is accepted: %s", e.port, joined(named))
	}
	return pass("no rule names UDP port %d, and none drops by default", e.port)
}

func joined(list []*rule) string {
	var texts []string
	for _, r := range list {
		texts = append(texts, r.String())
	}
	return strings.Join(texts, "; ")
}

// accept is the command that lets the packets pass, in the words of the program
// that made the rules.
func (e *exam) accept(all []rule, r *rule) string {
	switch {
	case strings.Contains(r.table, "firewalld"):
		return fmt.Sprintf("firewall-cmd --permanent --add-port=%d/udp; firewall-cmd --reload", e.port)
	case slices.ContainsFunc(all, func(r rule) bool { return strings.HasPrefix(r.chain, "ufw-") }):
		return fmt.Sprintf("ufw allow %d/udp", e.port)
	case r.command != nft:
		return fmt.Sprintf("%s -t %s -I %s -p udp --dport %d -j ACCEPT", r.command, r.table, r.chain, e.port)
	}
	return fmt.Sprintf("nft insert rule %s %s udp dport %d accept", r.table, r.chain, e.port)
}

const nft = "nft"

// trace is the command that has the kernel tell which rules a packet meets.
func (e *exam) trace(r *rule) string {
	if r.command != nft {
		return fmt.Sprintf("%s -t raw -I PREROUTING -p udp --dport %d -j TRACE; dmesg -w", r.command, e.port)
	}
	return fmt.Sprintf("nft 'add table inet rdmashim; add chain inet rdmashim trace { type filter hook prerouting priority raw - 1; }; add rule inet rdmashim trace udp dport %d meta nftrace set 1'; nft monitor trace; nft delete table inet rdmashim", e.port)
}

// checkNAT lists the rules that translate addresses of the device's packets:
// the ICRC covers addresses, so the receiver drops translated packets.
func checkNAT(e *exam) Check {
	if e.loopback() {
		return skip("%s does not leave this machine", addressOf(e.addr))
	}
	if c, ok := e.behindNAT(); ok {
		return c
	}
	list, c, ok := e.readRules()
	if !ok {
		return c
	}
	excepted := map[string]bool{} // chains that let the port pass before
	var found []*rule
	for i := range list {
		r := &list[i]
		key := r.command + r.table + " " + r.chain
		if r.names(e.port) && accepts.MatchString(r.text) {
			excepted[key] = true
		}
		if translate.MatchString(r.text) && !excepted[key] && e.concerned(r) {
			found = append(found, r)
		}
	}
	if len(found) > 0 {
		return warn(e.accept(list, found[0])+"   (which rule a packet meets: "+e.trace(found[0])+")",
			"packets of UDP port %d may be translated, and the ICRC covers addresses: %s", e.port, joined(found))
	}
	return pass("no rule translates what leaves %s", e.dev.Name)
}

// concerned says whether a rule may match the device's packets, by protocol,
// port, source and network device.
func (e *exam) concerned(r *rule) bool {
	if ofTCP.MatchString(r.text) || portsIn.MatchString(r.text) && !r.names(e.port) {
		return false
	}
	if m := sourceIn.FindStringSubmatch(r.text); m != nil {
		p, err := netip.ParsePrefix(m[1])
		if a, err2 := netip.ParseAddr(m[1]); err2 == nil {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err == nil && !p.Contains(e.addr.WithZone("")) {
			return false
		}
	}
	m := netdevIn.FindStringSubmatch(r.text)
	return m == nil || m[1] == e.dev.Name
}

// behindNAT recognises a container's usual network: one end of a veth, a
// private address and a default route, in a network namespace of its own. The
// translator is then outside, where nothing can be seen.
func (e *exam) behindNAT() (Check, bool) {
	initial, known := e.initialNetNS()
	p := e.prefix()
	onLink := e.o.Peer.IsValid() && p.IsValid() && p.Contains(e.o.Peer)
	if e.dev == nil || !known || initial || e.dev.Kind != "veth" || !e.dev.Default || !e.addr.IsPrivate() || onLink {
		return Check{}, false
	}
	return warn("give the container the machine's network (--network host), a macvlan or an ipvlan",
		"%s is one end of a veth in a namespace of its own, as containers have it: what leaves its machine is likely translated there, and the ICRC covers addresses", e.dev.Name), true
}
