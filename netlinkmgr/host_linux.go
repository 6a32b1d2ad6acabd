package netlinkmgr

import (
	"context"
	"os"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Running is the running kernel, in the caller's network namespace.
func Running() (Kernel, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return Kernel{}, &OpError{"ask for the kernel's release", err}
	}
	k := Kernel{
		In:           runningIn,
		OpenNetNS:    openNetNS,
		InsertModule: func(path string) error { return insertModule("/" + strings.TrimPrefix(path, "/")) },
		RemoveModule: removeModule,
		Watch:        watchNetDevs,
		Listen:       listen,
		Root:         os.DirFS("/"),
		Release:      unix.ByteSliceToString(u.Release[:]),
	}
	return space("").seen(k), nil
}

// space is a network namespace to act in, by its name; "" is the caller's.
type space string

// socket makes a socket in the namespace.
func socket[S any](n space, open func(netns.NsHandle) (S, error)) (S, error) {
	if n == "" {
		return open(netns.None())
	}
	ns, err := netns.GetFromName(string(n))
	if err != nil {
		var none S
		return none, err
	}
	defer ns.Close()
	return open(ns)
}

// seen fills in what differs between network namespaces.
func (s space) seen(k Kernel) Kernel {
	k.RDMA, k.NetDevs, k.SetNetDev, k.SetMTU = s.exchangeRDMA, s.listNetDevs, s.setNetDev, s.setMTU
	return k
}

// runningIn is the running kernel in a named network namespace.
func runningIn(name string) (Kernel, error) {
	k, err := Running()
	if err != nil {
		return Kernel{}, err
	}
	ns, err := netns.GetFromName(name)
	if err != nil {
		return Kernel{}, err
	}
	k.Watch, k.Listen = nil, nil
	return space(name).seen(k), ns.Close()
}

// openNetNS tries names first, as ip-netns(8) does.
func openNetNS(name string) (uint32, func(), error) {
	ns, err := netns.GetFromName(name)
	if pid, notPID := strconv.Atoi(name); err != nil && notPID == nil {
		ns, err = netns.GetFromPid(pid)
	}
	if err != nil {
		return 0, nil, err
	}
	return uint32(ns), func() { ns.Close() }, nil
}

// answerWithin bounds one exchange in seconds: the kernel answers while it is
// asked, but creating a link may wait for its locks.
const answerWithin = 30

// exchangeRDMA carries one request over a socket of its own.
func (n space) exchangeRDMA(_ context.Context, r Request) ([][]byte, error) {
	s, err := socket(n, func(ns netns.NsHandle) (*nl.NetlinkSocket, error) {
		return nl.GetNetlinkSocketAt(ns, netns.None(), unix.NETLINK_RDMA)
	})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := s.SetReceiveTimeout(&unix.Timeval{Sec: answerWithin}); err != nil {
		return nil, err
	}
	// The kernel's own words of a refusal, where it sends some (Linux 4.12).
	_ = s.SetExtAck(true)
	req := nl.NewNetlinkRequest(int(r.Type()), int(r.Flags()))
	req.AddRawData(r.Attrs)
	req.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_RDMA: {Socket: s}}
	return req.Execute(unix.NETLINK_RDMA, 0)
}
