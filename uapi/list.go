package uapi

import (
	"cmp"
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

// Devices lists the devices that Open can open on this machine without opening
// any: a soft device for every address of its interfaces, the soft devices that
// this process has open, and the real kernel's devices. Fields that are known
// only of an open device are zero.
func Devices() ([]DeviceInfo, error) {
	var list []DeviceInfo
	for _, s := range devices.list() {
		list = append(list, s.info())
	}
	ifs, err := net.Interfaces()
	if err != nil {
		return nil, opError("Devices", "", err)
	}
	for i := range ifs {
		addrs, err := ifs[i].Addrs()
		if err != nil {
			return nil, opError("Devices", ifs[i].Name, err)
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

func listed(list []DeviceInfo, info DeviceInfo) bool {
	return slices.ContainsFunc(list, func(d DeviceInfo) bool { return d.Kind == info.Kind && d.Address == info.Address })
}

// info describes a device of this process without asking it.
func (s *backend) info() DeviceInfo {
	info := DeviceInfo{
		Name:      s.name,
		Device:    s.device(),
		Kind:      string(s.spec.kind),
		Driver:    "RXE",
		Address:   s.addr,
		Open:      true,
		PortState: "ACTIVE",
		Port:      1,
		MTU:       s.mtu,
		MaxMTU:    4096,
		Notices:   s.notices,
	}
	info.NetDev = s.netDev
	info.GIDs = []GID{{Addr: s.addr.Addr().WithZone(""), Type: "RoCE v2", NetDev: s.netDev}}
	return info
}

// softDeviceOn is the soft device that an interface's address would give.
func softDeviceOn(ifc *net.Interface, a net.Addr) (DeviceInfo, bool) {
	addr, ok := prefixAddr(a)
	if !ok {
		return DeviceInfo{}, false
	}
	gid := addr
	if addr.Is6() && addr.IsLinkLocalUnicast() {
		addr = addr.WithZone(ifc.Name)
	}
	info := DeviceInfo{
		Device:    softName(addr),
		Kind:      string(kindSoft),
		Driver:    "RXE",
		NetDev:    ifc.Name,
		Address:   netip.AddrPortFrom(addr, RoCEPort),
		PortState: "DOWN",
		Port:      1,
		GIDs:      []GID{{Addr: gid, Type: "RoCE v2", NetDev: ifc.Name}},
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
func hostDevices(root string) []DeviceInfo {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil
	}
	var list []DeviceInfo
	for _, e := range entries {
		list = append(list, hostDevice(filepath.Join(root, e.Name()), e.Name()))
	}
	return list
}

// hostDevice describes port 1 of a device whose directory in sysfs is dir. Only
// rdma_rxe, of all drivers, names its device's interface ("parent").
func hostDevice(dir, name string) DeviceInfo {
	info := DeviceInfo{Name: name, Device: string(kindHost) + ":" + name, Kind: string(kindHost), Port: 1, NetDev: readAttribute(dir, "parent"), Open: devices.hasHost(name)}
	_, info.PortState, _ = strings.Cut(readAttribute(dir, "ports/1/state"), ": ")
	guid, _ := strconv.ParseUint(strings.ReplaceAll(readAttribute(dir, "node_guid"), ":", ""), 16, 64)
	info.NodeGUID = guid
	gids := hostGIDs(filepath.Join(dir, "ports/1"))
	for _, g := range gids {
		info.GIDs = append(info.GIDs, GID{Index: g.Index, Addr: g.Addr.Unmap(), Type: cmp.Or(g.Type, gidtable.TypeV1), NetDev: g.NetDev})
	}
	if best, reason, err := chooseGID(verbs.FromSysfs(gids), nil); err == nil {
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
