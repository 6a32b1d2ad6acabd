package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/netlinktest"
	"github.com/rdmashim/rdmashim/uapi"
)

// bench is a machine of functions and files, healthy until a test breaks it.
type bench struct {
	System
	k *netlinktest.Kernel
}

const (
	allCaps = "Name:\ttest\nCapEff:\t000001ffffffffff\n"
	noCaps  = "Name:\ttest\nCapEff:\t0000000000000000\n"
	// kernelSockets is /proc/net/udp with rdma_rxe's socket, as Linux 6.1 shows
	// it.
	kernelSockets = `   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
   58: 00000000:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 1351 2 000000008c3957b8 0
`
)

// newBench has eth0 with 10.0.2.15/24 and rxe0 on it, its modules loaded, in
// the initial network namespace.
func newBench() *bench {
	k := netlinktest.New()
	k.LoadRXE()
	k.Modules["rdma_ucm"] = true
	k.AddLink("rxe0", "eth0", true)
	k.Files["proc/sys/net/core/somaxconn"] = "4096\n"
	k.Files["proc/sys/net/core/dev_weight"] = "64\n"
	k.Files["proc/sys/net/core/rmem_max"] = "4194304\n"
	k.Files["proc/self/net/udp"] = kernelSockets
	k.Files["proc/self/status"] = noCaps
	for _, d := range []string{"all", "eth0"} {
		k.Files["proc/sys/net/ipv4/conf/"+d+"/rp_filter"] = "0\n"
		k.Files["proc/sys/net/ipv4/conf/"+d+"/arp_ignore"] = "0\n"
	}
	return &bench{k: k, System: System{
		Kernel:   k.Functions(),
		Open:     func(string) (*uapi.Device, error) { return nil, syscall.ENOTSUP },
		OpenFile: func(string) error { return nil },
		Memlock:  func() (int64, error) { return -1, nil },
		Route: func(dst, _ netip.Addr) (Route, error) {
			if dst == netip.MustParseAddr("198.51.100.1") {
				return Route{NetDev: "eth0", Gateway: netip.MustParseAddr("10.0.2.1")}, nil
			}
			return Route{NetDev: "eth0"}, nil
		},
		Rules:        func(context.Context) ([]Ruleset, error) { return nil, nil },
		Features:     func(string) (map[string]bool, error) { return on("tx-generic-segmentation", "rx-gro"), nil },
		Buffers:      func(n int) (int, int, error) { return n, n, nil },
		Segmentation: func() (bool, bool, error) { return true, true, nil },
		Descriptors:  func() (int64, error) { return 1024, nil },
	}}
}

func on(names ...string) map[string]bool {
	m := map[string]bool{}
	for _, n := range names {
		m[n] = true
	}
	return m
}

// opens lets the machine open real soft devices.
func (b *bench) opens() *bench {
	b.Open = func(device string) (*uapi.Device, error) { return uapi.Open(device, uapi.OpenConfig{}) }
	return b
}

// examine runs all checks and gives the one of a name.
func (b *bench) examine(t *testing.T, o Options, name string) Check {
	t.Helper()
	r, err := Run(t.Context(), b.System, o)
	require.NoError(t, err)
	return find(t, r, name)
}

func find(t *testing.T, r *Report, name string) Check {
	t.Helper()
	require.Equal(t, checkNames(), names(r), "every check is in the report, in the table's order")
	i := slices.IndexFunc(r.Checks, func(c Check) bool { return c.Name == name })
	require.GreaterOrEqual(t, i, 0, name)
	for _, c := range r.Checks {
		require.NotEmpty(t, c.Detail, c.Name)
		require.Equal(t, c.Status == Warn || c.Status == Fail, c.Fix != "", "%s: %s says what mends it, and only a warning or a failure does", c.Name, c.Status)
	}
	require.Equal(t, r.count(Fail) == 0, r.OK)
	return r.Checks[i]
}

// requireCheck holds what a check found to what is expected of it.
func requireCheck(t *testing.T, got Check, status Status, says, fix string) {
	t.Helper()
	require.Equal(t, status, got.Status, "%+v", got)
	require.Contains(t, got.Detail, says)
	require.Contains(t, got.Fix, fix)
}

func names(r *Report) (list []string) {
	for _, c := range r.Checks {
		list = append(list, c.Name)
	}
	return list
}

func dev(name string, index int, addrs ...string) netlinkmgr.NetDev {
	return netlinkmgr.NetDev{Index: index, Name: name, Kind: "device", Ethernet: true, Up: true, Carrier: true, MTU: 1500, Addrs: netlinktest.Addrs(addrs...)}
}

// breakage is one thing that goes wrong with rxe0, and what the doctor says.
type breakage struct {
	name   string
	check  string
	do     func(*bench)
	o      Options
	status Status
	says   string // in the detail
	fix    string // in the fix
}

func deny(err error) func(*bench) {
	return func(b *bench) {
		b.OpenFile = func(path string) error { return &fs.PathError{Op: "open", Path: path, Err: err} }
	}
}

var neighbour = netip.MustParseAddr("10.0.2.99")

// kernelBreakages are things that go wrong with a kernel device.
var kernelBreakages = []breakage{
	{"not loaded", "modules", func(b *bench) { delete(b.k.Modules, "rdma_rxe") }, Options{}, Fail, "not loaded: rdma_rxe", "rdmashim link up"},
	{"no module", "modules", func(b *bench) {
		delete(b.k.Modules, "rdma_rxe")
		b.k.Files["lib/modules/"+netlinktest.Release+"/modules.dep"] = "a.ko:\n"
	}, Options{}, Fail, "no module rdma_rxe in /lib/modules/" + netlinktest.Release, "apt-get install linux-image-"},
	{"no module on Ubuntu", "modules", func(b *bench) {
		delete(b.k.Modules, "rdma_rxe")
		b.k.Files["lib/modules/"+netlinktest.Release+"/modules.dep"] = "a.ko:\n"
		b.k.Files["etc/os-release"] = "ID=ubuntu\n"
	}, Options{}, Fail, "rdma_rxe", "apt-get install linux-modules-extra-" + netlinktest.Release},
	{"loading forbidden", "modules", func(b *bench) {
		delete(b.k.Modules, "rdma_rxe")
		b.k.Files["proc/sys/kernel/modules_disabled"] = "1\n"
	}, Options{}, Fail, "kernel.modules_disabled", "reboot"},
	{"no rdma_ucm", "modules", func(b *bench) { delete(b.k.Modules, "rdma_ucm") }, Options{}, Warn, "rdma_ucm", "modprobe rdma_ucm"},
	{"no core", "netns", func(b *bench) { clear(b.k.Modules) }, Options{}, Skip, "RDMA core is not loaded", ""},
	{"exclusive, elsewhere", "netns", func(b *bench) { b.k.Exclusive = true; b.k.Links = nil }, Options{}, Fail, "exclusive", "rdma dev set rxe0 netns NAMESPACE"},
	{"netdev elsewhere", "netns", func(b *bench) { b.k.Devs = slices.Delete(b.k.Devs, 1, 2) }, Options{}, Fail, "eth0 is in another namespace", "soft device"},
	{"no netdev", "netdev", func(b *bench) { b.k.Devs = slices.Delete(b.k.Devs, 1, 2) }, Options{}, Fail, "not in this network namespace", "eth0"},
	{"no socket in this namespace", "netns", func(b *bench) {
		delete(b.k.Files, "proc/sys/net/core/dev_weight")
		b.k.Files["proc/self/net/udp"] = ""
	}, Options{}, Fail, "from Linux 7.1", "rdmashim doctor soft:10.0.2.15"},
	{"socket in this namespace", "netns", func(b *bench) { delete(b.k.Files, "proc/sys/net/core/dev_weight") }, Options{}, Pass, "shared", ""},
	{"no file", "files", deny(syscall.ENOENT), Options{}, Fail, "/dev/infiniband/uverbs0 is not there", "udevadm trigger"},
	{"no file in a container", "files", func(b *bench) { deny(syscall.ENOENT)(b); b.k.Files[".dockerenv"] = "" }, Options{}, Fail, "/dev/infiniband/uverbs0", "--device /dev/infiniband/uverbs0"},
	{"file of root", "files", deny(syscall.EACCES), Options{}, Fail, "may not be opened", "chmod a+rw /dev/infiniband/uverbs0"},
	{"device cgroup", "files", deny(syscall.EPERM), Options{}, Fail, "control group", "--device"},
	{"file broken", "files", deny(syscall.ENXIO), Options{}, Fail, "no such device", "dmesg"},
	{"no rdma_cm", "files", func(b *bench) {
		b.OpenFile = func(path string) error {
			if path == "/dev/infiniband/rdma_cm" {
				return fs.ErrNotExist
			}
			return nil
		}
	}, Options{}, Warn, "rdma_cm", "modprobe rdma_ucm"},
	{"no ib_uverbs", "files", func(b *bench) { delete(b.k.Modules, "ib_uverbs") }, Options{}, Fail, "no verbs device", "modprobe ib_uverbs"},
	{"memlock 16 KiB", "memlock", func(b *bench) { b.Memlock = func() (int64, error) { return 16 << 10, nil } }, Options{}, Fail, "16 KiB", "ulimit -l unlimited"},
	{"memlock 8 MiB", "memlock", func(b *bench) { b.Memlock = func() (int64, error) { return 8 << 20, nil } }, Options{}, Warn, "8 MiB", "LimitMEMLOCK=infinity"},
	{"few descriptors", "descriptors", func(b *bench) { b.Descriptors = func() (int64, error) { return 63, nil } }, Options{}, Warn, "63 files", "ulimit -n 1024"},
	{"memlock with CAP_IPC_LOCK", "memlock", func(b *bench) {
		b.Memlock = func() (int64, error) { return 16 << 10, nil }
		b.k.Files["proc/self/status"] = allCaps
	}, Options{}, Pass, "CAP_IPC_LOCK", ""},
	{"netdev down", "netdev", func(b *bench) { b.k.Dev("eth0").Up = false }, Options{}, Fail, "eth0 is down", "ip link set eth0 up"},
	{"no carrier", "netdev", func(b *bench) { b.k.Dev("eth0").Carrier = false }, Options{}, Fail, "no carrier", "cable"},
	{"MTU tiny", "mtu", func(b *bench) { b.k.Dev("eth0").MTU = 200 }, Options{}, Fail, "is 200", "ip link set eth0 mtu"},
	{"MTU small", "mtu", func(b *bench) { b.k.Dev("eth0").MTU = 700 }, Options{}, Warn, "packets of 512 bytes", "ip link set eth0 mtu"},
	{"port down", "port", func(b *bench) { b.k.Dev("eth0").Up = false }, Options{}, Fail, "port 1 is DOWN", "ip link set eth0 up"},
	{"GIDs of a netdev that is down", "gid", func(b *bench) { b.k.Dev("eth0").Up = false }, Options{}, Fail, "eth0 is down", "ip link set eth0 up"},
	{"no address", "gid", func(b *bench) { b.k.Dev("eth0").Addrs = nil }, Options{}, Fail, "none of the 1 GIDs can be used", "ip addr add"},
	{"link-local only", "gid", func(b *bench) { b.k.Dev("eth0").Addrs = netlinktest.Addrs("fe80::5054:ff:fe12:3456/64") }, Options{}, Warn, "link-local", "ip addr add"},
	{"card on it", "hardware", func(b *bench) { b.k.AddLink("mlx5_0", "eth0", false) }, Options{}, Warn, "mlx5_0 is on eth0", "rdmashim link delete rxe0"},
	{"card elsewhere", "hardware", func(b *bench) { b.k.AddLink("mlx5_0", "docker0", false) }, Options{}, Pass, "no RDMA card is on eth0", ""},
	{"a device before it", "hardware", func(b *bench) {
		b.k.AddLink("mana_0", "docker0", false).Index = 0
		b.k.Links[0].Index = 1
	}, Options{}, Warn, "mana_0 is another device, which programs of libibverbs find before rxe0", "ib_write_bw -d rxe0"},
	{"no route", "route", func(b *bench) {
		b.Route = func(netip.Addr, netip.Addr) (Route, error) { return Route{}, syscall.ENETUNREACH }
	}, Options{Peer: neighbour}, Fail, "no route to the peer 10.0.2.99: network is unreachable", "ip route add 10.0.2.99/32 dev eth0"},
	{"no network and no route", "route", func(b *bench) {
		b.k.Dev("eth0").Addrs = netlinktest.Addrs("10.0.2.15/32")
		b.Route = func(netip.Addr, netip.Addr) (Route, error) { return Route{}, syscall.ENETUNREACH }
	}, Options{}, Warn, "no network around it", "ip route add"},
	{"two families", "route", nil, Options{Peer: netip.MustParseAddr("fd00::1")}, Fail, "two families", "same family"},
	{"leaves by another", "source-route", func(b *bench) {
		b.Route = func(netip.Addr, netip.Addr) (Route, error) { return Route{NetDev: "eth1"}, nil }
	}, Options{}, Warn, "leave by eth1, not by eth0", "ip rule add from 10.0.2.15 table 100"},
	{"two in one network", "source-route", func(b *bench) { b.k.Devs = append(b.k.Devs, dev("eth1", 7, "10.0.2.16/24")) }, Options{}, Warn, "eth1 is in 10.0.2.0/24, too", "arp_ignore=1"},
	{"two in one network, told apart", "source-route", func(b *bench) {
		b.k.Devs = append(b.k.Devs, dev("eth1", 7, "10.0.2.16/24"))
		b.k.Files["proc/sys/net/ipv4/conf/all/arp_ignore"] = "1\n"
	}, Options{}, Pass, "leave by eth0", ""},
	{"strict, other way back", "rp_filter", func(b *bench) {
		b.k.Files["proc/sys/net/ipv4/conf/all/rp_filter"] = "1\n"
		b.Route = func(netip.Addr, netip.Addr) (Route, error) { return Route{NetDev: "eth1"}, nil }
	}, Options{}, Fail, "the way back to 10.0.2.0/24 is by eth1", "sysctl -w net.ipv4.conf.eth0.rp_filter=2"},
	{"strict, no way back", "rp_filter", func(b *bench) {
		b.k.Files["proc/sys/net/ipv4/conf/eth0/rp_filter"] = "1\n"
		b.Route = func(netip.Addr, netip.Addr) (Route, error) { return Route{}, syscall.ENETUNREACH }
	}, Options{}, Warn, "no route leads back", "rp_filter=2"},
	{"strict", "rp_filter", func(b *bench) { b.k.Files["proc/sys/net/ipv4/conf/eth0/rp_filter"] = "1\n" }, Options{}, Pass, "strict", ""},
	{"loose wins", "rp_filter", func(b *bench) {
		b.k.Files["proc/sys/net/ipv4/conf/all/rp_filter"] = "1\n"
		b.k.Files["proc/sys/net/ipv4/conf/eth0/rp_filter"] = "2\n"
	}, Options{}, Pass, "loose", ""},
	{"no socket", "udp-port", func(b *bench) { b.k.Files["proc/self/net/udp"] = "" }, Options{}, Fail, "no socket on UDP port 4791", "rmmod rdma_rxe"},
	{"somebody else's socket", "udp-port", func(b *bench) {
		delete(b.k.Modules, "rdma_rxe")
		b.k.Links = nil
		b.k.Files["proc/77/comm"] = "iperf3\n"
		b.k.Symlinks["proc/77/fd/5"] = "socket:[1351]"
	}, Options{}, Fail, "process 77 (iperf3) on 0.0.0.0:4791", "kill 77"},
	{"hidden holder", "udp-port", func(b *bench) { delete(b.k.Modules, "rdma_rxe"); b.k.Links = nil }, Options{}, Fail, "a process of user 0", "ss -ulnp"},
	{"port is free", "udp-port", func(b *bench) { b.k.Links = nil; b.k.Files["proc/self/net/udp"] = "" }, Options{}, Pass, "free", ""},
	{"filtered for ordinary users", "firewall", func(b *bench) { filters(nft, nftRules)(b); b.k.Files["proc/self/status"] = noCaps }, Options{}, Skip, "CAP_NET_ADMIN", ""},
	{"container", "nat", inContainer, Options{}, Warn, "as containers have it", "--network host"},
	{"container, neighbour", "nat", inContainer, Options{Peer: neighbour}, Skip, "CAP_NET_ADMIN", ""},
	{"not there", "loopback", func(b *bench) {
		b.k.Links = nil
		b.Open = func(string) (*uapi.Device, error) { return nil, fmt.Errorf("open: %w", syscall.ENODEV) }
	}, Options{}, Fail, "rxe0 does not open", "rdmashim link up --name rxe0"},
}

func inContainer(b *bench) {
	delete(b.k.Files, "proc/sys/net/core/dev_weight")
	b.k.Dev("eth0").Kind = "veth"
}

// TestKernelDevice breaks one thing after the other and sees the check of it.
func TestKernelDevice(t *testing.T) {
	covered := map[string]bool{}
	for _, c := range slices.Concat(kernelBreakages, filterBreakages) {
		covered[c.check] = true
		t.Run(c.name, func(t *testing.T) {
			b := newBench()
			c.o.Device = "rxe0"
			if c.status != Pass && c.status != Skip {
				healthy := b.examine(t, Options{Device: "rxe0"}, c.check)
				if c.check != "loopback" {
					require.Contains(t, []Status{Pass, Skip}, healthy.Status, "unbroken: %+v", healthy)
				}
			}
			if c.do != nil {
				c.do(b)
			}
			requireCheck(t, b.examine(t, c.o, c.check), c.status, c.says, c.fix)
		})
	}
	for _, name := range checkNames() {
		if name != "buffers" && name != "offload" { // of soft devices only
			require.True(t, covered[name], "no test breaks %s", name)
		}
	}
}
