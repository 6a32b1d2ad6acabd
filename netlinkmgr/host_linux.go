package netlinkmgr

import (
	"context"
	"os"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Running is the running kernel, in the caller's network namespace.
func Running() (Kernel, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return Kernel{}, &OpError{"ask for the kernel's release", err}
	}
	return Kernel{
		RDMA: exchangeRDMA, NetDevs: listNetDevs, SetNetDev: setNetDev, SetMTU: setMTU,
		ModuleFiles: moduleFiles, InsertModule: insertModule, RemoveModule: removeModule,
		Listen:  listen,
		Root:    os.DirFS("/"),
		Release: unix.ByteSliceToString(u.Release[:]),
	}, nil
}

// answerWithin bounds one exchange in seconds: the kernel answers while it is
// asked, but creating a link may wait for its locks.
const answerWithin = 30

// exchangeRDMA carries one request over a socket of its own.
func exchangeRDMA(_ context.Context, r Request) ([][]byte, error) {
	s, err := nl.Subscribe(unix.NETLINK_RDMA) // to no group
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
