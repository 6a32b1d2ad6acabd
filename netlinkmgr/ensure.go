package netlinkmgr

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

// EnsureOptions say what link is wanted; the zero value wants any usable one.
type EnsureOptions struct {
	// Name of the link. Empty takes a link that is there, or the first free
	// of rxe0, rxe1 …
	Name string
	// NetDev is the network device below it. Empty finds a usable one.
	NetDev string
	// MTU of the network device in bytes, MinMTU to MaxMTU; 0 leaves it as it
	// is.
	MTU int
	// Timeout bounds the wait for an active port and a usable GID; 0 is
	// DefaultTimeout. The context ends it earlier.
	Timeout time.Duration
	// Modules to load besides rdma_rxe: rdma_ucm, ib_umad …
	Modules []string
	// DryRun changes nothing: the result's steps say what would be done.
	DryRun bool
	// Log is told each step as it is done (in a dry run: would be done).
	Log func(step string)
}

// DefaultTimeout bounds the wait of Ensure: duplicate address detection of an
// IPv6 address takes a second or two.
const DefaultTimeout = 10 * time.Second

// The MTU's limits: below MinMTU there is no room for RDMA's least path MTU of
// 256 bytes and the headers (rxe_param.h: RXE_MAX_HDR_LENGTH), above MaxMTU no
// network device goes.
const (
	MinMTU = 256 + 80
	MaxMTU = 65536
)

// Result is the link that Ensure found or made.
type Result struct {
	Device   string
	Port     uint32
	NetDev   string
	State    PortState
	GIDIndex int
	GID      netip.Addr // 128 bits, as on the wire
	GIDType  GIDType
	UVerbs   string   // device file of the verbs; empty without ib_uverbs
	Reasons  []string // why this network device, link and GID
	Warnings []string // conditions that may keep it from working
	Steps    []string // the changes made, or in a dry run to be made
	Made     Changes  // for Remove to undo
	DryRun   bool     // nothing was done; Device is what would be made
}

// Changes lists the changes that Ensure made.
type Changes struct {
	NetDevUp  string       // the network device that was down
	MTUOf     string       // the network device whose MTU was set
	MTU       int          // its MTU before
	Modules   []ModuleFile // in the order of loading
	Link      string       // the link that was made
	LinkIndex int64        // its device's index; -1 when that is not known
}

// Ensure makes sure, on this system, that an rxe link is there and usable; see
// Manager.Ensure.
func Ensure(ctx context.Context, o EnsureOptions) (*Result, error) {
	m, err := Open()
	if err != nil {
		return nil, err
	}
	return m.Ensure(ctx, o)
}

// Ensure makes sure that an rxe link is there and usable: it takes the named
// network device or finds one, loads the modules, sets the device's MTU and
// brings it up, creates the link, and waits for an active port and a usable
// RoCE v2 GID. Ensure leaves existing parts as they are, so it may be called
// again. When it fails, it undoes its changes.
//
// Errors: NoNetDevError, NetDevGoneError, NetDevUnsuitableError,
// NetDevHasLinkError, NameTakenError, NoModuleError, ModuleError,
// PermissionError, NotReadyError, and OpError for the kernel's other refusals.
func (m *Manager) Ensure(ctx context.Context, o EnsureOptions) (*Result, error) {
	if err := checkName(o.Name); err != nil {
		return nil, err
	}
	if o.MTU != 0 && (o.MTU < MinMTU || o.MTU > MaxMTU) {
		return nil, &OpError{fmt.Sprintf("use %d as MTU, which is not between %d and %d", o.MTU, MinMTU, MaxMTU), syscall.EINVAL}
	}
	e := &ensuring{m: m, o: o}
	if e.o.Timeout <= 0 {
		e.o.Timeout = DefaultTimeout
	}
	e.res.DryRun = o.DryRun
	err := e.run(ctx)
	if err == nil {
		return &e.res, nil
	}
	if undo := m.undo(context.WithoutCancel(ctx), e.res.Made); undo != nil {
		err = fmt.Errorf("%w (and not all could be undone: %w)", err, undo)
	}
	return nil, err
}

// checkName holds a link's name to what the kernel takes: IB_DEVICE_NAME_MAX
// is 64 with the NUL; a slash would not do in sysfs, nor % (the kernel fills
// in a number there).
func checkName(s string) error {
	if len(s) > 63 || strings.ContainsAny(s, "/% \t\n\x00") || s == "." || s == ".." {
		return &OpError{fmt.Sprintf("use %q as the name of a link", s), syscall.EINVAL}
	}
	return nil
}

// ensuring is one run of Ensure.
type ensuring struct {
	m     *Manager
	o     EnsureOptions
	ports []portOf
	res   Result
}

func (e *ensuring) run(ctx context.Context) error {
	devs, err := e.m.NetDevs(ctx)
	if err != nil {
		return err
	}
	if e.ports, err = e.m.ports(ctx); err != nil {
		return err
	}
	c, err := choose(e.o, devs, e.ports)
	if err != nil {
		return err
	}
	e.res.NetDev = c.dev.Name
	e.reason(c.reason)
	e.warnNamespace()
	if err := e.pickName(c); err != nil {
		return err
	}
	// Modules first: they are missing most often, and nothing has been changed
	// yet then.
	if err := e.load(); err != nil {
		return err
	}
	if err := e.mtu(ctx, c.dev); err != nil {
		return err
	}
	if err := e.up(ctx, c.dev); err != nil {
		return err
	}
	if c.link == nil {
		if err := e.create(ctx); err != nil {
			return err
		}
	}
	if e.o.DryRun {
		return nil
	}
	return e.wait(ctx)
}

func (e *ensuring) reason(s string) { e.res.Reasons = append(e.res.Reasons, s) }

// step notes a change and reports whether to make it.
func (e *ensuring) step(s string) bool {
	e.res.Steps = append(e.res.Steps, s)
	if e.o.Log != nil {
		e.o.Log(s)
	}
	return !e.o.DryRun
}

// warnNamespace: rxe's socket lives in the initial network namespace only
// before Linux 7.1, so that links of others make no packets.
func (e *ensuring) warnNamespace() {
	own, err1 := fs.ReadLink(e.m.k.Root, "proc/self/ns/net")
	first, err2 := fs.ReadLink(e.m.k.Root, "proc/1/ns/net")
	if err1 == nil && err2 == nil && own != first {
		e.res.Warnings = append(e.res.Warnings, "this is not the network namespace of process 1: rxe works outside the initial one only from Linux 7.1")
	}
}

// pickName settles the link's name, or finds that it cannot be had.
func (e *ensuring) pickName(c choice) error {
	name := e.o.Name
	if c.link != nil {
		if name != "" && name != c.link.Device {
			return &NetDevHasLinkError{NetDev: c.dev.Name, Device: c.link.Device, Want: name}
		}
		e.res.Device = c.link.Device
		if e.o.NetDev != "" {
			e.reason(fmt.Sprintf("%s has the rxe link %s already", c.dev.Name, c.link.Device))
		}
		return nil
	}
	if name == "" {
		e.res.Device = e.freeName()
		return nil
	}
	for _, p := range e.ports {
		if p.Device == name {
			return &NameTakenError{Device: name, NetDev: p.NetDev, Want: c.dev.Name, RXE: p.rxe}
		}
	}
	e.res.Device = name
	return nil
}

func (e *ensuring) freeName() string {
	for i := 0; ; i++ {
		name := fmt.Sprintf("rxe%d", i)
		if !slices.ContainsFunc(e.ports, func(p portOf) bool { return p.Device == name }) {
			return name
		}
	}
}

// load inserts the modules that the kernel has not.
func (e *ensuring) load() error {
	files, err := e.m.Missing(append([]string{rxeModule}, e.o.Modules...)...)
	if err != nil {
		return err
	}
	for _, f := range files {
		if !e.step("load module " + f.Name + " from /" + f.Path) {
			continue
		}
		fresh, err := e.m.insert(f)
		if err != nil {
			return err
		}
		if fresh {
			e.res.Made.Modules = append(e.res.Made.Modules, f)
		}
	}
	return nil
}

// mtu sets the network device's MTU. The link's path MTU follows: the largest
// of 256, 512 … 4096 that leaves room for the headers.
func (e *ensuring) mtu(ctx context.Context, d NetDev) error {
	op := fmt.Sprintf("set the MTU of %s to %d", d.Name, e.o.MTU)
	if e.o.MTU == 0 || e.o.MTU == d.MTU || !e.step(fmt.Sprintf("%s (was %d)", op, d.MTU)) {
		return nil
	}
	err := e.m.k.SetMTU(ctx, d.Name, e.o.MTU)
	switch {
	case err == nil:
		e.res.Made.MTUOf, e.res.Made.MTU = d.Name, d.MTU
		return nil
	case errors.Is(err, syscall.ENODEV):
		return &NetDevGoneError{NetDev: d.Name}
	case errors.Is(err, syscall.EINVAL):
		return &OpError{op, fmt.Errorf("the device does not take it; 'ip -d link show %s' shows minmtu and maxmtu: %w", d.Name, err)}
	}
	return refused(op, err)
}

// up brings the network device up.
func (e *ensuring) up(ctx context.Context, d NetDev) error {
	if d.Up || !e.step("bring "+d.Name+" up") {
		return nil
	}
	op := "bring " + d.Name + " up"
	err := e.m.k.SetNetDev(ctx, d.Name, true)
	switch {
	case err == nil:
		e.res.Made.NetDevUp = d.Name
		return nil
	case errors.Is(err, syscall.ENODEV):
		return &NetDevGoneError{NetDev: d.Name}
	}
	return refused(op, err)
}

// create makes the link.
func (e *ensuring) create(ctx context.Context) error {
	if !e.step(fmt.Sprintf("add link %s on %s", e.res.Device, e.res.NetDev)) {
		return nil
	}
	err := e.m.AddLink(ctx, e.res.Device, "rxe", e.res.NetDev)
	var raced *NetDevHasLinkError
	if errors.As(err, &raced) && raced.Device != "" && (e.o.Name == "" || e.o.Name == raced.Device) {
		e.res.Device = raced.Device
		e.reason(fmt.Sprintf("somebody else made the link %s meanwhile", raced.Device))
		return nil
	}
	if err != nil {
		return err
	}
	e.res.Made.Link, e.res.Made.LinkIndex = e.res.Device, -1
	d, err := e.m.Device(ctx, e.res.Device)
	if err == nil {
		e.res.Made.LinkIndex = int64(d.Index)
	}
	return err
}
