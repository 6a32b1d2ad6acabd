package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/gidtable"
)

const (
	sysVerbs = "/sys/class/infiniband_verbs"
	sysIB    = "/sys/class/infiniband"
	devDir   = "/dev/infiniband"
)

// ReadAttr reads an attribute's text, without the line's end.
func ReadAttr(k kshim.Kernel, name string) (string, error) { return readText(k, name, 4096) }

// readText is ReadAttr for a text of at most size bytes.
func readText(k kshim.Kernel, name string, size int) (string, error) {
	f, err := k.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	buf := make([]byte, size)
	n, err := f.Read(context.Background(), buf)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return strings.TrimSpace(string(buf[:n])), nil
}

// Devices lists the RDMA devices. No RDMA support at all is an empty list.
func Devices(k kshim.Kernel) ([]DeviceInfo, error) {
	nodes, err := k.ReadDir(sysVerbs)
	if errors.Is(err, syscall.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, &Error{Op: "list devices", Err: err}
	}
	var list []DeviceInfo
	for _, node := range nodes {
		if !strings.HasPrefix(node, "uverbs") {
			continue
		}
		info, err := deviceInfo(k, node)
		if errors.Is(err, syscall.ENOENT) {
			continue // removed while we read
		}
		if err != nil {
			return nil, &Error{Op: "list devices", Object: node, Err: err}
		}
		list = append(list, info)
	}
	return list, nil
}

func deviceInfo(k kshim.Kernel, node string) (DeviceInfo, error) {
	info := DeviceInfo{Node: path.Join(devDir, node)}
	var err error
	if info.Name, err = ReadAttr(k, path.Join(sysVerbs, node, "ibdev")); err != nil {
		return info, err
	}
	version, err := ReadAttr(k, path.Join(sysVerbs, node, "abi_version"))
	if err != nil {
		return info, err
	}
	if info.ABIVersion, err = strconv.Atoi(version); err != nil {
		return info, fmt.Errorf("abi_version %q: %w", version, syscall.EPROTO)
	}
	// Of the drivers only rxe has this attribute: the network interface it was
	// made on.
	if parent, err := ReadAttr(k, path.Join(sysIB, info.Name, "parent")); err == nil {
		info.NetDev, info.Driver = parent, abi.DriverRXE
	}
	return info, nil
}

func findDevice(k kshim.Kernel, name string) (DeviceInfo, error) {
	list, err := Devices(k)
	if err != nil {
		return DeviceInfo{}, err
	}
	names := make([]string, 0, len(list))
	for _, d := range list {
		if d.Name == name {
			return d, nil
		}
		names = append(names, d.Name)
	}
	if len(names) == 0 {
		return DeviceInfo{}, fmt.Errorf("%w: there are none", errNoDevice)
	}
	return DeviceInfo{}, fmt.Errorf("%w: there are %s", errNoDevice, strings.Join(names, ", "))
}

// readCounters reads the mini kernel's table of counters, or a directory of one
// number a file, which costs a call of the kernel or more for each. Files that
// hold something else (lifespan) are left out.
func readCounters(k kshim.Kernel, dir string) (map[string]uint64, error) {
	if table, err := readText(k, dir+"_now", 1<<16); err == nil {
		counters := map[string]uint64{}
		for line := range strings.Lines(table) {
			name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
			v, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("counter %q: %w", line, syscall.EPROTO)
			}
			counters[name] = v
		}
		return counters, nil
	}
	names, err := k.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	counters := make(map[string]uint64, len(names))
	for _, name := range names {
		text, err := ReadAttr(k, path.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if v, err := strconv.ParseUint(text, 10, 64); err == nil && name != "lifespan" {
			counters[name] = v
		}
	}
	return counters, nil
}

// SysfsGIDs reads a port's GID table without opening the device, or where the
// kernel has no QUERY_GID_TABLE (before 5.10).
func SysfsGIDs(k kshim.Kernel, device string, port uint8) ([]GID, error) {
	line := func(file string) string {
		text, _ := ReadAttr(k, file)
		return text
	}
	entries, err := gidtable.Read(k.ReadDir, line, path.Join(sysIB, device, "ports", strconv.Itoa(int(port))))
	return FromSysfs(entries), err
}

// FromSysfs gives entries that were read from sysfs as the kernel's.
func FromSysfs(entries []gidtable.Entry) []GID {
	var list []GID
	for _, e := range entries {
		g := GID{Index: e.Index, Addr: e.Addr, Type: abi.GIDTypeIB}
		switch e.Type {
		case gidtable.TypeV1:
			g.Type = abi.GIDTypeRoCEv1
		case gidtable.TypeV2:
			g.Type = abi.GIDTypeRoCEv2
		}
		list = append(list, g)
	}
	return list
}
