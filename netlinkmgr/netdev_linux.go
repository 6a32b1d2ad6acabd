package netlinkmgr

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// consistent repeats a dump that a change interrupted.
func consistent[T any](dump func() ([]T, error)) (list []T, err error) {
	for range 5 {
		if list, err = dump(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return list, err
		}
	}
	return list, err
}

func listNetDevs(context.Context) ([]NetDev, error) {
	links, err := consistent(netlink.LinkList)
	if err != nil {
		return nil, err
	}
	addrs, err := consistent(func() ([]netlink.Addr, error) { return netlink.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, err
	}
	def := defaultDevs()
	list := make([]NetDev, 0, len(links))
	for _, l := range links {
		d := netDev(l)
		_, virtual := os.Stat(filepath.Join("/sys/class/net", d.Name, "device"))
		d.Physical, d.Default = virtual == nil, def[d.Index]
		for _, x := range addrs {
			if x.LinkIndex == d.Index {
				d.Addrs = append(d.Addrs, netAddr(x))
			}
		}
		list = append(list, d)
	}
	return list, nil
}

// netDev returns the network device of a link's message.
func netDev(l netlink.Link) NetDev {
	a := l.Attrs()
	return NetDev{
		Index: a.Index, Name: a.Name, Kind: l.Type(), MTU: a.MTU, MAC: a.HardwareAddr.String(),
		Loopback: a.Flags&net.FlagLoopback != 0, Up: a.Flags&net.FlagUp != 0,
		Ethernet: a.EncapType == "ether", Carrier: a.RawFlags&unix.IFF_LOWER_UP != 0,
	}
}

func netAddr(x netlink.Addr) NetAddr {
	ones, _ := x.Mask.Size()
	ip, _ := netip.AddrFromSlice(x.IP)
	return NetAddr{
		Prefix:    netip.PrefixFrom(ip.Unmap(), ones),
		Tentative: x.Flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED) != 0 && x.Flags&unix.IFA_F_OPTIMISTIC == 0,
	}
}

// defaultDevs are the indices of the devices that a default route leaves by.
func defaultDevs() map[int]bool {
	def := map[int]bool{}
	routes, err := consistent(func() ([]netlink.Route, error) { return netlink.RouteList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return def // it only ranks
	}
	for _, r := range routes {
		if r.Dst != nil {
			if ones, _ := r.Dst.Mask.Size(); ones > 0 {
				continue
			}
		}
		if r.Gw != nil || len(r.MultiPath) > 0 {
			def[r.LinkIndex] = true
		}
	}
	return def
}

func setNetDev(_ context.Context, name string, up bool) error {
	if up {
		return change(name, netlink.LinkSetUp)
	}
	return change(name, netlink.LinkSetDown)
}

func setMTU(_ context.Context, name string, mtu int) error {
	return change(name, func(l netlink.Link) error { return netlink.LinkSetMTU(l, mtu) })
}

// change does something with a network device; ENODEV when there is none.
func change(name string, do func(netlink.Link) error) error {
	l, err := netlink.LinkByName(name)
	var gone netlink.LinkNotFoundError
	if errors.As(err, &gone) {
		return unix.ENODEV
	}
	if err != nil {
		return err
	}
	return do(l)
}
