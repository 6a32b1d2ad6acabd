package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// ruleset is what nf_tables has, as its netlink interface tells it.
type ruleset struct {
	conn   *nftables.Conn
	chains []*nftables.Chain
	rules  map[chainName][]*nftables.Rule
	sets   map[chainName][]nftables.SetElement // of sets: their table and name
	unread error                               // why the old iptables' tables are missing
}

// chainName is a chain, or a set, of a table.
type chainName struct {
	family      nftables.TableFamily
	table, name string
}

func nameOf(t *nftables.Table, name string) chainName { return chainName{t.Family, t.Name, name} }

// newFilter gives a function that asks the packet filter about packets, and one
// that says what of it could not be read. The rules are read once.
func newFilter() (ask func(Packet) (Verdict, error), unread func() error) {
	read := sync.OnceValues(readRuleset)
	ask = func(p Packet) (Verdict, error) {
		r, err := read()
		if err != nil {
			return Verdict{}, err
		}
		return r.verdict(p), nil
	}
	return ask, func() error {
		r, err := read()
		if err != nil {
			return nil // which asking says
		}
		return r.unread
	}
}

func readRuleset() (*ruleset, error) {
	conn, err := nftables.New()
	if err != nil {
		return nil, err
	}
	r := &ruleset{conn: conn, rules: map[chainName][]*nftables.Rule{}, sets: map[chainName][]nftables.SetElement{}}
	if r.chains, err = conn.ListChains(); err != nil && (!absent(err) || !hasLegacy()) {
		return nil, err
	}
	for _, c := range r.chains {
		list, err := conn.GetRules(c.Table, c)
		if err != nil {
			return nil, fmt.Errorf("rules of table %s chain %s: %w", c.Table.Name, c.Name, err)
		}
		r.rules[nameOf(c.Table, c.Name)] = list
	}
	r.unread = r.addLegacy()
	return r, nil
}

// elements are a set's; nil where it cannot be read.
func (r *ruleset) elements(t *nftables.Table, name string) []nftables.SetElement {
	key := nameOf(t, name)
	if list, ok := r.sets[key]; ok {
		return list
	}
	if r.conn == nil {
		return nil
	}
	list, err := r.conn.GetSetElements(&nftables.Set{Table: t, Name: name})
	if err != nil {
		list = nil
	}
	r.sets[key] = list
	return list
}

var hookNumbers = map[Hook]nftables.ChainHook{
	HookPrerouting: unix.NF_INET_PRE_ROUTING, HookInput: unix.NF_INET_LOCAL_IN,
	HookOutput: unix.NF_INET_LOCAL_OUT, HookPostrouting: unix.NF_INET_POST_ROUTING,
}

// bases are the base chains that see a packet, in their order.
func (r *ruleset) bases(p Packet) []*nftables.Chain {
	family := nftables.TableFamilyIPv4
	if p.V6 {
		family = nftables.TableFamilyIPv6
	}
	var list []*nftables.Chain
	for _, c := range r.chains {
		switch {
		case c.Hooknum == nil || c.Priority == nil || (c.Type == nftables.ChainTypeNAT) != p.NAT:
		case c.Table.Family == nftables.TableFamilyNetdev:
			if p.Hook == HookPrerouting && *c.Hooknum == unix.NF_NETDEV_INGRESS && c.Device == p.NetDev {
				list = append(list, c)
			}
		case (c.Table.Family == nftables.TableFamilyINet || c.Table.Family == family) && *c.Hooknum == hookNumbers[p.Hook]:
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b *nftables.Chain) int {
		early := func(c *nftables.Chain) int {
			if c.Table.Family == nftables.TableFamilyNetdev {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(early(a), early(b)), cmp.Compare(*a.Priority, *b.Priority))
	})
	return list
}

// verdict sends a packet through the base chains of its hook. One that accepts
// it leaves it to the next; one that drops it is the end.
func (r *ruleset) verdict(p Packet) Verdict {
	var possible Verdict
	for _, c := range r.bases(p) {
		w := &walk{r: r, p: p, base: c}
		end := w.chain(c, true, 0)
		if end == fellThrough && c.Policy != nil && *c.Policy == nftables.ChainPolicyDrop {
			w.drop("policy drop", w.sure)
		}
		if w.found.Sure {
			return w.found
		}
		if (w.found.Drop || w.found.Rewrite) && possible.Rule == "" {
			possible = w.found
		}
	}
	return possible
}

// walk is a packet's way through a base chain. What a rule asks may be known of
// the packet or not: where it is not, both ways are gone, and what follows is
// not sure.
type walk struct {
	r     *ruleset
	p     Packet
	base  *nftables.Chain
	steps int  // rules looked at
	sure  bool // nothing doubtful has ended the way of some packets
	found Verdict
}

// ending is how a chain lets go of a packet.
type ending int

const (
	fellThrough ending = iota // to the caller's next rule, or the policy
	decided                   // accepted, dropped or translated
)

const (
	// maxJumps is the kernel's NFT_JUMP_STACK_SIZE.
	maxJumps = 16
	// maxSteps bounds a walk: where conditions are not known, every way through
	// the chains is gone.
	maxSteps = 200_000
)

func (w *walk) where(what string) string {
	return fmt.Sprintf("table %s %s chain %s: %s", familyName(w.base.Table.Family), w.base.Table.Name, w.base.Name, what)
}

func familyName(f nftables.TableFamily) string {
	switch f {
	case nftables.TableFamilyINet:
		return "inet"
	case nftables.TableFamilyIPv4:
		return "ip"
	case nftables.TableFamilyIPv6:
		return "ip6"
	case nftables.TableFamilyNetdev:
		return "netdev"
	}
	return "bridge"
}

func (w *walk) drop(what string, sure bool) { w.note(Verdict{Drop: true, Sure: sure}, what) }

func (w *walk) rewrite(what string, sure bool) { w.note(Verdict{Rewrite: true, Sure: sure}, what) }

// note keeps the first thing that befalls the packet.
func (w *walk) note(v Verdict, what string) {
	if w.found.Rule == "" || v.Sure {
		v.Rule = w.where(what)
		w.found = v
	}
}

// chain walks a chain. surely: every such packet comes here.
func (w *walk) chain(c *nftables.Chain, surely bool, depth int) ending {
	if depth == 0 {
		w.sure = true
	}
	if depth >= maxJumps {
		return fellThrough
	}
	here := true // every packet that came is still here
	for _, rule := range w.r.rules[nameOf(c.Table, c.Name)] {
		if w.steps++; w.steps > maxSteps {
			w.sure = false
			return fellThrough
		}
		m := &machine{walk: w, table: c.Table, rule: rule}
		step := m.run()
		if step.verdict == nil || step.match == no {
			continue
		}
		sure := surely && here && w.sure && step.match == yes
		what := fmt.Sprintf("rule %d", rule.Handle)
		if c != w.base {
			what += " of chain " + c.Name
		}
		switch end, gone := w.follow(c, step.verdict, what, sure, depth); {
		case gone && step.match == yes && end == decided && here:
			return decided
		case gone && step.match == yes && end == decided:
			w.sure = false // those that returned before go on, without these
			return fellThrough
		case gone && step.match == yes: // returned, or went elsewhere and fell out
			return fellThrough
		case gone:
			// Some may have gone: what follows is of the rest. Those that left
			// for good are missing everywhere, those that returned only here.
			here = false
			if end == decided {
				w.sure = false
			}
		}
	}
	return fellThrough
}

// follow does what a rule says. gone: the packet goes to no further rule of this
// chain.
func (w *walk) follow(c *nftables.Chain, v *effect, what string, sure bool, depth int) (end ending, gone bool) {
	switch {
	case v.drop:
		w.drop(what, sure)
		return decided, true
	case v.rewrite:
		w.rewrite(what, sure)
		return decided, true
	}
	switch v.kind {
	case expr.VerdictAccept, expr.VerdictStolen, expr.VerdictQueue, expr.VerdictStop:
		return decided, true
	case expr.VerdictDrop:
		w.drop(what, sure)
		return decided, true
	case expr.VerdictReturn:
		return fellThrough, true
	case expr.VerdictJump, expr.VerdictGoto:
		target := w.find(c.Table, v.chain)
		if target == nil {
			return fellThrough, false
		}
		end := w.chain(target, sure, depth+1)
		return end, end == decided || v.kind == expr.VerdictGoto
	}
	return fellThrough, false
}

func (w *walk) find(t *nftables.Table, name string) *nftables.Chain {
	for _, c := range w.r.chains {
		if c.Name == name && c.Table.Name == t.Name && c.Table.Family == t.Family {
			return c
		}
	}
	return nil
}
