package netlinkmgr

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
)

// SetupOptions say how a setup is put into effect.
type SetupOptions struct {
	// Prune deletes the rxe links that the setup does not have, in this network
	// namespace and in those that have names; else they stay.
	Prune bool
	// ModuleDir is where modules.dep lies; empty is /lib/modules/RELEASE.
	ModuleDir string
	// Log is told each change as it is done.
	Log func(Change)
}

// ChangeKind says what a change changes.
type ChangeKind string

// The kinds, in the order in which they are done.
const (
	ChangeModule ChangeKind = "module" // a module is loaded
	ChangeNetNS  ChangeKind = "netns"  // the mode of all RDMA
	ChangeDelete ChangeKind = "delete" // a link
	ChangeRename ChangeKind = "rename" // a link: From is its name now
	ChangeMTU    ChangeKind = "mtu"    // of a network device
	ChangeAdd    ChangeKind = "add"    // a link
)

// Change is one change that a setup asks for.
type Change struct {
	Kind     ChangeKind
	Link     string // as it shall be named; that a link which is deleted has
	NetDev   string
	NetNS    string // the network namespace that has NetDev; empty is the caller's
	From, To string // old and new value: name, MTU, mode
	Text     string // "add link rxe0 on eth0"
	Message  []byte // the RDMA netlink message, where it is one whose content is known before

	do, undo func(context.Context) error
}

// Plan is what PlanSetup found.
type Plan struct {
	Changes  []Change
	Extra    []LinkSetup // links that the setup does not have and that stay
	Warnings []string
}

// planning is one run of PlanSetup.
type planning struct {
	m     *Manager
	s     Setup
	o     SetupOptions
	views map[string]*nsView
	owner map[string]portOf // who has a name at this point of the plan
	plan  Plan
}

// PlanSetup checks a setup and says what has to change for it; it changes
// nothing. A setup that this system cannot have is an error: a network device
// or namespace that is not there, a name that another device has.
func (m *Manager) PlanSetup(ctx context.Context, s Setup, o SetupOptions) (*Plan, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	p := &planning{m: m, s: s, o: o, owner: map[string]portOf{}}
	var names []string
	for _, l := range s.Links {
		names = append(names, l.NetNS)
	}
	if o.Prune {
		names = append(names, m.NetNamespaces()...)
	}
	var err error
	if p.views, err = m.views(ctx, names); err != nil {
		return nil, err
	}
	for _, v := range p.views {
		for _, port := range v.ports {
			if old, ok := p.owner[port.Device]; !ok || old.NetDev == "" {
				p.owner[port.Device] = port
			}
		}
	}
	for _, step := range []func(context.Context) error{p.check, p.mode, p.deletes, p.renames, p.mtus, p.adds, p.modules} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return &p.plan, nil
}

func (p *planning) add(c Change) { p.plan.Changes = append(p.plan.Changes, c) }

func (p *planning) dev(l *LinkSetup) (NetDev, error) {
	return findNetDev(p.views[l.NetNS].devs, l.NetDev)
}

// now is the link that is on a wanted link's network device; nil when none is.
func (p *planning) now(l *LinkSetup) *Port { return linkOn(p.views[l.NetNS].ports, l.NetDev) }

// check looks that each link's network device is there and can carry it.
func (p *planning) check(context.Context) error {
	for i := range p.s.Links {
		l := &p.s.Links[i]
		d, err := p.dev(l)
		if err != nil {
			return err
		}
		if why := unfit(d); why != "" {
			return &NetDevUnsuitableError{NetDev: l.NetDev, Why: why}
		}
		if !d.Up {
			p.plan.Warnings = append(p.plan.Warnings, fmt.Sprintf("%s is down, so the port of %s will be: ip link set %s up", l.on(), l.Name, l.NetDev))
		}
		if l.NetNS != "" {
			p.plan.Warnings = append(p.plan.Warnings, fmt.Sprintf("%s: rxe carries packets outside the initial network namespace only from Linux 7.1", l.Name))
		}
	}
	return nil
}

func (p *planning) mode(ctx context.Context) error {
	if p.s.NetNS == nil {
		return nil
	}
	want, have := *p.s.NetNS, NetNSShared
	if sys, err := p.m.System(ctx); err == nil {
		have = sys.NetNS
	} else if !isNoRDMA(err) {
		return err
	}
	if want == have {
		return nil
	}
	set := func(mode NetNSMode) func(context.Context) error {
		return func(ctx context.Context) error { return p.m.SetNetNS(ctx, mode == NetNSShared) }
	}
	p.add(Change{
		Kind: ChangeNetNS, From: have.String(), To: want.String(), Message: reqSetNetNS(want == NetNSShared).Message(),
		Text: fmt.Sprintf("set the network namespace mode to %s (was %s)", want, have), do: set(want), undo: set(have),
	})
	return nil
}

// deletes removes what the setup does not have; it is noted if it may stay.
func (p *planning) deletes(context.Context) error {
	for _, name := range sortedKeys(p.views) {
		v := p.views[name]
		for _, port := range v.ports {
			wanted := slices.ContainsFunc(p.s.Links, func(l LinkSetup) bool { return l.NetNS == v.name && l.NetDev == port.NetDev })
			if !port.rxe || port.NetDev == "" || wanted {
				continue
			}
			l := LinkSetup{Name: port.Device, NetDev: port.NetDev, NetNS: v.name}
			if !p.o.Prune {
				p.plan.Extra = append(p.plan.Extra, l)
				continue
			}
			delete(p.owner, l.Name)
			p.add(Change{
				Kind: ChangeDelete, Link: l.Name, NetDev: l.NetDev, NetNS: l.NetNS, Message: reqDelLink(port.DeviceIndex).Message(),
				Text: fmt.Sprintf("delete link %s on %s", l.Name, l.on()),
				do:   func(ctx context.Context) error { return v.m.DeleteLink(ctx, l.Name) },
				undo: func(ctx context.Context) error { return v.m.AddLink(ctx, l.Name, "rxe", l.NetDev) },
			})
		}
	}
	return nil
}

// renames gives links that are there their names, each when it is free.
func (p *planning) renames(context.Context) error {
	var left []*LinkSetup
	for i := range p.s.Links {
		if now := p.now(&p.s.Links[i]); now != nil && now.Device != p.s.Links[i].Name {
			left = append(left, &p.s.Links[i])
		}
	}
	for len(left) > 0 {
		i := slices.IndexFunc(left, func(l *LinkSetup) bool { _, taken := p.owner[l.Name]; return !taken })
		if i < 0 {
			return p.stuck(left)
		}
		p.rename(left[i])
		left = slices.Delete(left, i, i+1)
	}
	return nil
}

func (p *planning) rename(l *LinkSetup) {
	m, now := p.views[l.NetNS].m, p.now(l)
	old := now.Device
	p.owner[l.Name] = p.owner[old]
	delete(p.owner, old)
	p.add(Change{
		Kind: ChangeRename, Link: l.Name, NetDev: l.NetDev, NetNS: l.NetNS, From: old, To: l.Name,
		Message: reqRename(now.DeviceIndex, l.Name).Message(),
		Text:    fmt.Sprintf("rename link %s on %s to %s", old, l.on(), l.Name),
		do:      func(ctx context.Context) error { return m.Rename(ctx, old, l.Name) },
		undo:    func(ctx context.Context) error { return m.Rename(ctx, l.Name, old) },
	})
}

// stuck says why no link of left can have its name: a device that keeps its
// own has one, or they exchange them.
func (p *planning) stuck(left []*LinkSetup) error {
	for _, l := range left {
		if !slices.ContainsFunc(left, func(x *LinkSetup) bool { return p.now(x).Device == l.Name }) {
			return p.taken(l)
		}
	}
	return &OpError{fmt.Sprintf("rename %s to %s", p.now(left[0]).Device, left[0].Name),
		fmt.Errorf("links exchange their names, which cannot be done at once: rename one with 'rdmashim dev set NAME name NEW' first: %w", syscall.EEXIST)}
}

// taken says who has a name that is wanted.
func (p *planning) taken(l *LinkSetup) error {
	o := p.owner[l.Name]
	return &NameTakenError{Device: l.Name, NetDev: o.NetDev, Want: l.on(), RXE: o.rxe}
}

func (p *planning) mtus(context.Context) error {
	for i := range p.s.Links {
		l := &p.s.Links[i]
		d, _ := p.dev(l)
		if l.MTU == 0 || l.MTU == d.MTU {
			continue
		}
		m, old := p.views[l.NetNS].m, d.MTU
		p.add(Change{
			Kind: ChangeMTU, Link: l.Name, NetDev: l.NetDev, NetNS: l.NetNS, From: fmt.Sprint(old), To: fmt.Sprint(l.MTU),
			Text: fmt.Sprintf("set the MTU of %s to %d (was %d)", l.on(), l.MTU, old),
			do:   func(ctx context.Context) error { return m.SetMTU(ctx, l.NetDev, l.MTU) },
			undo: func(ctx context.Context) error { return m.SetMTU(ctx, l.NetDev, old) },
		})
	}
	return nil
}

func (p *planning) adds(context.Context) error {
	for i := range p.s.Links {
		l := &p.s.Links[i]
		if p.now(l) != nil {
			continue
		}
		if _, taken := p.owner[l.Name]; taken {
			return p.taken(l)
		}
		m := p.views[l.NetNS].m
		p.add(Change{
			Kind: ChangeAdd, Link: l.Name, NetDev: l.NetDev, NetNS: l.NetNS, Message: reqNewLink(l.Name, "rxe", l.NetDev).Message(),
			Text: fmt.Sprintf("add link %s on %s", l.Name, l.on()),
			do:   func(ctx context.Context) error { return m.AddLink(ctx, l.Name, "rxe", l.NetDev) },
			undo: func(ctx context.Context) error { return m.DeleteLink(ctx, l.Name) },
		})
	}
	return nil
}

// modules come first, and only if something else needs them.
func (p *planning) modules(context.Context) error {
	if !slices.ContainsFunc(p.plan.Changes, func(c Change) bool { return c.Kind == ChangeAdd || c.Kind == ChangeNetNS }) {
		return nil
	}
	dir := moduleDir(p.m.k.Release)
	if p.o.ModuleDir != "" {
		dir = strings.TrimPrefix(p.o.ModuleDir, "/")
	}
	files, err := p.m.modulesFor(dir, []string{rxeModule})
	if err != nil {
		return err
	}
	var list []Change
	for _, f := range files {
		fresh := false
		list = append(list, Change{
			Kind: ChangeModule, To: f.Name, Text: "load module " + f.Name + " from /" + f.Path,
			do: func(context.Context) (err error) { fresh, err = p.m.insert(f); return err },
			undo: func(context.Context) error {
				if !fresh {
					return nil
				}
				return p.m.undoModule(f.Name)
			},
		})
	}
	p.plan.Changes = append(list, p.plan.Changes...)
	return nil
}
