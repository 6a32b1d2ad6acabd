package doctor

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// The old iptables keeps tables of its own in the kernel, which its own tool reads.
// What that prints is made into nf_tables' expressions, and goes the same way.

// legacyFamily is what iptables has twice.
type legacyFamily struct {
	names  string   // the kernel's list of tables
	tools  []string // what prints them
	family nftables.TableFamily
}

var legacyFamilies = []legacyFamily{
	{"/proc/self/net/ip_tables_names", []string{"iptables-legacy-save", "iptables-save"}, nftables.TableFamilyIPv4},
	{"/proc/self/net/ip6_tables_names", []string{"ip6tables-legacy-save", "ip6tables-save"}, nftables.TableFamilyIPv6},
}

// hasLegacy says whether the old iptables has tables.
func hasLegacy() bool {
	return slices.ContainsFunc(legacyFamilies, func(f legacyFamily) bool {
		b, err := os.ReadFile(f.names)
		return err == nil && len(bytes.TrimSpace(b)) > 0
	})
}

// addLegacy adds the tables of the old iptables.
func (r *ruleset) addLegacy() error {
	for _, f := range legacyFamilies {
		b, err := os.ReadFile(f.names)
		if err != nil || len(bytes.TrimSpace(b)) == 0 {
			continue
		}
		text, err := legacySave(f.tools)
		if err != nil {
			return err
		}
		if err := r.parseLegacy(f.family, text); err != nil {
			return err
		}
	}
	return nil
}

// legacySave runs the first tool that there is.
func legacySave(tools []string) (string, error) {
	for _, name := range tools {
		for _, path := range []string{name, filepath.Join("/usr/sbin", name), filepath.Join("/sbin", name)} {
			if _, err := exec.LookPath(path); err != nil {
				continue
			}
			out, err := exec.Command(path).Output()
			if err != nil {
				return "", fmt.Errorf("%s: %w", name, err)
			}
			return string(out), nil
		}
	}
	return "", fmt.Errorf("%s is not installed", tools[0])
}

// hooks of iptables' own chains.
var legacyHooks = map[string]*nftables.ChainHook{
	"PREROUTING": nftables.ChainHookPrerouting, "INPUT": nftables.ChainHookInput, "FORWARD": nftables.ChainHookForward,
	"OUTPUT": nftables.ChainHookOutput, "POSTROUTING": nftables.ChainHookPostrouting,
}

var legacyPriorities = map[string]*nftables.ChainPriority{
	"raw": nftables.ChainPriorityRaw, "mangle": nftables.ChainPriorityMangle, "nat": nftables.ChainPriorityNATDest,
	"filter": nftables.ChainPriorityFilter, "security": nftables.ChainPrioritySecurity,
}

// legacyParser reads what iptables-save prints.
type legacyParser struct {
	r      *ruleset
	family nftables.TableFamily
	table  *nftables.Table
	sets   int
}

// parseLegacy reads the output of iptables-save (iptables-save(8)): a line *TABLE,
// lines :CHAIN POLICY, lines -A CHAIN RULE, and COMMIT.
func (r *ruleset) parseLegacy(family nftables.TableFamily, text string) error {
	p := &legacyParser{r: r, family: family}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line == "COMMIT":
		case line[0] == '*':
			p.table = &nftables.Table{Name: line[1:] + "(legacy)", Family: family}
		case p.table == nil:
			return fmt.Errorf("iptables-save: %q stands before any table", line)
		case line[0] == ':':
			p.chain(line[1:])
		case strings.HasPrefix(line, "-A "):
			p.rule(words(line)[1:])
		default:
			return fmt.Errorf("iptables-save: %q is not understood", line)
		}
	}
	return nil
}

// words splits a line where white space is not in quotes.
func words(line string) (list []string) {
	var w strings.Builder
	in, quoted, escaped := false, false, false
	for _, c := range line {
		switch {
		case escaped:
			w.WriteRune(c)
			escaped = false
		case c == '\\' && quoted:
			escaped = true
		case c == '"':
			quoted, in = !quoted, true
		case c == ' ' && !quoted:
			if in {
				list = append(list, w.String())
			}
			w.Reset()
			in = false
		default:
			w.WriteRune(c)
			in = true
		}
	}
	if in {
		list = append(list, w.String())
	}
	return list
}

func (p *legacyParser) chain(text string) {
	name, rest, _ := strings.Cut(text, " ")
	c := &nftables.Chain{Name: name, Table: p.table}
	kind := strings.TrimSuffix(p.table.Name, "(legacy)")
	if hook := legacyHooks[name]; hook != nil && !strings.HasPrefix(rest, "-") {
		policy := nftables.ChainPolicyAccept
		if strings.HasPrefix(rest, "DROP") {
			policy = nftables.ChainPolicyDrop
		}
		c.Hooknum, c.Policy, c.Type = hook, &policy, nftables.ChainTypeFilter
		if kind == "nat" {
			c.Type = nftables.ChainTypeNAT
		}
		if c.Priority = legacyPriorities[kind]; c.Priority == nil {
			c.Priority = nftables.ChainPriorityFilter
		}
	}
	p.r.chains = append(p.r.chains, c)
}

// rule reads CHAIN and the words of its rule.
func (p *legacyParser) rule(w []string) {
	if len(w) == 0 {
		return
	}
	key := nameOf(p.table, w[0])
	rule := &nftables.Rule{Table: p.table, Handle: uint64(len(p.r.rules[key]) + 1)} // as iptables numbers them
	rest := w[1:]
	for len(rest) > 0 {
		invert := rest[0] == "!"
		if invert {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			break
		}
		option, value := rest[0], ""
		if len(rest) > 1 {
			value = rest[1]
		}
		if option == "-j" || option == "-g" {
			rule.Exprs = append(rule.Exprs, p.target(option, value)...)
			break // what follows is the target's
		}
		rule.Exprs = append(rule.Exprs, p.condition(option, value, invert)...)
		if rest = rest[1:]; option == "--comment" && len(rest) > 0 {
			rest = rest[1:]
		}
		for len(rest) > 0 && !strings.HasPrefix(rest[0], "-") && rest[0] != "!" {
			rest = rest[1:] // the option's values, of which there may be none
		}
	}
	p.r.rules[key] = append(p.r.rules[key], rule)
}

// unknown is a condition that may hold or not.
var unknown = []expr.Any{&expr.Limit{}}

func op(invert bool) expr.CmpOp {
	if invert {
		return expr.CmpOpNeq
	}
	return expr.CmpOpEq
}

var legacyMatches = map[string]bool{"udp": true, "tcp": true, "multiport": true, "conntrack": true, "state": true, "comment": true}

var protocols = map[string]byte{"udp": unix.IPPROTO_UDP, "tcp": unix.IPPROTO_TCP, "icmp": unix.IPPROTO_ICMP, "ipv6-icmp": unix.IPPROTO_ICMPV6, "icmpv6": unix.IPPROTO_ICMPV6, "udplite": unix.IPPROTO_UDPLITE, "sctp": unix.IPPROTO_SCTP, "esp": unix.IPPROTO_ESP, "ah": unix.IPPROTO_AH}

func (p *legacyParser) condition(option, value string, invert bool) []expr.Any {
	switch option {
	case "-m":
		if legacyMatches[value] {
			return nil
		}
	case "--comment":
		return nil
	case "-p":
		if n, ok := protocols[value]; ok {
			return []expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, &expr.Cmp{Op: op(invert), Register: 1, Data: []byte{n}}}
		}
	case "-i", "-o":
		key := expr.MetaKeyIIFNAME
		if option == "-o" {
			key = expr.MetaKeyOIFNAME
		}
		name, prefix := strings.CutSuffix(value, "+")
		data := []byte(name)
		if !prefix && len(name) < unix.IFNAMSIZ {
			data = append(data, make([]byte, unix.IFNAMSIZ-len(name))...)
		}
		return []expr.Any{&expr.Meta{Key: key, Register: 1}, &expr.Cmp{Op: op(invert), Register: 1, Data: data}}
	case "-s", "-d":
		return p.address(option == "-s", value, invert)
	case "--dport", "--dports", "--destination-port", "--destination-ports":
		return p.ports(value, invert)
	case "--ctstate", "--state":
		return state(value, invert)
	}
	return unknown
}

// address matches a source or destination network, ADDRESS[/BITS or MASK].
func (p *legacyParser) address(source bool, value string, invert bool) []expr.Any {
	text, bits, _ := strings.Cut(value, "/")
	a, err := netip.ParseAddr(text)
	if err != nil || a.Is4() != (p.family == nftables.TableFamilyIPv4) {
		return unknown
	}
	mask := net.CIDRMask(a.BitLen(), a.BitLen())
	if n, err := strconv.Atoi(bits); err == nil {
		mask = net.CIDRMask(n, a.BitLen())
	} else if m, err := netip.ParseAddr(bits); err == nil && m.BitLen() == a.BitLen() {
		mask = m.AsSlice()
	}
	if mask == nil {
		return unknown
	}
	offset, length := uint32(12), uint32(a.BitLen()/8)
	if a.Is6() {
		offset = 8
	}
	if !source {
		offset += length
	}
	want := slices.Clone(a.AsSlice())
	for i := range want {
		want[i] &= mask[i]
	}
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: length},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: length, Mask: mask, Xor: make([]byte, length)},
		&expr.Cmp{Op: op(invert), Register: 1, Data: want},
	}
}

// ports matches destination ports: 53, 4700:4800, or several with commas. They
// become a set of ranges.
func (p *legacyParser) ports(value string, invert bool) []expr.Any {
	var set []nftables.SetElement
	for part := range strings.SplitSeq(value, ",") {
		low, high, ranged := strings.Cut(part, ":")
		if !ranged {
			high = low
		}
		from, err1 := strconv.ParseUint(low, 10, 16)
		to, err2 := strconv.ParseUint(high, 10, 16)
		if err1 != nil || err2 != nil {
			return unknown
		}
		set = append(set, nftables.SetElement{Key: binary.BigEndian.AppendUint16(nil, uint16(from))})
		if to < 65535 {
			set = append(set, nftables.SetElement{Key: binary.BigEndian.AppendUint16(nil, uint16(to)+1), IntervalEnd: true})
		}
	}
	set = append(set, nftables.SetElement{Key: []byte{0, 0}, IntervalEnd: true}) // makes it one of ranges
	slices.SortStableFunc(set, func(a, b nftables.SetElement) int {
		switch c := bytes.Compare(a.Key, b.Key); {
		case c != 0 || a.IntervalEnd == b.IntervalEnd:
			return c
		case a.IntervalEnd:
			return -1 // where one range ends and the next begins
		}
		return 1
	})
	p.sets++
	name := fmt.Sprintf("ports%d", p.sets)
	p.r.sets[nameOf(p.table, name)] = set
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Lookup{SourceRegister: 1, SetName: name, Invert: invert},
	}
}

var legacyStates = map[string]uint32{
	"INVALID": expr.CtStateBitINVALID, "ESTABLISHED": expr.CtStateBitESTABLISHED, "RELATED": expr.CtStateBitRELATED,
	"NEW": expr.CtStateBitNEW, "UNTRACKED": expr.CtStateBitUNTRACKED,
}

func state(value string, invert bool) []expr.Any {
	mask := uint32(0)
	for name := range strings.SplitSeq(value, ",") {
		bit, ok := legacyStates[name]
		if !ok {
			return unknown
		}
		mask |= bit
	}
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: binary.NativeEndian.AppendUint32(nil, mask), Xor: make([]byte, 4)},
		&expr.Cmp{Op: op(!invert), Register: 1, Data: make([]byte, 4)},
	}
}

// target is what the rule does; most targets only mark or log.
func (p *legacyParser) target(option, name string) []expr.Any {
	switch name {
	case "ACCEPT":
		return []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}}
	case "DROP":
		return []expr.Any{&expr.Verdict{Kind: expr.VerdictDrop}}
	case "RETURN":
		return []expr.Any{&expr.Verdict{Kind: expr.VerdictReturn}}
	case "REJECT":
		return []expr.Any{&expr.Reject{}}
	case "QUEUE", "NFQUEUE":
		return []expr.Any{&expr.Queue{}}
	case "MASQUERADE", "SNAT", "DNAT", "REDIRECT", "NETMAP":
		return []expr.Any{&expr.Masq{}}
	}
	for _, c := range p.r.chains {
		if c.Name == name && nameOf(c.Table, name) == nameOf(p.table, name) {
			kind := expr.VerdictJump
			if option == "-g" {
				kind = expr.VerdictGoto
			}
			return []expr.Any{&expr.Verdict{Kind: kind, Chain: name}}
		}
	}
	return nil
}
