package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/preload"
	"github.com/rdmashim/rdmashim/kshim/supervise/notif"
	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/rnic/link/shm"
	"github.com/rdmashim/rdmashim/uapi"
)

// Running is this machine, in the caller's network namespace.
func Running() (System, error) {
	k, err := netlinkmgr.Running()
	if err != nil {
		return System{}, err
	}
	return System{
		Kernel:       k,
		Open:         func(device string) (*uapi.Device, error) { return uapi.Open(device, uapi.OpenConfig{}) },
		OpenFile:     openFile,
		Memlock:      func() (int64, error) { return limit(unix.RLIMIT_MEMLOCK) },
		Descriptors:  func() (int64, error) { return limit(unix.RLIMIT_NOFILE) },
		Route:        route,
		Rules:        rules,
		Features:     features,
		Buffers:      buffers,
		Segmentation: segmentation,
		Near:         near,
		Library:      preload.Possible,
		Supervisor:   sync.OnceValues(notif.Check),
	}, nil
}

// near asks with the options of the environment.
func near(device netip.AddrPort) error {
	o, err := shm.EnvOptions()
	if err != nil {
		return err
	}
	return shm.Probe(o, device)
}

func openFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// limit is the process's limit of a resource; -1 is none.
func limit(resource int) (int64, error) {
	var r unix.Rlimit
	if err := unix.Getrlimit(resource, &r); err != nil {
		return 0, os.NewSyscallError("getrlimit", err)
	}
	if r.Cur == unix.RLIM_INFINITY || int64(r.Cur) < 0 {
		return -1, nil
	}
	return int64(r.Cur), nil
}

func route(dst, src netip.Addr) (Route, error) {
	o := &netlink.RouteGetOptions{}
	if src.IsValid() {
		o.SrcAddr = src.AsSlice()
	}
	list, err := netlink.RouteGetWithOptions(dst.AsSlice(), o)
	if err != nil {
		return Route{}, err
	}
	if len(list) == 0 {
		return Route{}, unix.ENETUNREACH
	}
	r := list[0]
	switch r.Type {
	case unix.RTN_UNREACHABLE, unix.RTN_BLACKHOLE, unix.RTN_PROHIBIT, unix.RTN_THROW:
		return Route{}, unix.EHOSTUNREACH
	}
	out := Route{MTU: r.MTU, Local: r.Type == unix.RTN_LOCAL}
	if a, ok := netip.AddrFromSlice(r.Src); ok {
		out.Src = a.Unmap()
	}
	if a, ok := netip.AddrFromSlice(r.Gw); ok {
		out.Gateway = a.Unmap()
	}
	l, err := netlink.LinkByIndex(r.LinkIndex)
	if err != nil {
		return Route{}, err
	}
	out.NetDev = l.Attrs().Name
	return out, nil
}

// rules asks the commands that are here: nft, else iptables for the same rules;
// and those of the old tables, if there are such.
func rules(ctx context.Context) (list []Ruleset, err error) {
	ask := func(tool string, command ...string) {
		path, missing := exec.LookPath(command[0])
		if missing != nil {
			if strings.Contains(tool, "legacy") {
				err = fmt.Errorf("%s, which lists the old tables, is not installed (package iptables)", command[0])
			}
			return
		}
		text, failed := exec.CommandContext(ctx, path, command[1:]...).Output()
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", command[0], failed))
			return
		}
		list = append(list, Ruleset{tool, string(text)})
	}
	if ask(nft, nft, "list", "ruleset"); list == nil && err == nil {
		ask("iptables", "iptables-save")
		ask("ip6tables", "ip6tables-save")
	}
	for _, ip := range []string{"ip", "ip6"} {
		if tables, _ := os.ReadFile("/proc/net/" + ip + "_tables_names"); len(tables) > 0 {
			ask(ip+"tables-legacy", ip+"tables-legacy-save")
		}
	}
	if list == nil && err == nil {
		return nil, fs.ErrNotExist
	}
	return list, err
}

// features asks for a network device's offloads that are active.
func features(netdev string) (map[string]bool, error) {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return nil, err
	}
	defer e.Close()
	return e.Features(netdev)
}

// udpSocket lends a fresh UDP socket.
func udpSocket(f func(fd int) error) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if errors.Is(err, unix.EAFNOSUPPORT) {
		fd, err = unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	}
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	return f(fd)
}

// buffers asks as a soft device does: beyond the system's limit where it may.
// Linux grants twice of what it counts, for its own book-keeping (socket(7)).
func buffers(size int) (recv, send int, err error) {
	err = udpSocket(func(fd int) error {
		ask := func(force, plain int) {
			if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, size) != nil {
				_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, plain, size)
			}
		}
		ask(unix.SO_RCVBUFFORCE, unix.SO_RCVBUF)
		ask(unix.SO_SNDBUFFORCE, unix.SO_SNDBUF)
		r, err1 := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
		s, err2 := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
		recv, send = r/2, s/2
		return errors.Join(err1, err2)
	})
	return recv, send, err
}

func segmentation() (send, recv bool, err error) {
	err = udpSocket(func(fd int) error {
		send = unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT, 0) == nil
		recv = unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1) == nil
		return nil
	})
	return send, recv, err
}
