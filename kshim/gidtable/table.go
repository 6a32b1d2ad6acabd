package gidtable

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Types as sysfs writes them.
const (
	TypeV2 = "RoCE v2"    // UDP, port 4791
	TypeV1 = "IB/RoCE v1" // Ethernet frames, or InfiniBand
)

// Entry is a place of the table that is taken.
type Entry struct {
	Index  int
	Addr   netip.Addr // 16 bytes; IPv4 as ::ffff:a.b.c.d
	Type   string     // "" if it went away between the reads
	NetDev string
}

// Read reads the table of a port, whose directory in sysfs is dir, by index.
// line reads a file of one line; "" is one that cannot be read. A place that is
// not taken reads so, or as zeroes.
func Read(readDir func(dir string) ([]string, error), line func(file string) string, dir string) ([]Entry, error) {
	names, err := readDir(dir + "/gids")
	if err != nil {
		return nil, err
	}
	var list []Entry
	for _, name := range names {
		index, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		addr, ok := parse(strings.TrimSpace(line(dir + "/gids/" + name)))
		if !ok {
			continue
		}
		list = append(list, Entry{
			Index: index, Addr: addr,
			Type:   strings.TrimSpace(line(dir + "/gid_attrs/types/" + name)),
			NetDev: strings.TrimSpace(line(dir + "/gid_attrs/ndevs/" + name)),
		})
	}
	slices.SortFunc(list, func(a, b Entry) int { return a.Index - b.Index })
	return list, nil
}

// parse reads sysfs's notation: eight groups of four hexadecimal digits,
// nothing left out. All zeros is an empty entry.
func parse(s string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is6() || a.Zone() != "" || a.IsUnspecified() {
		return netip.Addr{}, false
	}
	return a, true
}

// Rank orders addresses as UCX does (uct_ib_device_select_gid), the best first:
// RoCE v2 before v1; there IPv4 (0, 3) before global IPv6 (1, 4) before
// link-local (2, 5).
func Rank(addr netip.Addr, v2 bool) int {
	rank := 1
	switch {
	case addr.Unmap().Is4():
		rank = 0
	case addr.IsLinkLocalUnicast():
		rank = 2
	}
	if !v2 {
		rank += 3
	}
	return rank
}
