package netlinktest

import (
	"context"
	"fmt"
	"io/fs"
	"net/netip"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/netlinkmgr"
)

// Kernel is the state of a system. A test fills it before use and may change
// it under Lock.
type Kernel struct {
	sync.Mutex
	Devs    []netlinkmgr.NetDev
	Links   []*Link
	Modules map[string]bool // loaded
	// Exclusive is the network namespace mode.
	Exclusive bool
	// Notifies says that the kernel has RDMA notifications.
	Notifies bool
	// Files are added to the file system; sysfs is made from the state.
	Files map[string]string
	// Symlinks of the file system.
	Symlinks map[string]string
	// Refuse gives an error for an operation: "newlink", "dellink", "setup",
	// "setdown", "setmtu", "rename", "listen", "insert NAME", "remove NAME",
	// "setnetns", "setqkey", "move".
	Refuse map[string]error
	// Before is called, unlocked, before each operation that Refuse knows.
	Before func(op string)
	// ActiveAfter is how many queries a new link's port stays down, GIDAfter
	// how many reads of a new link's GID table find it empty.
	ActiveAfter, GIDAfter int
	// Did lists the changes that were asked for.
	Did []string

	nextIndex uint32
	listeners []chan netlinkmgr.Notice
}

// Link is an RDMA device with one port.
type Link struct {
	Index   uint32
	Name    string
	NetDev  string
	RXE     bool
	Objects Objects

	inactive, noGIDs int
}

// Objects are the objects that a link's queries show.
type Objects struct {
	QPs      []netlinkmgr.QP
	CQs      []netlinkmgr.CQ
	MRs      []netlinkmgr.MR
	PDs      []netlinkmgr.PD
	CMIDs    []netlinkmgr.CMID
	Contexts []netlinkmgr.Context
	SRQs     []netlinkmgr.SRQ
	Counters []netlinkmgr.Counter
}

// Release is the kernel's.
const Release = "6.1.0-test-amd64"

// New is a machine like a small virtual one: lo, eth0 with addresses and a
// default route, docker0 without carrier, and the modules of Debian's kernel
// on disk, none of them loaded, and no modprobe.
func New() *Kernel {
	k := &Kernel{
		Devs: []netlinkmgr.NetDev{
			{Index: 1, Name: "lo", Kind: "device", Loopback: true, Up: true, Carrier: true, MTU: 65536, Addrs: Addrs("127.0.0.1/8", "::1/128")},
			{Index: 2, Name: "eth0", Kind: "device", Ethernet: true, Up: true, Carrier: true, Physical: true, Default: true, MTU: 1500,
				MAC: "52:54:00:12:34:56", Addrs: Addrs("10.0.2.15/24", "fe80::5054:ff:fe12:3456/64")},
			{Index: 3, Name: "docker0", Kind: "bridge", Ethernet: true, Up: true, MTU: 1500, MAC: "02:42:00:00:00:01", Addrs: Addrs("172.17.0.1/16")},
		},
		Modules:  map[string]bool{},
		Files:    map[string]string{},
		Symlinks: map[string]string{},
		Refuse:   map[string]error{},
	}
	k.Files[modulesDir+"modules.dep"] = modulesDep
	k.Files["etc/os-release"] = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\n"
	k.Files["proc/self/status"] = "Name:\ttest\nCapEff:\t000001ffffffffff\n"
	return k
}

const modulesDir = "lib/modules/" + Release + "/"

const modulesDep = `kernel/crypto/crc32_generic.ko:
kernel/drivers/infiniband/core/ib_core.ko:
kernel/drivers/infiniband/core/ib_uverbs.ko: kernel/drivers/infiniband/core/ib_core.ko
kernel/drivers/infiniband/core/rdma_ucm.ko: kernel/drivers/infiniband/core/ib_uverbs.ko kernel/drivers/infiniband/core/ib_core.ko
kernel/net/ipv4/udp_tunnel.ko:
kernel/net/ipv6/ip6_udp_tunnel.ko:
kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko: kernel/drivers/infiniband/core/ib_uverbs.ko kernel/net/ipv6/ip6_udp_tunnel.ko kernel/net/ipv4/udp_tunnel.ko kernel/drivers/infiniband/core/ib_core.ko
`

// Addrs makes addresses of prefixes.
func Addrs(list ...string) (out []netlinkmgr.NetAddr) {
	for _, s := range list {
		out = append(out, netlinkmgr.NetAddr{Prefix: netip.MustParsePrefix(s)})
	}
	return out
}

// Manager gives a manager of this kernel.
func (k *Kernel) Manager() *netlinkmgr.Manager { return netlinkmgr.New(k.Functions()) }

// Functions are how a manager reaches this kernel.
func (k *Kernel) Functions() netlinkmgr.Kernel {
	return netlinkmgr.Kernel{
		RDMA: k.rdma,
		NetDevs: func(context.Context) ([]netlinkmgr.NetDev, error) {
			k.Lock()
			defer k.Unlock()
			return slices.Clone(k.Devs), nil
		},
		SetNetDev: k.setNetDev, SetMTU: k.setMTU,
		ModuleFiles: k.moduleFiles, InsertModule: k.insert, RemoveModule: k.remove, Listen: k.listen,
		Root: files{k}, Release: Release,
	}
}

// LoadRXE loads rdma_rxe and the modules that it needs.
func (k *Kernel) LoadRXE() {
	for _, m := range []string{"crc32_generic", "ib_core", "ib_uverbs", "udp_tunnel", "ip6_udp_tunnel", "rdma_rxe"} {
		k.Modules[m] = true
	}
}

// AddLink makes a link without any check.
func (k *Kernel) AddLink(name, netdev string, rxe bool) *Link {
	l := &Link{Index: k.nextIndex, Name: name, NetDev: netdev, RXE: rxe, inactive: k.ActiveAfter, noGIDs: k.GIDAfter}
	k.nextIndex++
	k.Links = append(k.Links, l)
	return l
}

// Dev finds a network device; nil when there is none.
func (k *Kernel) Dev(name string) *netlinkmgr.NetDev {
	for i := range k.Devs {
		if k.Devs[i].Name == name {
			return &k.Devs[i]
		}
	}
	return nil
}

func (k *Kernel) link(match func(*Link) bool) *Link {
	if i := slices.IndexFunc(k.Links, match); i >= 0 {
		return k.Links[i]
	}
	return nil
}

// change notes an operation and makes it under the lock, unless it is to be
// refused.
func (k *Kernel) change(op, detail string, do func() error) error {
	if k.Before != nil {
		k.Before(op)
	}
	k.Lock()
	defer k.Unlock()
	k.Did = append(k.Did, strings.TrimSpace(op+" "+detail))
	if err := k.Refuse[op]; err != nil {
		return err
	}
	return do()
}

func (k *Kernel) setNetDev(_ context.Context, name string, up bool) error {
	return k.change(map[bool]string{true: "setup", false: "setdown"}[up], name, func() error {
		d := k.Dev(name)
		if d == nil {
			return syscall.ENODEV
		}
		d.Up, d.Carrier = up, up
		return nil
	})
}

func (k *Kernel) setMTU(_ context.Context, name string, mtu int) error {
	return k.change("setmtu", fmt.Sprint(name, " ", mtu), func() error {
		d := k.Dev(name)
		switch {
		case d == nil:
			return syscall.ENODEV
		case mtu > 9000:
			return syscall.EINVAL // as virtio_net may
		}
		d.MTU = mtu
		return nil
	})
}

// rename refuses what ib_device_rename refuses.
func (k *Kernel) rename(index uint32, name string) error {
	return k.change("rename", fmt.Sprint(index, " ", name), func() error {
		l := k.link(func(l *Link) bool { return l.Index == index })
		switch {
		case l == nil:
			return syscall.EINVAL
		case k.link(func(l *Link) bool { return l.Name == name }) != nil:
			return syscall.EEXIST
		}
		l.Name = name
		return nil
	})
}

// moduleFiles reads modules.dep (depmod.d(5)): a line lists all that a module
// needs in reverse order of loading.
func (k *Kernel) moduleFiles(name string) (list []string, err error) {
	k.Lock()
	defer k.Unlock()
	for line := range strings.Lines(k.Files[modulesDir+"modules.dep"]) {
		file, needs, _ := strings.Cut(strings.TrimSpace(line), ":")
		if path.Base(file) != name+".ko" {
			continue
		}
		for _, f := range append([]string{file}, strings.Fields(needs)...) {
			list = append([]string{modulesDir + f}, list...)
		}
		return list, nil
	}
	return nil, fs.ErrNotExist
}

func (k *Kernel) insert(file string) error {
	name := strings.ReplaceAll(strings.TrimSuffix(path.Base(file), ".ko"), "-", "_")
	return k.change("insert "+name, "", func() error {
		if k.Modules[name] {
			return syscall.EEXIST
		}
		for line := range strings.Lines(modulesDep) {
			target, needs, _ := strings.Cut(line, ":")
			if !strings.HasSuffix(file, target) {
				continue
			}
			for _, n := range strings.Fields(needs) {
				if !k.Modules[strings.TrimSuffix(path.Base(n), ".ko")] {
					return syscall.ENOENT // a symbol is missing
				}
			}
		}
		k.Modules[name] = true
		return nil
	})
}

func (k *Kernel) remove(name string) error {
	return k.change("remove "+name, "", func() error {
		switch {
		case !k.Modules[name]:
			return syscall.ENOENT
		case name == "rdma_rxe" && len(k.Links) > 0:
			return syscall.EBUSY
		}
		delete(k.Modules, name)
		return nil
	})
}

// listen hands on Notify's messages.
func (k *Kernel) listen(ctx context.Context, rdma bool) (<-chan netlinkmgr.Notice, error) {
	c := make(chan netlinkmgr.Notice, 64)
	err := k.change("listen", fmt.Sprint(rdma), func() error {
		k.listeners = append(k.listeners, c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() {
		k.Lock()
		defer k.Unlock()
		k.listeners = slices.DeleteFunc(k.listeners, func(l chan netlinkmgr.Notice) bool { return l == c })
		close(c)
	})
	return c, nil
}

// Notify gives a notice to the listeners; the lock must not be held.
func (k *Kernel) Notify(n netlinkmgr.Notice) {
	k.Lock()
	defer k.Unlock()
	for _, l := range k.listeners {
		l <- n
	}
}

// refuse notes a change that has no effect here.
func (k *Kernel) refuse(op, what string) error {
	return k.change(op, what, func() error { return nil })
}

// setNetNS refuses what rdma_compatdev_set refuses.
func (k *Kernel) setNetNS(mode uint8) error {
	return k.change("setnetns", fmt.Sprint(mode), func() error {
		k.Exclusive = mode == 0
		return nil
	})
}

// newLink refuses what nldev_newlink and rxe_newlink refuse.
func (k *Kernel) newLink(name, kind, netdev string) error {
	return k.change("newlink", fmt.Sprintf("%s %s %s", name, kind, netdev), func() error {
		d := k.Dev(netdev)
		switch {
		case d == nil:
			return syscall.ENODEV
		case kind != "rxe" || !k.Modules["rdma_rxe"]:
			return syscall.EINVAL
		case d.Kind == "vlan":
			return syscall.EPERM
		case !k.Modules["crc32_generic"]:
			return syscall.ENOENT // and no modprobe to ask
		case k.link(func(l *Link) bool { return l.RXE && l.NetDev == netdev }) != nil:
			return syscall.EEXIST
		case k.link(func(l *Link) bool { return l.Name == name }) != nil:
			return syscall.ENFILE
		}
		k.AddLink(name, netdev, true)
		return nil
	})
}

func (k *Kernel) delLink(index uint32) error {
	return k.change("dellink", fmt.Sprint(index), func() error {
		i := slices.IndexFunc(k.Links, func(l *Link) bool { return l.Index == index })
		if i < 0 || !k.Links[i].RXE {
			return syscall.EINVAL
		}
		k.Links = slices.Delete(k.Links, i, i+1)
		return nil
	})
}
