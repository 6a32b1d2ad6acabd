//go:build guest && linux

package interop

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/lab/netpath"
	"github.com/rdmashim/rdmashim/uapi"
)

// patience bounds every wait: an emulated processor on a busy machine is slow.
const patience = 30 * time.Second

const (
	maxMessage = 8 << 20
	netdevMTU  = 4500 // path MTU 4096 and headers
)

// family is an address family, with the addresses of rxe and of the faultless
// soft device. Others of the soft side are counted up from the last one.
type family struct {
	name      string
	rxe, soft netip.Addr
	bits      int
}

var families = []family{
	{"IPv4", netip.MustParseAddr("10.77.0.1"), netip.MustParseAddr("10.77.0.2"), 24},
	{"IPv6", netip.MustParseAddr("fd00:77::1"), netip.MustParseAddr("fd00:77::2"), 64},
}

// softAddr is the n-th address of the soft side.
func (f family) softAddr(n int) netip.Addr {
	a := f.soft
	for range n {
		a = a.Next()
	}
	return a
}

const softAddrs = 8 // of each family

// lab is the set-up that all tests share.
var lab struct {
	space *netpath.Namespace // the soft RNIC's
	kmsg  *kernelLog
	sums  sums
}

// sums are the figures of the closing line.
type sums struct{ messages, bytes, programs atomic.Int64 }

func count(messages, bytes int) {
	lab.sums.messages.Add(int64(messages))
	lab.sums.bytes.Add(int64(bytes))
}

func TestMain(m *testing.M) {
	beRun()
	if err := setUp(); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL: set up the network:", err)
		os.Exit(1)
	}
	before := hwCounter("rcvd_pkts")
	code := m.Run()
	s := &lab.sums
	fmt.Printf("interop: messages=%d bytes=%d programs=%d rxe-received=%d\n",
		s.messages.Load(), s.bytes.Load(), s.programs.Load(), hwCounter("rcvd_pkts")-before)
	os.Exit(code)
}

// setUp makes the namespace of the soft RNIC, moves eth1 there, and gives both
// ends their MTU and addresses.
func setUp() (err error) {
	if lab.kmsg, err = openKernelLog(); err != nil {
		return err
	}
	if lab.space, err = netpath.NewNamespace(); err != nil {
		return err
	}
	eth0, err := netlink.LinkByName("eth0")
	if err != nil {
		return err
	}
	eth1, err := netlink.LinkByName("eth1")
	if err != nil {
		return err
	}
	if err := netlink.LinkSetNsFd(eth1, lab.space.FD); err != nil {
		return fmt.Errorf("move eth1: %w", err)
	}
	if err := configure(eth0, 0, 0); err != nil {
		return err
	}
	err = lab.space.Do(func() error {
		l, err := netlink.LinkByName("eth1")
		if err == nil {
			err = configure(l, 1, softAddrs)
		}
		if err != nil {
			return err
		}
		if l, err = netlink.LinkByName("lo"); err != nil { // what a device sends to itself
			return err
		}
		return netlink.LinkSetUp(l)
	})
	if err != nil {
		return err
	}
	return waitGIDs()
}

// configure brings a link up with addresses first … last of the families, 0
// being rxe's and n the n-th of the soft side.
func configure(l netlink.Link, first, last int) error {
	if err := netlink.LinkSetMTU(l, netdevMTU); err != nil {
		return fmt.Errorf("set the MTU: %w", err)
	}
	if err := netlink.LinkSetUp(l); err != nil {
		return err
	}
	for _, f := range families {
		for n := first; n <= last; n++ {
			a := f.rxe
			if n > 0 {
				a = f.softAddr(n - 1)
			}
			addr, err := netlink.ParseAddr(fmt.Sprintf("%v/%d", a, f.bits))
			if err != nil {
				return err
			}
			addr.Flags = unix.IFA_F_NODAD // no other host is on this link
			if err := netlink.AddrAdd(l, addr); err != nil && err != unix.EEXIST {
				return fmt.Errorf("add %v: %w", a, err)
			}
		}
	}
	return nil
}

// waitGIDs waits until rxe has entered the addresses and the MTU.
func waitGIDs() error {
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		found := 0
		for _, f := range families {
			if gidIndex(f.rxe) >= 0 {
				found++
			}
		}
		if found == len(families) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("rxe0 has %d of %d addresses in its GID table", found, len(families))
		}
	}
}

// gidIndex finds an address in the GID table of rxe0, -1 if it is not there.
func gidIndex(a netip.Addr) int { return gidOn("rxe0", a) }

func gidOn(device string, a netip.Addr) int {
	for i := range 16 {
		text, err := os.ReadFile(fmt.Sprintf("/sys/class/infiniband/%s/ports/1/gids/%d", device, i))
		if err != nil {
			continue
		}
		g, err := netip.ParseAddr(strings.TrimSpace(string(text)))
		if err == nil && g.Unmap() == a {
			return i
		}
	}
	return -1
}

// statsAge is longer than the kernel keeps counters before it reads them again
// (lifespan of struct rdma_hw_stats: 10 ms).
const statsAge = 25 * time.Millisecond

// freshCounter reads a counter of rxe0 as it is now.
func freshCounter(name string) uint64 {
	hwCounter(name)
	time.Sleep(statsAge)
	return hwCounter(name)
}

// hwCounter reads a counter of rxe0, as it was up to statsAge ago.
func hwCounter(name string) uint64 {
	text, err := os.ReadFile(filepath.Join("/sys/class/infiniband/rxe0/ports/1/hw_counters", name))
	if err != nil {
		return 0
	}
	v, _ := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return v
}

// openSoft opens a soft device in the soft RNIC's namespace.
func openSoft(t *testing.T, name string) *uapi.Device {
	var d *uapi.Device
	require.NoError(t, lab.space.Do(func() (err error) {
		d, err = uapi.Open(name, uapi.OpenConfig{})
		return err
	}))
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// openRXE opens rxe0 with its address of a family.
func openRXE(t *testing.T, f family) *uapi.Device {
	d := must.Get(uapi.Open("rxe0", uapi.OpenConfig{GIDIndex: new(gidIndex(f.rxe))}))(t)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// kernelLog reads what the kernel logs.
type kernelLog struct{ fd int }

// openKernelLog begins at the log's end.
func openKernelLog() (*kernelLog, error) {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err == nil {
		_, err = unix.Seek(fd, 0, unix.SEEK_END)
	}
	return &kernelLog{fd}, err
}

// badICRCs counts the lines about wrong ICRCs since the last call. The kernel
// limits their rate.
func (k *kernelLog) badICRCs(t *testing.T) (n int) {
	buf := make([]byte, 8192)
	for {
		size, err := unix.Read(k.fd, buf)
		switch err {
		case nil:
			if bytes.Contains(bytes.ToLower(buf[:size]), []byte("bad icrc")) {
				n++
			}
		case unix.EPIPE, unix.EINTR: // EPIPE: lines were lost, the next read goes on
		case unix.EAGAIN:
			return n
		default:
			require.NoError(t, err, "/dev/kmsg")
		}
	}
}

// wait is a context that ends when patience does.
func wait(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
