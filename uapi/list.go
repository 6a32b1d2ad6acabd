package uapi

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Devices lists the devices that Open can open on this machine without
// opening any: a soft device for every address of its interfaces, the soft
// devices that this process has open, and the real kernel's devices. What is
// known only of an open device is zero.
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
func (s *station) info() DeviceInfo {
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
	prefix, ok := a.(*net.IPNet)
	if !ok {
		return DeviceInfo{}, false
	}
	addr, ok := netip.AddrFromSlice(prefix.IP)
	if !ok {
		return DeviceInfo{}, false
	}
	addr = addr.Unmap()
	gid := addr
	name := "soft:" + addr.String()
	if addr.Is6() {
		if addr.IsLinkLocalUnicast() {
			addr = addr.WithZone(ifc.Name)
		}
		name = "soft:[" + addr.String() + "]"
	}
	info := DeviceInfo{
		Device:    name,
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

// mtuForInterface is the largest path MTU that fits an interface's, as rxe
// reckons (rxe_param.h:eth_mtu_int_to_enum): 80 bytes are kept for headers.
func mtuForInterface(mtu int) int {
	const headers = 80
	for _, m := range []int{4096, 2048, 1024, 512} {
		if m+headers <= mtu {
			return m
		}
	}
	return 256
}

// hostDevices are the real kernel's, from sysfs.
func hostDevices(root string) []DeviceInfo {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil
	}
	var list []DeviceInfo
	for _, e := range entries {
		dir := filepath.Join(root, e.Name())
		info := DeviceInfo{Name: e.Name(), Device: "host:" + e.Name(), Kind: string(kindHost), Port: 1,
			NetDev:  readAttribute(dir, "parent"),
			Notices: []string{"the real kernel's devices cannot be opened by this version"},
		}
		_, state, _ := strings.Cut(readAttribute(dir, "ports/1/state"), ": ")
		info.PortState = state
		if gid, err := netip.ParseAddr(readAttribute(dir, "ports/1/gids/0")); err == nil {
			netDev := readAttribute(dir, "ports/1/gid_attrs/ndevs/0")
			info.GIDs = []GID{{Addr: gid.Unmap(), Type: readAttribute(dir, "ports/1/gid_attrs/types/0"), NetDev: netDev}}
			info.Address = netip.AddrPortFrom(gid.Unmap(), RoCEPort)
		}
		list = append(list, info)
	}
	return list
}

func readAttribute(dir, name string) string {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
