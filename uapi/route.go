package uapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
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
	if addr.IsUnspecified() {
		return all
	}
	return slices.DeleteFunc(all, func(c *Context) bool { return !c.hasAddr(addr) })
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

// OpenRoute opens the device from which addr, HOST or HOST:PORT, is reached: the one that
// RDMASHIM_DEVICE names; else the kernel's device that has the address from which the system's route to
// there leaves; else the soft device on that address, or, on this machine, on any free loopback address. The error says
// what was tried.
func OpenRoute(ctx context.Context, addr string, opts ...Option) (*Context, error) {
	if os.Getenv("RDMASHIM_DEVICE") != "" {
		return Open("", opts...)
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		addr = net.JoinHostPort(strings.Trim(addr, "[]"), "0")
	}
	remote, err := lookup(ctx, addr)
	if err != nil {
		return nil, opError("OpenRoute", addr, err)
	}
	local, err := routeSource(remote.Addr())
	if err != nil {
		return nil, opError("OpenRoute", addr, err)
	}
	c, err := openAt(local, opts)
	if err != nil {
		return nil, opError("OpenRoute", addr, fmt.Errorf("no device for the route to %v from %v: %w", remote.Addr(), local, err))
	}
	return c, nil
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

// openAt opens the device that has an address of this machine.
func openAt(local netip.Addr, opts []Option) (*Context, error) {
	var tried error
	failed := func(err error) {
		if tried == nil {
			tried = err
			return
		}
		tried = fmt.Errorf("%w; %w", tried, err)
	}
	if runtime.GOOS == "linux" {
		for _, d := range hostDevices("/sys/class/infiniband") {
			i := slices.IndexFunc(d.GIDs, func(g GID) bool { return g.Type == gidV2 && g.Addr == local.WithZone("") })
			if i < 0 {
				continue
			}
			c, err := Open(d.Device, append(slices.Clone(opts), WithGIDIndex(d.GIDs[i].Index))...)
			if err == nil {
				return c, nil
			}
			failed(err)
		}
	}
	name := "soft:" + local.String()
	if local.Is6() {
		name = "soft:[" + local.String() + "]"
	}
	c, err := Open(name, opts...)
	if err == nil {
		return c, nil
	}
	failed(err)
	if local.Is4() && local.IsLoopback() && errors.Is(err, syscall.EADDRINUSE) {
		if c, err = Open(DefaultDevice, opts...); err == nil {
			return c, nil
		}
		failed(err)
	}
	return nil, tried
}

const gidV2 = "RoCE v2"

// route is the default context, opened as said if it is not open yet.
func route(open func() (*Context, error)) (*Context, error) {
	defaults.mu.Lock()
	defer defaults.mu.Unlock()
	if defaults.ctx == nil {
		c, err := open()
		if err != nil {
			return nil, err
		}
		defaults.ctx = c
	}
	return defaults.ctx, nil
}

// Dial is Context.Dial on the default context. If that is not open yet, OpenRoute chooses its device by the
// route to addr.
func Dial(ctx context.Context, addr string, config DialConfig) (QP, error) {
	c, err := route(func() (*Context, error) { return OpenRoute(ctx, addr) })
	if err != nil {
		return -1, err
	}
	return c.Dial(ctx, addr, config)
}

// Listen listens for connections to addr, HOST:PORT, on every device that this process has open and that has
// the address; an empty host is all of them. If none has, the default context is opened, if it is not yet, on the device
// that has the address. Request.Context tells to which one a request came. See Context.Listen.
func Listen(addr string, opts ...ListenOption) (*Listener, error) {
	at, err := parseListen(addr)
	if err != nil {
		return nil, opError("Listen", addr, err)
	}
	ctxs := opened.at(at.Addr())
	if len(ctxs) == 0 {
		c, err := route(func() (*Context, error) {
			if at.Addr().IsUnspecified() || os.Getenv("RDMASHIM_DEVICE") != "" {
				return Open("")
			}
			return openAt(at.Addr(), nil)
		})
		if err != nil {
			return nil, opError("Listen", addr, err)
		}
		ctxs = []*Context{c}
	}
	l, err := listen(addr, ctxs, opts)
	if err != nil {
		return nil, opError("Listen", addr, err)
	}
	return l, nil
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
