package uapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
)

// opened are the contexts that this process has open, in the order in which they were opened.
var opened contextList

type contextList struct {
	mu   sync.Mutex
	list []*Context // guarded by mu
}

func (l *contextList) add(c *Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, c)
}

func (l *contextList) remove(c *Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = slices.DeleteFunc(l.list, func(other *Context) bool { return other == c })
}

// at is the contexts whose device has the address; all for a wildcard.
func (l *contextList) at(addr netip.Addr) []*Context {
	l.mu.Lock()
	all := slices.Clone(l.list)
	l.mu.Unlock()
	all = slices.DeleteFunc(all, func(c *Context) bool { return !addr.IsUnspecified() && !c.hasAddr(addr) })
	owned := map[netip.AddrPort]bool{}
	for _, c := range all {
		owned[c.chosen.addr] = c.station.spec.kind == kindSoft
	}
	return slices.DeleteFunc(all, func(c *Context) bool { // the owner of its address would be asked for the same port
		return c.station.spec.role == roleBeside && owned[netip.AddrPortFrom(c.chosen.addr.Addr(), RoCEPort)]
	})
}

// ofHosts is the contexts that are on the kernel's devices.
func (l *contextList) ofHosts() []*Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []*Context
	for _, c := range l.list {
		if c.station.spec.kind == kindHost {
			list = append(list, c)
		}
	}
	return list
}

func (c *Context) hasAddr(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	if c.chosen.gid.Addr.Unmap() == addr {
		return true
	}
	gids, err := c.verbs.GIDs(uint8(c.chosen.port))
	return err == nil && slices.ContainsFunc(gidList(gids, ""), func(g GID) bool { return g.Addr == addr })
}

// OpenRoute opens the device from which addr, HOST or HOST:PORT, is reached:
// the one that RDMASHIM_DEVICE names; else the kernel's device that has the
// address from which the system's route to there leaves; else the soft device
// on that address. Of a name's addresses the first is taken to which there is a
// device, in the order in which Dial tries them. The error says what was tried.
//
// To addresses of this host the device is one that leaves the address itself to
// programs that listen there: to 127.0.0.0/8 it is on 127.128.0.0 plus the
// number of the process, or one of the next addresses (Linux); to others it is
// on the same address and a free UDP port, from which soft devices are reached.
func OpenRoute(ctx context.Context, addr string, opts ...Option) (*Context, error) {
	if os.Getenv("RDMASHIM_DEVICE") != "" {
		return Open("", opts...)
	}
	remotes, err := resolve(ctx, withAnyPort(addr))
	var c *Context
	if err == nil {
		c, err = openRoute(silentLast(onThisHost(remotes, loopbackListeners())), opts)
	}
	if err != nil {
		return nil, opError("OpenRoute", addr, err)
	}
	return c, nil
}

// openRoute opens the device on the way to the first address that has one.
func openRoute(remotes []netip.AddrPort, opts []Option) (*Context, error) {
	var errs []error
	for _, remote := range remotes {
		local, err := routeSource(remote.Addr())
		if err == nil {
			var c *Context
			if c, err = openToward(local, remote.Addr(), opts); err == nil {
				return c, nil
			}
			err = fmt.Errorf("no device for the route to %v from %v: %w", remote.Addr(), local, err)
		}
		errs = append(errs, err)
	}
	return nil, tried(errs)
}

// openToward opens the device at local from which remote is reached.
func openToward(local, remote netip.Addr, opts []Option) (*Context, error) {
	here := local == remote.Unmap() || remote.IsLoopback()
	kinds := newOpenConfig(opts).kinds
	c, errs := openHostAt(local, kinds, opts)
	switch {
	case c != nil:
		return c, nil
	case !kinds.has(kindSoft):
		errs = append(errs, noDevice(local, kinds))
		return nil, tried(errs)
	}
	var err error
	if here {
		opts = append(slices.Clone(opts), func(c *openConfig) { c.dials = true })
	}
	switch {
	case !here || devices.owns(local):
		c, err = Open(softName(local), opts...)
	case local.Is4() && local.IsLoopback() && len(loopbacks()) > 1:
		c, err = openClientLoopback(remote, opts)
	default:
		c, err = openBeside(local, opts)
	}
	if err != nil {
		return nil, tried(append(errs, err))
	}
	return c, nil
}

// clientAddrs is how many addresses a process tries of those that are its own.
const clientAddrs = 16

// openClientLoopback opens a device on a loopback address that nobody listens
// on by habit.
func openClientLoopback(remote netip.Addr, opts []Option) (*Context, error) {
	for i := range clientAddrs {
		addr := clientAddr(os.Getpid() + i)
		if addr == remote {
			continue
		}
		c, err := Open(softName(addr), opts...)
		if !errors.Is(err, syscall.EADDRINUSE) {
			return c, err
		}
	}
	return openBeside(loopbacks()[0], opts)
}

// clientAddr is 127.128.0.0 plus n. Linux numbers no process beyond 2^22.
func clientAddr(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, byte(128 + n>>16&0x7f), byte(n >> 8), byte(n)})
}

// routeSource is the address from which the system would send to remote.
func routeSource(remote netip.Addr) (netip.Addr, error) {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(remote, RoCEPort))) // sends nothing
	if err != nil {
		return netip.Addr{}, err
	}
	defer conn.Close()
	local := conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
	return local, nil
}

const gidV2 = "RoCE v2"

// route is the default context, opened as said if it is not open yet: then it
// is fresh.
func route(open func() (*Context, error)) (c *Context, fresh bool, err error) {
	defaults.mu.Lock()
	defer defaults.mu.Unlock()
	if fresh = defaults.ctx == nil; fresh {
		if defaults.ctx, err = open(); err != nil {
			defaults.ctx = nil
			return nil, false, err
		}
		defaults.handed = 0
	}
	defaults.handed++
	return defaults.ctx, fresh, nil
}

// withdraw closes the default context if nobody but the caller, for whom it was
// opened, has it.
func withdraw(c *Context) bool {
	defaults.mu.Lock()
	defer defaults.mu.Unlock()
	if defaults.ctx != c || defaults.handed > 1 {
		return false
	}
	defaults.ctx = nil
	_ = c.Close()
	return true
}

// Dial is Context.Dial on the default context. If that is not open yet,
// OpenRoute chooses its device by the route to addr; where addr has addresses
// of both IP versions and nobody answers at those of the first, it is opened
// anew for the others.
func Dial(ctx context.Context, addr string, config DialConfig) (QP, error) {
	inner, cancel := bounded(ctx)
	defer cancel()
	remotes, err := resolve(inner, addr)
	if err != nil {
		return -1, opError("Dial", addr, err)
	}
	ways := byFamily(silentLast(onThisHost(remotes, loopbackListeners())))
	var errs []error
	for i, way := range ways {
		c, fresh, err := route(func() (*Context, error) {
			if os.Getenv("RDMASHIM_DEVICE") != "" {
				return Open("")
			}
			return openRoute(way, nil)
		})
		if err == nil {
			to := way
			if !fresh || len(ways) == 1 {
				to = remotes // this device may reach all of them
			}
			try, cancel := share(inner, len(ways)-i)
			var qp QP
			qp, err = c.dial(ctx, try, to, &config)
			cancel()
			if err == nil {
				return qp, nil
			}
		}
		errs = append(errs, err)
		if inner.Err() != nil || c != nil && (!fresh || !elsewhere(err)) || i == len(ways)-1 || c != nil && !withdraw(c) {
			break
		}
	}
	return -1, opError("Dial", addr, tried(errs))
}

// byFamily parts addresses by IP version, in the order of the first of each.
func byFamily(list []netip.AddrPort) [][]netip.AddrPort {
	var ways [][]netip.AddrPort
next:
	for _, a := range list {
		for i, w := range ways {
			if w[0].Addr().Is4() == a.Addr().Is4() {
				ways[i] = append(w, a)
				continue next
			}
		}
		ways = append(ways, []netip.AddrPort{a})
	}
	return ways
}

// Listen listens for connections to addr, HOST:PORT, on every device that this
// process has open and that has the address; an empty host is all of them, and
// 127.0.0.1 if all were opened to dial loopback addresses. If none has, the
// default context is opened, if it is not yet: on the device that
// RDMASHIM_DEVICE names, else on that which OpenLocal opens; of a name's
// addresses, on the first that has one; for an empty host on 127.0.0.1. A
// default context that is open and does not have the address stays, and Listen
// opens another beside it, which Close closes too. Request.Context tells to
// which one a request came. See Context.Listen.
func Listen(addr string, opts ...ListenOption) (*Listener, error) {
	at, err := resolveListen(addr)
	var l *Listener
	if err == nil {
		l, err = listenAt(at, opts)
	}
	if err != nil {
		return nil, opError("Listen", addr, err)
	}
	return l, nil
}

// listenAt listens on the first of the addresses that a device has.
func listenAt(addrs []netip.AddrPort, opts []ListenOption) (*Listener, error) {
	for _, at := range addrs {
		ctxs := opened.at(at.Addr())
		if at.Addr().IsUnspecified() && len(ctxs) > 0 && !slices.ContainsFunc(ctxs, func(c *Context) bool { return !c.dials }) {
			if c, err := toListen(loopbacks()[0]); err == nil {
				ctxs = append(ctxs, c)
			}
		}
		if len(ctxs) > 0 {
			return listen(at, ctxs, opts)
		}
	}
	var errs []error
	for _, at := range addrs {
		c, err := toListen(at.Addr())
		if err == nil {
			var l *Listener
			if l, err = listen(at, []*Context{c}, opts); err == nil {
				return l, nil
			}
		}
		errs = append(errs, err)
	}
	return nil, tried(errs)
}

// toListen is the default context, or, where its device does not have the
// address, another one that is closed with it.
func toListen(addr netip.Addr) (*Context, error) {
	named := os.Getenv("RDMASHIM_DEVICE") != ""
	c, _, err := route(func() (*Context, error) {
		switch {
		case named:
			return Open("")
		case addr.IsUnspecified():
			if c, err := openSoftAt(loopbacks()[0], nil); err == nil {
				return c, nil
			}
			return Open("")
		}
		return openLocal(addr, nil)
	})
	if err != nil || named || addr.IsUnspecified() || c.hasAddr(addr) {
		return c, err
	}
	if c, err = openLocal(addr, nil); err == nil {
		defaults.mu.Lock()
		defaults.more = append(defaults.more, c)
		defaults.mu.Unlock()
	}
	return c, err
}

// Disconnect is Context.Disconnect on the default context.
func Disconnect(qp QP) error {
	c, err := Default()
	if err != nil {
		return err
	}
	return c.Disconnect(qp)
}

// Done is Context.Done on the default context.
func Done(qp QP) <-chan struct{} {
	c, err := Default()
	if err != nil {
		return alreadyDone
	}
	return c.Done(qp)
}

// Cause is Context.Cause on the default context.
func Cause(qp QP) error {
	c, err := Default()
	if err != nil {
		return err
	}
	return c.Cause(qp)
}

// QueryConn is Context.QueryConn on the default context.
func QueryConn(qp QP) (ConnInfo, error) {
	c, err := Default()
	if err != nil {
		return ConnInfo{}, err
	}
	return c.QueryConn(qp)
}
