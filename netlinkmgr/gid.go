package netlinkmgr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"

	"github.com/rdmashim/rdmashim/kshim/gidtable"
)

// GIDType is how packets of a GID travel.
type GIDType string

// Types as sysfs writes them.
const (
	GIDRoCEv2 GIDType = gidtable.TypeV2 // UDP, port 4791
	GIDRoCEv1 GIDType = gidtable.TypeV1 // Ethernet frames, or InfiniBand
)

// Scope is how far a GID's address reaches.
type Scope string

// The scopes, in the order of preference.
const (
	ScopeIPv4      Scope = "IPv4"       // an IPv4 address, mapped
	ScopeGlobal    Scope = "global"     // routable IPv6
	ScopeLinkLocal Scope = "link-local" // this link only
)

// GID is an entry of a port's GID table.
type GID struct {
	Device string
	Port   uint32
	Index  int
	GID    netip.Addr // 128 bits, as on the wire
	Type   GIDType
	NetDev string
	Scope  Scope
	Usable bool
	Best   bool   // the one to use on this port
	Why    string // why it is best, or why another is better
}

// Addr is the address that the GID stands for: IPv4 where it is mapped.
func (g *GID) Addr() netip.Addr { return g.GID.Unmap() }

func gidRank(g *GID) int { return gidtable.Rank(g.GID, g.Type == GIDRoCEv2) }

func scopeOf(a netip.Addr) Scope {
	switch {
	case a.Is4In6():
		return ScopeIPv4
	case a.IsLinkLocalUnicast():
		return ScopeLinkLocal
	}
	return ScopeGlobal
}

// GIDs reads a port's GID table (sysfs), without the empty entries, and marks
// the best one.
func (m *Manager) GIDs(ctx context.Context, device string, port uint32) ([]GID, error) {
	list, err := m.readGIDs(device, port)
	if err != nil {
		return nil, err
	}
	devs, err := m.NetDevs(ctx)
	if err != nil {
		return nil, err
	}
	judgeGIDs(list, devs)
	return list, nil
}

func (m *Manager) readGIDs(device string, port uint32) ([]GID, error) {
	entries, err := gidtable.Read(func(dir string) (names []string, err error) {
		entries, err := fs.ReadDir(m.k.Root, dir)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names, err
	}, m.line, fmt.Sprintf("sys/class/infiniband/%s/ports/%d", device, port))
	if err != nil {
		return nil, opError(fmt.Sprintf("read the GID table of %s/%d", device, port), unwrapPath(err))
	}
	var list []GID
	for _, e := range entries {
		if e.Type != "" { // else it went away between the reads
			list = append(list, GID{
				Device: device, Port: port, Index: e.Index, GID: e.Addr, Type: GIDType(e.Type),
				NetDev: e.NetDev, Scope: scopeOf(e.Addr),
			})
		}
	}
	return list, nil
}

// line reads a one-line file; a missing one is empty.
func (m *Manager) line(path string) string {
	b, err := fs.ReadFile(m.k.Root, path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// unwrapPath drops the path of a file error: the operation names its object.
func unwrapPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// judgeGIDs marks the entries that can be used, and the best of them: the
// lowest rank, then the lowest index.
func judgeGIDs(list []GID, devs []NetDev) {
	best := -1
	for i := range list {
		g := &list[i]
		g.Usable, g.Why = usableGID(g, devs)
		if g.Usable && (best < 0 || gidRank(g) < gidRank(&list[best])) {
			best = i
		}
	}
	for i := range list {
		g := &list[i]
		switch {
		case i == best:
			g.Best, g.Why = true, bestReason(g)
		case g.Usable && gidRank(g) == gidRank(&list[best]):
			g.Why = fmt.Sprintf("as good as index %d, which comes first", list[best].Index)
		case g.Usable:
			g.Why = fmt.Sprintf("index %d goes before: %s", list[best].Index, rankReason(g))
		}
	}
}

// usableGID checks that the address behind the GID is there: a GID outlives
// its address for a moment, and rxe's default GID stands for a link-local
// address that the network device need not have.
func usableGID(g *GID, devs []NetDev) (bool, string) {
	if g.NetDev == "" {
		return false, "no network device behind it"
	}
	i := slices.IndexFunc(devs, func(d NetDev) bool { return d.Name == g.NetDev })
	if i < 0 {
		return false, g.NetDev + " is not in this network namespace"
	}
	if !devs[i].Up {
		return false, g.NetDev + " is down"
	}
	for _, a := range devs[i].Addrs {
		if a.Prefix.Addr() == g.Addr() {
			if a.Tentative {
				return false, "duplicate address detection has not passed"
			}
			return true, ""
		}
	}
	return false, fmt.Sprintf("%s has not the address %s", g.NetDev, g.Addr())
}

func bestReason(g *GID) string {
	if g.Type != GIDRoCEv2 {
		return "no usable RoCE v2 entry; " + rankReason(g)
	}
	switch g.Scope {
	case ScopeIPv4:
		return "RoCE v2 over IPv4: first in the order"
	case ScopeGlobal:
		return "RoCE v2 over global IPv6: no usable IPv4 entry"
	}
	return "RoCE v2 over link-local IPv6: nothing routable"
}

func rankReason(g *GID) string {
	switch {
	case g.Type != GIDRoCEv2:
		return "RoCE v1 is not routable"
	case g.Scope == ScopeLinkLocal:
		return "link-local reaches this link only"
	}
	return "IPv6 comes after IPv4"
}

// bestGID finds the entry that is marked.
func bestGID(list []GID) *GID {
	if i := slices.IndexFunc(list, func(g GID) bool { return g.Best }); i >= 0 {
		return &list[i]
	}
	return nil
}
