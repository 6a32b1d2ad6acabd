package suite

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/netlinkmgr"
)

// setUpVeth makes a wire whose ends are both in this network namespace, since
// rxe works in the initial one only, with an rxe link on each; and returns the
// index of rxe0's GID. Packets from one end to the other go over the wire, by
// rules before the table of local addresses: the rules are of packets that
// leave (iif lo), so that arriving ones are local.
func setUpVeth(ctx context.Context) (gid int, err error) {
	rxe0, err := netlinkmgr.Ensure(ctx, netlinkmgr.EnsureOptions{Name: "rxe0"})
	if err != nil {
		return 0, err
	}
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: vethNames[0], MTU: vethMTU}, PeerName: vethNames[1]}
	if err := netlink.LinkAdd(pair); err != nil {
		return 0, fmt.Errorf("add a veth: %w", err)
	}
	var ends [2]netlink.Link
	var addrs [2]*net.IPNet
	for i, name := range vethNames {
		if ends[i], err = netlink.LinkByName(name); err != nil {
			return 0, err
		}
		addrs[i] = &net.IPNet{IP: net.ParseIP(vethAddrs[i]).To4(), Mask: net.CIDRMask(32, 32)}
		if err := raise(ends[i], addrs[i]); err != nil {
			return 0, fmt.Errorf("bring %s up: %w", name, err)
		}
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/conf/all/rp_filter", []byte("0"), 0); err != nil {
		return 0, err
	}
	// The rule for local addresses moves behind those of the wire.
	last := netlink.NewRule()
	last.Priority, last.Table = 1000, unix.RT_TABLE_LOCAL
	if err := netlink.RuleAdd(last); err != nil {
		return 0, fmt.Errorf("add a rule: %w", err)
	}
	first := netlink.NewRule()
	first.Priority, first.Table = 0, unix.RT_TABLE_LOCAL
	if err := netlink.RuleDel(first); err != nil {
		return 0, fmt.Errorf("take the first rule away: %w", err)
	}
	for i := range ends {
		if err := lead(i, ends, addrs); err != nil {
			return 0, err
		}
	}
	for i, name := range vethLinks {
		if _, err := netlinkmgr.Ensure(ctx, netlinkmgr.EnsureOptions{Name: name, NetDev: vethNames[i]}); err != nil {
			return 0, err
		}
	}
	return rxe0.GIDIndex, nil
}

// raise brings one end up. Either end may be sent to from the other's address,
// which is one of this machine.
func raise(l netlink.Link, addr *net.IPNet) error {
	name := l.Attrs().Name
	for _, w := range [][2]string{{"accept_local", "1"}, {"rp_filter", "0"}} {
		if err := os.WriteFile("/proc/sys/net/ipv4/conf/"+name+"/"+w[0], []byte(w[1]), 0); err != nil {
			return err
		}
	}
	if err := netlink.LinkSetMTU(l, vethMTU); err != nil {
		return err
	}
	if err := netlink.AddrAdd(l, &netlink.Addr{IPNet: addr}); err != nil {
		return err
	}
	return netlink.LinkSetUp(l)
}

// lead makes packets from end i to the other one go over the wire.
func lead(i int, ends [2]netlink.Link, addrs [2]*net.IPNet) error {
	table, there := 101+i, ends[1-i]
	rule := netlink.NewRule()
	rule.Priority, rule.Table = 10+i, table
	rule.IifName, rule.Src, rule.Dst = "lo", addrs[i], addrs[1-i]
	if err := netlink.RuleAdd(rule); err != nil {
		return fmt.Errorf("add a rule: %w", err)
	}
	route := &netlink.Route{LinkIndex: ends[i].Attrs().Index, Dst: addrs[1-i], Table: table, Scope: netlink.SCOPE_LINK, Src: addrs[i].IP}
	if err := netlink.RouteAdd(route); err != nil {
		return fmt.Errorf("add a route: %w", err)
	}
	err := netlink.NeighSet(&netlink.Neigh{
		LinkIndex: ends[i].Attrs().Index, Family: netlink.FAMILY_V4, State: netlink.NUD_PERMANENT,
		IP: addrs[1-i].IP, HardwareAddr: there.Attrs().HardwareAddr,
	})
	if err != nil {
		return fmt.Errorf("add a neighbour: %w", err)
	}
	return nil
}
