package doctor

import (
	"context"
	"net/netip"

	"github.com/rdmashim/rdmashim/kshim/supervise/notif"
	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/uapi"
)

// System holds the doctor's questions to a machine. Running fills it with the
// real one's answers; a nil function is a fact that this system does not tell.
type System struct {
	// Kernel has network devices, RDMA devices, files (Root) and release.
	Kernel netlinkmgr.Kernel
	// Open opens a device.
	Open func(device string) (*uapi.Device, error)
	// OpenFile opens a device file for reading and writing, and closes it.
	OpenFile func(path string) error
	// Memlock is how many bytes of memory this process may lock; -1 is no
	// limit.
	Memlock func() (int64, error)
	// Descriptors is how many files this process may have open.
	Descriptors func() (int64, error)
	// Route is the route of packets to dst with the source src, if valid.
	Route func(dst, src netip.Addr) (Route, error)
	// Rules lists the packet filter; fs.ErrNotExist where no command does.
	Rules func(ctx context.Context) ([]Ruleset, error)
	// Features are the names of a network device's active offloads, as ethtool
	// -k lists the kernel's own.
	Features func(netdev string) (map[string]bool, error)
	// Buffers are the bytes of receive and send buffer that a UDP socket gets
	// which asks for size.
	Buffers func(size int) (recv, send int, err error)
	// Segmentation says whether UDP sockets know segmentation offload when they
	// send, and when they receive; the error is of the socket to ask.
	Segmentation func() (send, recv bool, err error)
	// Near tells whether a soft device would be met through shared memory; see
	// shm.Probe.
	Near func(device netip.AddrPort) error
	// Library says why C programs cannot be reached by a library, and
	// Supervisor what Linux has for the other way, or why it has not.
	Library    func() error
	Supervisor func() (notif.Support, error)
}

// Route is where packets to an address go.
type Route struct {
	NetDev  string
	Src     netip.Addr // the source address, if the kernel chooses it
	Gateway netip.Addr // invalid on the own link
	MTU     int        // 0: the network device's
	Local   bool       // stays on this machine
}
