package uapi

import (
	"net/netip"
	"slices"
	"sync"

	"github.com/rdmashim/rdmashim/uapi/internal/device"
)

// opened are the devices that this process has open, in the order in which
// they were opened.
var opened deviceList

type deviceList struct {
	mu   sync.Mutex
	list []*Device // guarded by mu
}

func (l *deviceList) add(d *Device) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, d)
}

func (l *deviceList) remove(d *Device) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = slices.DeleteFunc(l.list, func(other *Device) bool { return other == d })
}

// at returns the devices that have the address; all for a wildcard.
func (l *deviceList) at(addr netip.Addr) []*Device {
	all := slices.DeleteFunc(l.all(), func(d *Device) bool { return !addr.IsUnspecified() && !d.hasAddr(addr) })
	owned := map[netip.AddrPort]bool{}
	for _, d := range all {
		owned[d.chosen.addr] = d.where.Spec.Kind == device.Soft
	}
	return slices.DeleteFunc(all, func(d *Device) bool { // the owner of its address would be asked for the same port
		return d.where.Beside() && owned[netip.AddrPortFrom(d.chosen.addr.Addr(), RoCEPort)]
	})
}

// all is a snapshot of the devices.
func (l *deviceList) all() []*Device {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

func (d *Device) hasAddr(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	if d.chosen.gid.Addr.Unmap() == addr {
		return true
	}
	gids, err := d.verbs.GIDs(uint8(d.chosen.port))
	return err == nil && slices.ContainsFunc(gidList(gids, ""), func(g GID) bool { return g.Addr == addr })
}
