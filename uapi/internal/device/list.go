package device

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/gidtable"
	"github.com/rdmashim/rdmashim/kshim/verbs"
)

// GID is uapi.GID.
type GID struct {
	Index  int
	Addr   netip.Addr
	Type   string
	NetDev string
}

// Info is of uapi.DeviceInfo the fields that are known of a device that is not
// open.
type Info struct {
	Name, Device, Kind, Driver, NetDev string
	Address                            netip.AddrPort
	NodeGUID                           uint64
	Open                               bool
	PortState                          string
	Notices                            []string
	Port                               int
	GIDs                               []GID
	GIDIndex                           int
	GIDReason                          string
	MTU, MaxMTU                        int
}

// List is uapi.Devices.
func List() ([]Info, error) {
	var list []Info
	for _, d := range devices.list() {
		list = append(list, d.info())
	}
	ifs, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	for i := range ifs {
		addrs, err := ifs[i].Addrs()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", ifs[i].Name, err)
		}
		for _, a := range addrs {
			if info, ok := softDeviceOn(&ifs[i], a); ok && !listed(list, info) {
				list = append(list, info)
			}
		}
	}
	if runtime.GOOS == "linux" {
		list = append(list, hostDevices("/sys/class/infiniband")...)
	}
	return list, nil
}

func listed(list []Info, info Info) bool {
	return slices.ContainsFunc(list, func(d Info) bool { return d.Kind == info.Kind && d.Address == info.Address })
}

// info describes a device of this process without asking it.
func (d *Device) info() Info {
	return Info{
		Name:      d.Name,
		Device:    d.OpenName(),
		Kind:      string(d.Spec.Kind),
		Driver:    "RXE",
		Address:   d.Addr,
		Open:      true,
		PortState: "ACTIVE",
		Port:      1,
		MTU:       d.MTU,
		MaxMTU:    4096,
		Notices:   d.Notices,
		NetDev:    d.NetDev,
		GIDs:      []GID{{Addr: d.Addr.Addr().WithZone(""), Type: gidV2, NetDev: d.NetDev}},
	}
}

// softDeviceOn is the soft device that an interface's address would give.
func softDeviceOn(ifc *net.Interface, a net.Addr) (Info, bool) {
	addr, ok := prefixAddr(a)
	if !ok {
		return Info{}, false
	}
	gid := addr
	if addr.Is6() && addr.IsLinkLocalUnicast() {
		addr = addr.WithZone(ifc.Name)
	}
	info := Info{
		Device:    softName(addr),
		Kind:      string(Soft),
		Driver:    "RXE",
		NetDev:    ifc.Name,
		Address:   netip.AddrPortFrom(addr, RoCEPort),
		PortState: "DOWN",
		Port:      1,
		GIDs:      []GID{{Addr: gid, Type: gidV2, NetDev: ifc.Name}},
		MTU:       mtuForInterface(ifc.MTU),
		MaxMTU:    4096,
	}
	if ifc.Flags&net.FlagUp != 0 {
		info.PortState = "ACTIVE"
	}
	return info, true
}

// mtuForInterface is the largest path MTU that fits an interface's, and the
// smallest where none does, as rxe reckons.
func mtuForInterface(mtu int) int { return max(256, abi.FitMTU(mtu-abi.MTUHeadroom).Bytes()) }

// hostDevices are the real kernel's, from sysfs.
func hostDevices(root string) []Info {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil
	}
	var list []Info
	for _, e := range entries {
		list = append(list, hostDevice(filepath.Join(root, e.Name()), e.Name()))
	}
	return list
}

// hostDevice describes port 1 of a device whose directory in sysfs is dir. Only
// rdma_rxe, of all drivers, names its device's interface ("parent").
func hostDevice(dir, name string) Info {
	info := Info{Name: name, Device: string(Host) + ":" + name, Kind: string(Host), Port: 1, NetDev: readAttribute(dir, "parent"), Open: devices.hasHost(name)}
	_, info.PortState, _ = strings.Cut(readAttribute(dir, "ports/1/state"), ": ")
	guid, _ := strconv.ParseUint(strings.ReplaceAll(readAttribute(dir, "node_guid"), ":", ""), 16, 64)
	info.NodeGUID = guid
	gids := hostGIDs(filepath.Join(dir, "ports/1"))
	for _, g := range gids {
		info.GIDs = append(info.GIDs, GID{Index: g.Index, Addr: g.Addr.Unmap(), Type: cmp.Or(g.Type, gidtable.TypeV1), NetDev: g.NetDev})
	}
	if best, reason, err := ChooseGID(verbs.FromSysfs(gids), nil); err == nil {
		info.GIDIndex, info.GIDReason = best.Index, reason
		info.Address = netip.AddrPortFrom(best.Addr.Unmap(), RoCEPort)
	}
	if info.NetDev == "" {
		info.Notices = []string{"its driver is likely not supported: rdma_rxe is"}
		return info
	}
	info.Driver, info.MaxMTU = "RXE", 4096
	if ifc, err := net.InterfaceByName(info.NetDev); err == nil {
		info.MTU = mtuForInterface(ifc.MTU)
	}
	return info
}

// hostGIDs is a port's address table; empty where it cannot be read.
func hostGIDs(port string) []gidtable.Entry {
	list, _ := gidtable.Read(func(dir string) (names []string, err error) {
		entries, err := os.ReadDir(dir)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names, err
	}, func(file string) string { return readAttribute("", file) }, port)
	return list
}

func readAttribute(dir, name string) string {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
