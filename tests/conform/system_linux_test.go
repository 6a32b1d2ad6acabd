package conform

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/host"
)

// rxeName is the kernel's device under test.
func rxeName() string {
	if name := os.Getenv("CONFORM_DEVICE"); name != "" {
		return name
	}
	return "rxe0"
}

// haveRXE says whether this machine's kernel has the device.
func haveRXE() bool {
	_, err := os.Stat(filepath.Join("/sys/class/infiniband", rxeName(), "parent"))
	return err == nil
}

// kernelRXE is the real kernel's device, opened for both sides.
func kernelRXE() (*system, error) {
	kernel, err := host.New(host.Options{})
	if err != nil {
		return nil, err
	}
	name := rxeName()
	addr, err := rxeAddr(name)
	if err != nil {
		return nil, err
	}
	release, err := linux()
	if err != nil {
		return nil, err
	}
	if release == recordedLinux {
		release = ""
	}
	return &system{
		name:    "rxe" + release,
		process: func(int) (kshim.Kernel, func()) { return kernel, func() {} },
		device:  [2]string{name, name},
		uapi:    [2]string{name, name},
		cmAddr:  func(int) netip.Addr { return addr },
		joinIP:  func(group netip.Addr) (func(), error) { return joinIP(addr, group) },
		references: func(int) (core, driver int) {
			return moduleReferences("ib_uverbs"), moduleReferences("rdma_rxe")
		},
		unload: func(_ int, driver bool) error {
			if driver {
				return unix.DeleteModule("rdma_rxe", unix.O_NONBLOCK)
			}
			return unix.DeleteModule("ib_uverbs", unix.O_NONBLOCK)
		},
	}, nil
}

// recordedLinux is the version that testdata was recorded on.
const recordedLinux = "-6.1"

// linux is the version of this machine's kernel, as "-6.12".
func linux() (string, error) {
	var major, minor int
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err == nil {
		_, err = fmt.Sscanf(string(text), "%d.%d", &major, &minor)
	}
	return fmt.Sprintf("-%d.%d", major, minor), err
}

// moduleReferences is a module's count, -1 if it cannot be told.
func moduleReferences(name string) int {
	text, err := os.ReadFile(filepath.Join("/sys/module", name, "refcnt"))
	if err != nil {
		return -1
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return -1
	}
	return n
}

// rxeAddr is the device's IPv4 address.
func rxeAddr(name string) (netip.Addr, error) {
	dir := filepath.Join("/sys/class/infiniband", name, "ports/1/gids")
	for i := range 16 {
		text, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(i)))
		if err != nil {
			return netip.Addr{}, err
		}
		if gid, err := netip.ParseAddr(strings.TrimSpace(string(text))); err == nil && gid.Is4In6() {
			return gid.Unmap(), nil
		}
	}
	return netip.Addr{}, fmt.Errorf("%s has no IPv4 address", name)
}

// joinIP joins a group on the interface that has an address, as rdma_cm's
// JOIN_MCAST does: rxe's attaching sets the interface's filter only
// (rxe_mcast.c:rxe_mcast_add).
func joinIP(addr, group netip.Addr) (leave func(), err error) {
	conn, err := net.ListenUDP("udp4", nil)
	if err != nil {
		return nil, err
	}
	raw, err := conn.SyscallConn()
	if err == nil {
		ctl := raw.Control(func(fd uintptr) {
			err = unix.SetsockoptIPMreq(int(fd), unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, &unix.IPMreq{Multiaddr: group.As4(), Interface: addr.As4()})
		})
		err = errors.Join(ctl, err)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return func() { conn.Close() }, nil
}
