package netlinkmgr

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// NetDevs lists the network devices of this network namespace in the order of
// their index.
func (m *Manager) NetDevs(ctx context.Context) ([]NetDev, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	devs, err := m.k.NetDevs(ctx)
	if err != nil {
		return nil, opError("list network devices", err)
	}
	slices.SortFunc(devs, func(a, b NetDev) int { return cmp.Compare(a.Index, b.Index) })
	return devs, nil
}

func findNetDev(devs []NetDev, name string) (NetDev, error) {
	var names []string
	for _, d := range devs {
		if d.Name == name {
			return d, nil
		}
		names = append(names, d.Name)
	}
	return NetDev{}, &NetDevGoneError{NetDev: name, Known: names}
}

// unfit returns why rxe refuses a network device whatever its state, or "".
// drivers/infiniband/sw/rxe/rxe.c: rxe_newlink refuses VLANs.
func unfit(d NetDev) string {
	switch {
	case d.Kind == "vlan":
		return "it is a VLAN; rxe takes the device below it, and its GIDs then cover the VLAN"
	case !d.Ethernet && !d.Loopback:
		return "it is no Ethernet device"
	}
	return ""
}

// choice is the network device for a link, and why.
type choice struct {
	dev    NetDev
	link   *Port // the rxe link it has already, if any
	reason string
}

// choose takes the named network device, or that of the named link, or finds
// one.
func choose(o EnsureOptions, devs []NetDev, ports []portOf) (choice, error) {
	if name := o.NetDev; name != "" {
		d, err := findNetDev(devs, name)
		if err != nil {
			return choice{}, err
		}
		if why := unfit(d); why != "" {
			return choice{}, &NetDevUnsuitableError{NetDev: name, Why: why}
		}
		return choice{dev: d, link: linkOn(ports, name), reason: name + " was named"}, nil
	}
	if c, ok := chooseLinked(o.Name, devs, ports); ok {
		return c, nil
	}
	return chooseFree(devs, ports)
}

// portOf is a port and whether its device is rxe's.
type portOf struct {
	Port
	rxe bool
}

func linkOn(ports []portOf, netdev string) *Port {
	for i := range ports {
		if ports[i].rxe && ports[i].NetDev == netdev {
			return &ports[i].Port
		}
	}
	return nil
}

// chooseLinked prefers a link that is there: the named one if one is named,
// else an active one, else the first.
func chooseLinked(name string, devs []NetDev, ports []portOf) (c choice, found bool) {
	for i := range ports {
		p := &ports[i]
		j := slices.IndexFunc(devs, func(d NetDev) bool { return d.Name == p.NetDev })
		if !p.rxe || j < 0 || (name != "" && name != p.Device) {
			continue
		}
		if !found || (p.Active() && !c.link.Active()) {
			found, c = true, choice{devs[j], &p.Port, fmt.Sprintf("%s has the rxe link %s already", devs[j].Name, p.Device)}
		}
	}
	return c, found
}

// chooseFree ranks the devices that could carry a new link.
func chooseFree(devs []NetDev, ports []portOf) (choice, error) {
	var fit []NetDev
	var passed []string
	for _, d := range devs {
		if why := unserviceable(d, ports); why != "" {
			passed = append(passed, d.Name+": "+why)
		} else {
			fit = append(fit, d)
		}
	}
	if len(fit) == 0 {
		return choice{}, &NoNetDevError{Passed: passed}
	}
	slices.SortStableFunc(fit, func(a, b NetDev) int { return slices.Compare(rankNetDev(a), rankNetDev(b)) })
	for _, d := range fit[1:] {
		passed = append(passed, d.Name+": ranks lower")
	}
	reason := fmt.Sprintf("%s was found: %s", fit[0].Name, describeNetDev(fit[0]))
	if len(passed) > 0 {
		reason += " (not " + strings.Join(passed, "; ") + ")"
	}
	return choice{dev: fit[0], reason: reason}, nil
}

// unserviceable returns why a device is not taken unasked, or "".
func unserviceable(d NetDev, ports []portOf) string {
	if why := unfit(d); why != "" {
		return why
	}
	switch {
	case d.Loopback:
		return "loopback"
	case d.Up && !d.Carrier:
		return "no carrier"
	}
	for _, p := range ports {
		if p.NetDev == d.Name {
			return "the RDMA device " + p.Device + " is on it"
		}
	}
	return ""
}

// rankNetDev orders by what a link needs most: an address, being up, a route
// to others, a card behind it.
func rankNetDev(d NetDev) []int {
	no := map[bool]int{false: 1}
	return []int{addressRank(d), no[d.Up], no[d.Default], no[d.Physical], d.Index}
}

func addressRank(d NetDev) int {
	rank := 2
	for _, a := range d.Addrs {
		switch addr := a.Prefix.Addr(); {
		case addr.Is4():
			return 0
		case !addr.IsLinkLocalUnicast():
			rank = 1
		}
	}
	return rank
}

func describeNetDev(d NetDev) string {
	s := map[bool]string{true: "up", false: "down"}[d.Up] + ", has " +
		[]string{"an IPv4 address", "an IPv6 address", "no routable address"}[addressRank(d)]
	if d.Default {
		s += ", has a default route"
	}
	return s
}
