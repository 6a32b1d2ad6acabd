package emu

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
)

// node is a directory or an attribute of sysfs, made when it is looked at:
// one of dir and text is set.
type node struct {
	dir  func() []entry
	find func(name string) (node, bool) // a quicker way than dir to one entry; may be nil
	text func() (string, error)
}

func (n *node) lookup(name string) (node, bool) {
	if n.find != nil {
		return n.find(name)
	}
	list := n.dir()
	i := slices.IndexFunc(list, func(e entry) bool { return e.name == name })
	if i < 0 {
		return node{}, false
	}
	return list[i].node, true
}

type entry struct {
	name string
	node node
}

func dir(list func() []entry) node { return node{dir: list} }

func attribute(format string, args ...any) node {
	return node{text: func() (string, error) { return fmt.Sprintf(format, args...) + "\n", nil }}
}

func (ns *namespace) readDir(path string) ([]string, error) {
	n, err := ns.walk(path)
	if err != nil {
		return nil, err
	}
	if n.dir == nil {
		return nil, fail(syscall.ENOTDIR, "not a directory")
	}
	var names []string
	for _, e := range n.dir() {
		names = append(names, e.name)
	}
	slices.Sort(names)
	return names, nil
}

func (ns *namespace) readAttribute(path string) (string, error) {
	n, err := ns.walk(path)
	if err != nil {
		return "", err
	}
	if n.text == nil {
		return "", fail(syscall.EISDIR, "a directory")
	}
	return n.text()
}

// walk follows a path from the root.
func (ns *namespace) walk(path string) (node, error) {
	if !strings.HasPrefix(path, "/") {
		return node{}, fail(syscall.ENOENT, "the path is not absolute")
	}
	at := dir(ns.root)
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if name == "" {
			continue // the root itself
		}
		if at.dir == nil {
			return node{}, fail(syscall.ENOTDIR, "something before %q is not a directory", name)
		}
		next, ok := at.lookup(name)
		if !ok {
			return node{}, fail(syscall.ENOENT, "there is no %q", name)
		}
		at = next
	}
	return at, nil
}

func one(name string, n node) func() []entry {
	return func() []entry { return []entry{{name, n}} }
}

func (ns *namespace) root() []entry {
	class := []entry{{"infiniband", dir(ns.classInfiniband)}}
	dev := []entry{{"kmsg", node{text: ns.machine.kmsg.text}}}
	if ns.machine.hasUverbs() {
		class = append(class, entry{"infiniband_verbs", dir(ns.classVerbs)})
		dev = append(dev, entry{"infiniband", dir(ns.devNodes)})
		if len(ns.cmDevices()) > 0 {
			class = append(class, entry{"misc", dir(one(nodeCM, dir(cmEntries)))})
		}
	}
	return []entry{
		{"dev", dir(func() []entry { return dev })},
		{"proc", dir(one("modules", node{text: ns.machine.procModules}))},
		{"sys", dir(func() []entry {
			return []entry{{"class", dir(func() []entry { return class })}, {"module", dir(ns.machine.sysModules)}}
		})},
	}
}

func (ns *namespace) devNodes() []entry {
	file := node{text: func() (string, error) { return "", fail(syscall.ENXIO, "a device file") }}
	var list []entry
	for _, d := range ns.nodes() {
		list = append(list, entry{d.node(), file})
	}
	if len(ns.cmDevices()) > 0 {
		list = append(list, entry{nodeCM, file})
	}
	return list
}

// cmEntries are /sys/class/misc/rdma_cm.
func cmEntries() []entry {
	return []entry{{"abi_version", attribute("%d", abi.UCMABIVersion)}, {"dev", attribute("%d:%d", miscMajor, minorCM)}}
}

const (
	uverbsMajor = 231 // IB_UVERBS_MAJOR
	uverbsMinor = 192 // IB_UVERBS_BASE_MINOR
	miscMajor   = 10  // MISC_MAJOR
	minorCM     = 58  // which Linux gives out as it comes
)

// classVerbs is /sys/class/infiniband_verbs.
func (ns *namespace) classVerbs() []entry {
	list := []entry{{"abi_version", attribute("%d", abi.UverbsABIVersion)}}
	for _, d := range ns.nodes() {
		list = append(list, entry{d.node(), dir(func() []entry {
			return []entry{
				{"abi_version", attribute("%d", d.providerABI())},
				{"dev", attribute("%d:%d", uverbsMajor, uverbsMinor+d.number)},
				{"ibdev", attribute("%s", d.name)},
				{"power", dir(powerEntries)},
				{"uevent", attribute("MAJOR=%d\nMINOR=%d\nDEVNAME=infiniband/%s\nDEVMODE=0666", uverbsMajor, uverbsMinor+d.number, d.node())},
			}
		})})
	}
	return list
}

// providerABI is ib_device_ops.uverbs_abi_ver: the version of the driver's part
// of commands.
func (d *device) providerABI() int {
	if abi.DriverID(d.DriverID()) == abi.DriverRXE {
		return abi.RXEABIVersionMax
	}
	return 1
}

// classInfiniband is /sys/class/infiniband.
func (ns *namespace) classInfiniband() []entry {
	var list []entry
	for _, d := range ns.list() {
		list = append(list, entry{d.name, dir(d.sysfs)})
	}
	return list
}

func (d *device) sysfs() []entry {
	return []entry{
		{"fw_ver", attribute("%s", firmware(d.attr.FWVer))},
		{"node_desc", attribute("%s", d.name)},
		{"node_guid", attribute("%s", guid(d.attr.NodeGUID))},
		{"node_type", attribute("%d: CA", abi.NodeIBCA)},
		{"parent", attribute("%s", d.NetDev())},
		{"power", dir(powerEntries)},
		{"uevent", attribute("NAME=%s", d.name)},
		{"sys_image_guid", attribute("%s", guid(d.attr.SysImageGUID))},
		{"ports", dir(func() []entry {
			var ports []entry
			for p := uint8(1); d.portValid(p); p++ {
				ports = append(ports, entry{strconv.Itoa(int(p)), dir(func() []entry { return d.sysfsPort(p) })})
			}
			return ports
		})},
	}
}

func guid(v uint64) string {
	return fmt.Sprintf("%04x:%04x:%04x:%04x", v>>48, v>>32&0xffff, v>>16&0xffff, v&0xffff)
}

// sysfsPort is ports/N. An attribute whose port cannot be queried is not there.
func (d *device) sysfsPort(port uint8) []entry {
	list := []entry{
		{"hw_counters", dir(func() []entry {
			// Linux may answer what it read lifespan milliseconds ago.
			return append(counters(d.Counters()), entry{"lifespan", attribute("0")})
		})},
		{"hw_counters_now", node{text: d.countersNow}},
		{"qp", dir(d.sysfsQPs)},
	}
	a, err := d.QueryPort(port)
	if err != nil {
		return list
	}
	return append(list,
		entry{"cap_mask", attribute("0x%08x", a.PortCapFlags)},
		entry{"gid_attrs", dir(func() []entry {
			return []entry{
				{"ndevs", d.gidTable(port, a.GIDTblLen, gidNetDev)},
				{"types", d.gidTable(port, a.GIDTblLen, gidType)},
			}
		})},
		entry{"gids", d.gidTable(port, a.GIDTblLen, gidText)},
		entry{"lid", attribute("0x%x", a.LID)},
		entry{"lid_mask_count", attribute("%d", a.LMC)},
		entry{"link_layer", attribute("%s", linkLayerText(a.LinkLayer))},
		entry{"phys_state", attribute("%d: %s", a.PhysState, physStateText(a.PhysState))},
		entry{"pkeys", dir(func() []entry {
			var list []entry
			for i := range int(a.PkeyTblLen) {
				list = append(list, entry{strconv.Itoa(i), attribute("0xffff")})
			}
			return list
		})},
		entry{"rate", attribute("%s", rateText(a.ActiveSpeed, a.ActiveWidth))},
		entry{"sm_lid", attribute("0x%x", a.SMLID)},
		entry{"sm_sl", attribute("%d", a.SMSL)},
		entry{"state", attribute("%d: %s", a.State, a.State)},
	)
}

// gidTable is a directory with a file for each place in the GID table, taken or
// not. rxe has 1024 places.
func (d *device) gidTable(port uint8, size uint32, text func(*driver.GIDEntry) (string, error)) node {
	place := func(i int) node {
		return node{text: func() (string, error) {
			for _, e := range d.GIDs(port) {
				if e.Index == i {
					return text(&e)
				}
			}
			return text(nil)
		}}
	}
	return node{
		dir: func() []entry {
			list := make([]entry, size)
			for i := range list {
				list[i] = entry{strconv.Itoa(i), place(i)}
			}
			return list
		},
		find: func(name string) (node, bool) {
			i, err := strconv.ParseUint(name, 10, 32)
			if err != nil || i >= uint64(size) || strconv.FormatUint(i, 10) != name {
				return node{}, false
			}
			return place(int(i)), true
		},
	}
}

// gidText writes all 16 bytes out; an empty place is all zero.
func gidText(e *driver.GIDEntry) (string, error) {
	gid := netip.IPv6Unspecified()
	if e != nil {
		gid = netip.AddrFrom16(e.GID.As16())
	}
	return gid.StringExpanded() + "\n", nil
}

func gidType(e *driver.GIDEntry) (string, error) {
	if e == nil {
		return "", fail(syscall.EINVAL, "the place in the GID table is empty")
	}
	if abi.GIDType(e.Type) == abi.GIDTypeRoCEv2 {
		return "RoCE v2\n", nil
	}
	return "IB/RoCE v1\n", nil
}

func gidNetDev(e *driver.GIDEntry) (string, error) {
	if e == nil {
		return "", fail(syscall.EINVAL, "the place in the GID table is empty")
	}
	return e.NetDev + "\n", nil
}

func linkLayerText(l abi.LinkLayer) string {
	switch l {
	case abi.LinkLayerEthernet:
		return "Ethernet"
	case abi.LinkLayerInfiniBand, abi.LinkLayerUnspecified:
		return "InfiniBand"
	}
	return "Unknown"
}

func physStateText(s abi.PhysState) string {
	names := [...]string{"<unknown>", "Sleep", "Polling", "Disabled", "PortConfigurationTraining",
		"LinkUp", "LinkErrorRecovery", "Phy Test"}
	if int(s) < len(names) {
		return names[s]
	}
	return names[0]
}

// rateText is the port's rate as sysfs.c:rate_show writes it.
func rateText(speed, width uint8) string {
	speeds := map[uint8]struct {
		tenths int // of a Gb/s, per lane
		name   string
	}{
		1: {25, "SDR"}, 2: {50, "DDR"}, 4: {100, "QDR"}, 8: {100, "FDR10"}, 16: {140, "FDR"}, 32: {250, "EDR"}, 64: {500, "HDR"},
	}
	s, ok := speeds[speed]
	if !ok {
		s = speeds[1] // as an unknown one is there
	}
	lanes := map[uint8]int{1: 1, 2: 4, 4: 8, 8: 12, 16: 2}[width]
	tenths := s.tenths * lanes
	half := ""
	if tenths%10 != 0 {
		half = ".5"
	}
	return fmt.Sprintf("%d%s Gb/sec (%dX %s)", tenths/10, half, lanes, s.name)
}

// firmware is the version's three parts; a device without firmware has none.
func firmware(v uint64) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d", v>>32, v>>16&0xffff, v&0xffff)
}

// powerEntries are the files that the driver core shows of every device without
// power management.
func powerEntries() []entry {
	return []entry{
		{"async", attribute("disabled")},
		{"autosuspend_delay_ms", node{text: func() (string, error) { return "", fail(syscall.EIO, "the device is never suspended") }}},
		{"control", attribute("auto")},
		{"runtime_active_kids", attribute("0")},
		{"runtime_active_time", attribute("0")},
		{"runtime_enabled", attribute("disabled")},
		{"runtime_status", attribute("unsupported")},
		{"runtime_suspended_time", attribute("0")},
		{"runtime_usage", attribute("0")},
	}
}

func counters(m map[string]uint64) []entry {
	var entries []entry
	for name, value := range m {
		entries = append(entries, entry{name, attribute("%d", value)})
	}
	return entries
}

// countersNow is ports/N/hw_counters_now, which Linux does not have: all of
// hw_counters at one moment, a line "name value" for each.
func (d *device) countersNow() (string, error) {
	var b strings.Builder
	m := d.Counters()
	for _, name := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "%s %d\n", name, m[name])
	}
	return b.String(), nil
}

// sysfsQPs is ports/N/qp, which Linux does not have: a file for each queue pair
// of the device, one line of JSON.
func (d *device) sysfsQPs() []entry {
	d.mu.Lock()
	all := maps.Clone(d.qps)
	d.mu.Unlock()
	var list []entry
	for n, q := range all {
		list = append(list, entry{strconv.Itoa(int(n)), node{text: q.status}})
	}
	return list
}

func (q *queuePair) status() (string, error) {
	q.mu.RLock()
	defer q.release()
	if q.dead {
		return "", fail(syscall.ENOENT, "the queue pair is gone")
	}
	status := q.qp.Status()
	if status == nil {
		return "", fail(syscall.EOPNOTSUPP, "the driver says nothing of its queue pairs")
	}
	text, err := json.Marshal(status)
	return string(text) + "\n", err
}
