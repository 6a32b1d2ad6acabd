package doctor

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/uapi"
)

// exam is one run: the facts that all checks need, looked up once.
type exam struct {
	ctx  context.Context
	sys  System
	m    *netlinkmgr.Manager
	o    Options
	kind string

	kernel string // host: the kernel's name of the device
	addr   netip.Addr
	port   uint16 // UDP
	asked  bool   // the UDP port, or the offloads, were asked for by an option

	opened  *uapi.Device // nil with openErr
	info    uapi.DeviceInfo
	openErr error

	devs    []netlinkmgr.NetDev
	dev     *netlinkmgr.NetDev // below the device; nil when not known
	ports   []netlinkmgr.Port  // of the kernel's RDMA devices
	rdma    *netlinkmgr.Port   // host: the device's; nil when it has none
	device  netlinkmgr.Device  // host, with rdma
	rxe     bool               // host: the driver is rdma_rxe, or would be
	rdmaErr error              // why ports is not known
	gids    []netlinkmgr.GID

	loop func() Check // the loopback, once
}

// newExam opens the device, which may fail, and looks at what is below it.
func newExam(ctx context.Context, s System, o Options) (*exam, error) {
	if err := uapi.CheckDevice(o.Device); err != nil {
		var op *uapi.OpError
		if errors.As(err, &op) {
			err = op.Err // names the device, too
		}
		return nil, err
	}
	if s.Kernel.Root == nil {
		s.Kernel.Root = embed.FS{} // there is no file in it
	}
	e := &exam{ctx: ctx, sys: s, m: netlinkmgr.New(s.Kernel), o: o, port: uapi.RoCEPort}
	e.loop = sync.OnceValue(e.transfer)
	e.parse(o.Device)
	e.opened, e.openErr = s.Open(overNetwork(o.Device))
	if e.opened != nil {
		if e.info, e.openErr = e.opened.QueryDevice(); e.openErr == nil {
			e.kind, e.addr, e.port = string(e.info.Kind), e.info.Address.Addr(), e.info.Address.Port()
		}
	}
	if e.kind == sim {
		return e, nil
	}
	if s.Kernel.NetDevs != nil {
		e.devs, _ = e.m.NetDevs(ctx)
	}
	e.lookRDMA()
	if e.kind == host {
		e.lookHost()
	}
	e.findNetDev()
	return e, nil
}

func (e *exam) close() {
	if e.opened != nil {
		e.opened.Close()
	}
}

// parse takes out of a device name what is needed if it does not open.
func (e *exam) parse(name string) {
	base, options, _ := strings.Cut(name, "?")
	kind, rest, _ := strings.Cut(base, ":")
	switch kind {
	case soft, sim:
		e.kind = kind
		e.addr, _ = netip.ParseAddr(strings.Trim(rest, "[]"))
	case host:
		e.kind, e.kernel = host, rest
	default:
		e.kind, e.kernel = host, base
	}
	for o := range strings.SplitSeq(options, "&") {
		key, value, _ := strings.Cut(o, "=")
		if n, err := strconv.ParseUint(value, 10, 16); key == "port" && err == nil {
			e.port, e.asked = uint16(n), true
		}
	}
}

// overNetwork names a device whose packets all go by the network below it,
// which is examined.
func overNetwork(device string) string {
	base, options, _ := strings.Cut(device, "?")
	if kind, _, _ := strings.Cut(base, ":"); kind != soft || strings.Contains(options, "shm=") {
		return device
	}
	return cli.WithOptions(device, "shm=off")
}

// name is the device as Open takes it.
func (e *exam) name() string {
	if e.info.Device != "" {
		return e.info.Device
	}
	return e.o.Device
}

// lookRDMA lists the ports of the kernel's RDMA devices.
func (e *exam) lookRDMA() {
	if e.sys.Kernel.RDMA == nil {
		e.rdmaErr = syscall.ENOTSUP
		return
	}
	e.ports, e.rdmaErr = e.m.Links(e.ctx)
}

// lookHost finds the kernel device and its addresses.
func (e *exam) lookHost() {
	e.rxe = true
	if e.rdmaErr != nil {
		return
	}
	want := uint32(max(e.info.Port, 1))
	for i := range e.ports {
		if p := &e.ports[i]; p.Device == e.kernel && p.Port == want {
			e.rdma = p
		}
	}
	if e.rdma == nil {
		return
	}
	var err error
	if e.device, err = e.m.Device(e.ctx, e.kernel); err == nil {
		e.rxe = e.m.IsRXE(e.ctx, e.device)
	}
	e.gids, _ = e.m.GIDs(e.ctx, e.kernel, want)
	for i := range e.gids {
		if g := &e.gids[i]; g.Best && !e.addr.IsValid() {
			e.addr = g.Addr()
		}
	}
}

// findNetDev finds the network device below the device.
func (e *exam) findNetDev() {
	name := e.info.NetDev
	if e.rdma != nil && e.rdma.NetDev != "" {
		name = e.rdma.NetDev
	}
	for i := range e.devs {
		if d := &e.devs[i]; d.Name == name || name == "" && e.kind == soft && e.carries(d) {
			e.dev = d
			return
		}
	}
}

// carries says whether a soft device's address is a network device's: that of
// lo also while it is down, when it has none.
func (e *exam) carries(d *netlinkmgr.NetDev) bool {
	if d.Loopback && (!e.addr.IsValid() || e.addr.IsLoopback()) {
		return true
	}
	if zone := e.addr.Zone(); zone != "" && zone != d.Name && zone != strconv.Itoa(d.Index) {
		return false
	}
	return slices.ContainsFunc(d.Addrs, func(a netlinkmgr.NetAddr) bool { return a.Prefix.Addr() == e.addr.WithZone("") })
}

// below is the name of the network device that a kernel device is on, in
// whatever namespace: only rxe tells (its attribute "parent") when it is
// another one.
func (e *exam) below() string {
	if e.rdma != nil && e.rdma.NetDev != "" {
		return e.rdma.NetDev
	}
	parent, _ := e.text("sys/class/infiniband/" + e.kernel + "/parent")
	return parent
}

// netDevName is the network device's name, for messages.
func (e *exam) netDevName() string {
	if e.dev != nil {
		return e.dev.Name
	}
	return "NETDEV"
}

// loopback says whether the device's address is of this machine only.
func (e *exam) loopback() bool { return e.dev != nil && e.dev.Loopback || e.addr.IsLoopback() }

// text reads a file of the system in one piece, without the white space around
// it.
func (e *exam) text(path string) (string, bool) {
	b, err := fs.ReadFile(e.sys.Kernel.Root, path)
	return strings.TrimSpace(string(b)), err == nil
}

// exists says whether a file is there.
func (e *exam) exists(path string) bool {
	_, err := fs.Stat(e.sys.Kernel.Root, path)
	return err == nil
}

// Capabilities, as bits (capability.h).
const (
	capNetAdmin = 12
	capIPCLock  = 14
)

// initialNetNS says whether this is the initial network namespace: only there
// does the kernel show the settings that are not a namespace's
// (net/core/sysctl_net_core.c).
func (e *exam) initialNetNS() (initial, known bool) {
	if !e.exists("proc/sys/net/core/somaxconn") {
		return false, false
	}
	return e.exists("proc/sys/net/core/dev_weight"), true
}

// noDevice is the check of something that only a kernel device has which is
// there.
func (e *exam) noDevice() Check {
	if e.rdmaErr != nil {
		return skip("%v", e.rdmaErr)
	}
	return skip("there is no device %s here", e.kernel)
}
