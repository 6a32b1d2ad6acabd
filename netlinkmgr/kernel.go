package netlinkmgr

import (
	"context"
	"io/fs"
	"net/netip"
)

// Kernel holds the functions that the manager needs of a Linux system. Open
// fills it with the real one; a test's is made of functions.
type Kernel struct {
	// RDMA carries one request over NETLINK_RDMA and returns the payloads of
	// its answers. The kernel's refusal is a syscall.Errno, wrapped with the
	// kernel's own words where it sent some.
	RDMA func(ctx context.Context, r Request) ([][]byte, error)
	// NetDevs lists the network devices of this network namespace.
	NetDevs func(ctx context.Context) ([]NetDev, error)
	// SetNetDev brings a network device up or down.
	SetNetDev func(ctx context.Context, name string, up bool) error
	// SetMTU sets the MTU of a network device in bytes.
	SetMTU func(ctx context.Context, name string, mtu int) error
	// ModuleFiles lists the module files to load, in order, so that the kernel
	// has a module, and may list some that are loaded. It is an error when
	// there is no such module.
	ModuleFiles func(name string) ([]string, error)
	// InsertModule loads the module file at path (below Root) and returns
	// EEXIST when it is loaded already.
	InsertModule func(path string) error
	// RemoveModule unloads a module that is not in use.
	RemoveModule func(name string) error
	// Listen opens a source of changes until ctx ends: messages about network
	// devices, and RDMA's notifications where the kernel has them (notified;
	// Linux 6.13), else uevents.
	Listen func(ctx context.Context, notified bool) (<-chan Notice, error)
	// Root is the root of the file system, for /sys, /proc, /etc and
	// /lib/modules.
	Root fs.FS
	// Release is the running kernel's, as uname -r prints it.
	Release string
}

// Notice is one message that tells of a change. The channel is closed at the
// end.
type Notice struct {
	Source  EventSource
	Message []byte  // a uevent, or the attributes of an RDMA notification
	Link    *NetDev // a network device as it is now, without addresses
	Err     error   // messages were lost (ENOBUFS), or a socket failed
}

// NetDev is a network device.
type NetDev struct {
	Index    int
	Name     string
	Kind     string // rtnetlink's kind: device, veth, bridge, vlan, dummy …
	Loopback bool
	Ethernet bool // ARPHRD_ETHER
	Up       bool // administratively
	Carrier  bool // meaningful when Up
	Physical bool // has a device behind it: a card, or a virtual machine's
	Default  bool // a default route leaves here
	MTU      int
	MAC      string
	Addrs    []NetAddr
}

// NetAddr is an address of a network device.
type NetAddr struct {
	Prefix    netip.Prefix
	Tentative bool // IPv6: duplicate address detection has not ended, or failed
}

// Manager works on a kernel's RDMA devices. It holds no state and may be used
// by several goroutines.
type Manager struct{ k Kernel }

// New returns a manager of a kernel.
func New(k Kernel) *Manager { return &Manager{k} }

// Open returns a manager of the running kernel, in the caller's network
// namespace; ENOTSUP where that is not Linux.
func Open() (*Manager, error) {
	k, err := Running()
	if err != nil {
		return nil, err
	}
	return New(k), nil
}
