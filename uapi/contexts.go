package uapi

import (
	"net/netip"
	"slices"
	"sync"

	"github.com/rdmashim/rdmashim/uapi/internal/device"
)

// opened are the contexts that this process has open, in the order in which
// they were opened.
var opened contextList

type contextList struct {
	mu   sync.Mutex
	list []*Context // guarded by mu
}

func (l *contextList) add(c *Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, c)
}

func (l *contextList) remove(c *Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = slices.DeleteFunc(l.list, func(other *Context) bool { return other == c })
}

// at returns the contexts whose device has the address; all for a wildcard.
func (l *contextList) at(addr netip.Addr) []*Context {
	all := slices.DeleteFunc(l.all(), func(c *Context) bool { return !addr.IsUnspecified() && !c.hasAddr(addr) })
	owned := map[netip.AddrPort]bool{}
	for _, c := range all {
		owned[c.chosen.addr] = c.device.Spec.Kind == device.Soft
	}
	return slices.DeleteFunc(all, func(c *Context) bool { // the owner of its address would be asked for the same port
		return c.device.Beside() && owned[netip.AddrPortFrom(c.chosen.addr.Addr(), RoCEPort)]
	})
}

// all is a snapshot of the contexts.
func (l *contextList) all() []*Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

func (c *Context) hasAddr(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	if c.chosen.gid.Addr.Unmap() == addr {
		return true
	}
	gids, err := c.verbs.GIDs(uint8(c.chosen.port))
	return err == nil && slices.ContainsFunc(gidList(gids, ""), func(g GID) bool { return g.Addr == addr })
}
