package netlinkmgr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
)

// Setup is what a system's rxe links shall be.
type Setup struct {
	NetNS *NetNSMode // of all RDMA; nil leaves it as it is
	Links []LinkSetup
}

// LinkSetup is one rxe link.
type LinkSetup struct {
	Name   string
	NetDev string
	NetNS  string // name of the network namespace (ip-netns(8)) that has NetDev; empty is the caller's
	MTU    int    // of NetDev in bytes; 0 leaves it as it is
}

// The MTU's limits: below MinMTU there is no room for RDMA's least path MTU of
// 256 bytes and the headers (rxe_param.h: RXE_MAX_HDR_LENGTH), above MaxMTU no
// network device goes.
const (
	MinMTU = 256 + 80
	MaxMTU = 65536
)

// on names the link's network device.
func (l *LinkSetup) on() string {
	if l.NetNS == "" {
		return l.NetDev
	}
	return l.NetDev + " in the network namespace " + l.NetNS
}

// Check finds what is wrong with a setup whatever the system is: an error names
// the link and wraps EINVAL.
func (s *Setup) Check() error {
	names, devs := map[string]bool{}, map[[2]string]bool{}
	for i := range s.Links {
		l := &s.Links[i]
		dev := [2]string{l.NetNS, l.NetDev}
		why := l.wrong()
		switch {
		case why != "":
		case names[l.Name]:
			why = "another link has this name"
		case devs[dev]:
			why = "another link is on " + l.on() + ", which can carry one"
		}
		if why != "" {
			return &SetupError{Link: i + 1, Name: l.Name, Why: why}
		}
		names[l.Name], devs[dev] = true, true
	}
	return nil
}

func (l *LinkSetup) wrong() string {
	switch {
	case l.Name == "":
		return "it has no name"
	case checkName(l.Name) != nil:
		return fmt.Sprintf("%q cannot be the name of a link", l.Name)
	case l.NetDev == "":
		return "it has no netdev"
	case badFileName(l.NetDev) || len(l.NetDev) > 15: // IFNAMSIZ
		return fmt.Sprintf("%q cannot be the name of a network device", l.NetDev)
	case l.NetNS != "" && badFileName(l.NetNS):
		return fmt.Sprintf("%q cannot be the name of a network namespace", l.NetNS)
	case l.MTU != 0 && (l.MTU < MinMTU || l.MTU > MaxMTU):
		return fmt.Sprintf("mtu %d is not between %d and %d", l.MTU, MinMTU, MaxMTU)
	}
	return ""
}

func badFileName(s string) bool {
	return s == "." || s == ".." || len(s) > 255 || strings.ContainsAny(s, "/ \t\n\x00")
}

// nsView is what one network namespace shows of devices and links.
type nsView struct {
	name  string
	m     *Manager
	devs  []NetDev
	ports []portOf
}

// in looks into a network namespace.
func (m *Manager) in(ctx context.Context, name string) (*nsView, error) {
	v := &nsView{name: name, m: m}
	if name != "" {
		k, err := m.enter(name)
		if err != nil {
			return nil, err
		}
		v.m = New(k)
	}
	var err error
	if v.devs, err = v.m.netDevs(ctx); err == nil {
		v.ports, err = v.m.ports(ctx)
	}
	if errors.Is(err, syscall.EPERM) {
		err = permission("look into the network namespace "+name, "CAP_SYS_ADMIN", syscall.EPERM)
	}
	return v, err
}

func (m *Manager) enter(name string) (Kernel, error) {
	if m.k.In == nil {
		return Kernel{}, &OpError{"look into the network namespace " + name, syscall.ENOTSUP}
	}
	k, err := m.k.In(name)
	if errors.Is(err, fs.ErrNotExist) {
		return Kernel{}, &NoNetNSError{NetNS: name, Known: m.NetNamespaces()}
	}
	op := "look into the network namespace " + name
	return k, opError(op, permission(op, "CAP_SYS_ADMIN", err))
}

// NetNamespaces lists the network namespaces that have names (ip-netns(8)).
func (m *Manager) NetNamespaces() []string {
	entries, err := fs.ReadDir(m.k.Root, "run/netns")
	if err != nil {
		return nil // none was ever made
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// views looks into the caller's network namespace and the named ones.
func (m *Manager) views(ctx context.Context, names []string) (map[string]*nsView, error) {
	all := map[string]*nsView{}
	for _, n := range append([]string{""}, names...) {
		if all[n] != nil {
			continue
		}
		v, err := m.in(ctx, n)
		if err != nil {
			return nil, err
		}
		all[n] = v
	}
	return all, nil
}

// SaveSetup describes the rxe links that there are, in this network namespace
// and in those that have names, as a setup that makes them again.
func (m *Manager) SaveSetup(ctx context.Context) (Setup, error) {
	var s Setup
	views, err := m.views(ctx, m.NetNamespaces())
	if err != nil {
		return s, err
	}
	for _, v := range views {
		for _, p := range v.ports {
			if d, err := findNetDev(v.devs, p.NetDev); p.rxe && err == nil {
				s.Links = append(s.Links, LinkSetup{Name: p.Device, NetDev: d.Name, NetNS: v.name, MTU: d.MTU})
			}
		}
	}
	slices.SortFunc(s.Links, func(a, b LinkSetup) int {
		return cmp.Or(cmp.Compare(a.NetNS, b.NetNS), cmp.Compare(a.Name, b.Name))
	})
	sys, err := m.System(ctx)
	if isNoRDMA(err) {
		return s, nil
	}
	s.NetNS = &sys.NetNS
	return s, err
}
