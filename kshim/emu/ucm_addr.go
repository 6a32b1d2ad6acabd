package emu

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
)

// The ports that are given where none is asked for
// (/proc/sys/net/ipv4/ip_local_port_range).
const firstPort, lastPort = 32768, 60999

// sockaddr decodes an IP address of a request.
func sockaddr(s *abi.SockaddrStorage, size uint16) (netip.AddrPort, error) {
	a, err := s.AddrPort()
	if err != nil {
		return a, fail(syscall.EINVAL, "an address is of no family that is supported")
	}
	want := uint16(abi.SockaddrIn6Size)
	if a.Addr().Is4() {
		want = abi.SockaddrInSize
	}
	if size != want {
		return a, fail(syscall.EINVAL, "the address takes %d bytes, not %d", want, size)
	}
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()), nil
}

// takePort binds an id to a port of its address (cma.c: cma_get_port):
// EADDRINUSE when an id has the same, EADDRNOTAVAIL when a wildcard is in the
// way. Preconditions here and below: the id's mu is held.
func (c *ucmCore) takePort(id *ucmID, a netip.AddrPort) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ports == nil {
		c.ports = map[ucmPort][]ucmBinding{}
		c.nextPort = uint16(firstPort + rand.IntN(lastPort-firstPort+1))
	}
	if a.Port() == 0 {
		for range lastPort - firstPort + 1 {
			p := c.nextPort
			if c.nextPort++; c.nextPort > lastPort || c.nextPort < firstPort {
				c.nextPort = firstPort
			}
			if len(c.ports[ucmPort{id.space, p}]) == 0 {
				a = netip.AddrPortFrom(a.Addr(), p)
				break
			}
		}
		if a.Port() == 0 {
			return fail(syscall.EADDRNOTAVAIL, "no port is free")
		}
	}
	if err := c.checkPort(id, a, id.reuse); err != nil {
		return err
	}
	p := ucmPort{id.space, a.Port()}
	c.ports[p] = append(c.ports[p], ucmBinding{id, a.Addr(), id.reuse, id.afOnly})
	id.src, id.bound = a, true
	return nil
}

// checkPort looks for other ids bound to the port (cma.c: cma_check_port). The
// core's mu is held.
func (c *ucmCore) checkPort(id *ucmID, a netip.AddrPort, reuse bool) error {
	for _, other := range c.ports[ucmPort{id.space, a.Port()}] {
		switch {
		case other.id == id, reuse && other.reuse, other.addr.Is4() != a.Addr().Is4() && (other.afOnly || id.afOnly):
		case unspecified(a.Addr()) || unspecified(other.addr):
			return fail(syscall.EADDRNOTAVAIL, "port %d is taken", a.Port())
		case other.addr == a.Addr():
			return fail(syscall.EADDRINUSE, "%v is taken", a)
		}
	}
	return nil
}

// ownPort makes a listening id the only one on its port: ids may share a port
// while none listens (cma.c: rdma_listen).
func (c *ucmCore) ownPort(id *ucmID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.checkPort(id, id.src, false); err != nil {
		return err
	}
	id.reuse = false
	list := c.ports[ucmPort{id.space, id.src.Port()}]
	for i, b := range list {
		if b.id == id {
			list[i].reuse = false
		}
	}
	return nil
}

// release gives the id's port back.
func (id *ucmID) release() {
	if !id.bound {
		return
	}
	id.bound = false
	c := &id.ns.cm
	c.mu.Lock()
	defer c.mu.Unlock()
	port := ucmPort{id.space, id.src.Port()}
	c.ports[port] = slices.DeleteFunc(c.ports[port], func(b ucmBinding) bool { return b.id == id })
	if len(c.ports[port]) == 0 {
		delete(c.ports, port)
	}
}

// cmDevices gives the devices that can be connected by address.
func (ns *namespace) cmDevices() (list []*device) {
	for _, d := range ns.list() {
		if _, ok := d.Device.(driver.CMDevice); ok {
			list = append(list, d)
		}
	}
	return list
}

// deviceOf finds the device that has an address.
func (ns *namespace) deviceOf(a netip.Addr) *device {
	for _, d := range ns.cmDevices() {
		for _, g := range d.GIDs(1) {
			if g.GID.Unmap().WithZone("") == a.WithZone("") {
				return d
			}
		}
	}
	return nil
}

// bind is rdma_bind_addr.
func (c *ucmCall) bind() error {
	var req abi.UCMBind
	_ = req.Parse(c.in)
	return c.bindTo(&req)
}

// bindIP is BIND of a struct sockaddr_in6.
func (c *ucmCall) bindIP() error {
	var old abi.UCMBindIP
	_ = old.Parse(c.in)
	req := abi.UCMBind{ID: old.ID}
	req.Addr, req.AddrSize = old.Addr.Storage()
	return c.bindTo(&req)
}

func (c *ucmCall) bindTo(req *abi.UCMBind) error {
	if req.Reserved != 0 {
		return fail(syscall.EINVAL, "reserved bits are set")
	}
	if isIB(&req.Addr) {
		return c.bindIB(req)
	}
	a, err := sockaddr(&req.Addr, req.AddrSize)
	if err != nil {
		return err
	}
	return c.with(req.ID, func(id *ucmID) error {
		switch {
		case id.state != ucmIdle:
			return fail(syscall.EINVAL, "the id is bound or resolved")
		case id.ps == abi.UCMPSIPoIB && !unspecified(a.Addr()):
			return fail(syscall.EINVAL, "IP over InfiniBand is not over Ethernet")
		}
		d := c.f.proc.ns.deviceOf(a.Addr())
		switch {
		case d != nil || unspecified(a.Addr()):
		case localhost(a.Addr()):
			id.named = a.Addr()
			a = netip.AddrPortFrom(anyAddress(a.Addr()), a.Port())
		default:
			return fail(syscall.EADDRNOTAVAIL, "no RDMA device has the address %v", a.Addr())
		}
		if err := c.f.proc.ns.cm.takePort(id, a); err != nil {
			return err
		}
		id.state = ucmBound
		id.setDevice(d)
		return nil
	})
}

// localhost reports whether an address stands for any device's, unless one has
// it: libfabric binds to it (cma.c:cma_any_addr). In Linux all of 127.0.0.0/8
// does, where soft devices of other processes have theirs.
func localhost(a netip.Addr) bool {
	return a == netip.IPv6Loopback() || a == netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// anyAddress is the wildcard of an address's version.
func anyAddress(a netip.Addr) netip.Addr {
	if a.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

func (id *ucmID) setDevice(d *device) {
	if d != nil {
		id.dev, id.cm = d, d.Device.(driver.CMDevice)
	}
}

// resolveAddr is rdma_resolve_addr.
func (c *ucmCall) resolveAddr() error {
	var req abi.UCMResolveAddr
	_ = req.Parse(c.in)
	return c.resolveTo(&req)
}

// resolveIP is RESOLVE_ADDR of struct sockaddr_in6.
func (c *ucmCall) resolveIP() error {
	var old abi.UCMResolveIP
	_ = old.Parse(c.in)
	req := abi.UCMResolveAddr{ID: old.ID, TimeoutMS: old.TimeoutMS}
	req.SrcAddr, req.SrcSize = old.SrcAddr.Storage()
	req.DstAddr, req.DstSize = old.DstAddr.Storage()
	return c.resolveTo(&req)
}

// resolveTo finds the device on the way, at once: there are no neighbours to be
// asked. The event tells of it all the same.
func (c *ucmCall) resolveTo(req *abi.UCMResolveAddr) error {
	if req.Reserved != 0 {
		return fail(syscall.EINVAL, "reserved bits are set")
	}
	if isIB(&req.DstAddr) {
		return c.resolveIB(req)
	}
	dst, err := sockaddr(&req.DstAddr, req.DstSize)
	if err != nil {
		return err
	}
	src, srcErr := sourceOf(req)
	if srcErr != nil && req.SrcSize != 0 {
		return srcErr
	}
	return c.with(req.ID, func(id *ucmID) error {
		switch {
		case id.state == ucmBound && !unspecified(id.src.Addr()):
			src = id.src
		case id.state != ucmIdle && id.state != ucmBound:
			return fail(syscall.EINVAL, "the id is resolved")
		case srcErr != nil:
			return srcErr
		}
		if unspecified(dst.Addr()) {
			return id.resolveLoopback(dst)
		}
		return id.resolve(src, dst)
	})
}

// sourceOf is the address that a request names to resolve from; the zero
// address where it names none. A size of 0 is not looked at.
func sourceOf(req *abi.UCMResolveAddr) (netip.AddrPort, error) {
	if req.SrcSize != 0 {
		return sockaddr(&req.SrcAddr, req.SrcSize)
	}
	if req.SrcAddr[0]|req.SrcAddr[1] == 0 {
		return netip.AddrPort{}, nil
	}
	a, err := req.SrcAddr.AddrPort()
	if err != nil {
		return a, fail(syscall.EAFNOSUPPORT, "the source is of no family that is supported")
	}
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()), nil
}

func (id *ucmID) resolve(src, dst netip.AddrPort) error {
	ns := id.ns
	from := src.Addr()
	if unspecified(from) {
		from = netip.Addr{}
	}
	var best *device
	var path driver.CMPath
	failed := fail(syscall.ENETUNREACH, "no RDMA device reaches %v", dst.Addr())
	for _, d := range ns.cmDevices() {
		p, err := d.Device.(driver.CMDevice).CMResolve(from, dst.Addr())
		switch {
		case err != nil && best == nil && len(ns.cmDevices()) == 1:
			failed = err
		case err == nil && (best == nil || p.Preferred && !path.Preferred):
			best, path = d, p
		}
	}
	if best == nil {
		return failed
	}
	if !id.bound {
		if err := ns.cm.takePort(id, netip.AddrPortFrom(path.Local.Unmap(), src.Port())); err != nil {
			return err
		}
	} else {
		id.src = netip.AddrPortFrom(path.Local.Unmap(), id.src.Port())
	}
	if id.ps == abi.UCMPSIPoIB {
		id.state = ucmBound
		id.post(abi.UCMEventAddrError, -linuxEINVAL, nil)
		return nil
	}
	id.dst, id.path, id.state = dst, path, ucmAddrResolved
	id.setDevice(best)
	id.post(abi.UCMEventAddrResolved, 0, nil)
	return nil
}

func (c *ucmCall) resolveRoute() error {
	var req abi.UCMResolveRoute
	_ = req.Parse(c.in)
	return c.with(req.ID, func(id *ucmID) error {
		if id.state != ucmAddrResolved {
			return fail(syscall.EINVAL, "the id's address is not resolved, or its route is")
		}
		if id.lost {
			return fail(syscall.ENODEV, "no network device has a route to the address")
		}
		id.state = ucmRouteResolved
		id.path.TOS = id.tos // later ones come too late (cma.c: cma_resolve_iboe_route)
		id.post(abi.UCMEventRouteResolved, 0, nil)
		return nil
	})
}

// maxBacklog is the kernel's (/proc/sys/net/rdma_ucm/max_backlog).
const maxBacklog = 1024

// listen listens on the id's device, or on all for a wildcard address. A device
// that comes later is not listened on.
func (c *ucmCall) listen() error {
	var req abi.UCMListen
	_ = req.Parse(c.in)
	return c.with(req.ID, func(id *ucmID) error {
		switch id.state {
		case ucmIdle: // to a wildcard and a port that is free
			if err := c.f.proc.ns.cm.takePort(id, netip.AddrPortFrom(netip.IPv4Unspecified(), 0)); err != nil {
				return err
			}
			id.state = ucmBound
		case ucmBound:
		default:
			return fail(syscall.EINVAL, "the id is resolved, or listens")
		}
		if id.reuse {
			if err := c.f.proc.ns.cm.ownPort(id); err != nil {
				return err
			}
		}
		backlog := int(min(req.Backlog, maxBacklog))
		if backlog == 0 {
			backlog = maxBacklog
		}
		devices := []*device{id.dev}
		addr := id.src.Addr()
		if id.dev == nil {
			devices = c.f.proc.ns.cmDevices()
			if !id.afOnly || isIB(&id.srcIB) {
				addr = netip.Addr{}
			}
		}
		for _, d := range devices {
			cm := d.Device.(driver.CMDevice)
			l, err := cm.CMListen(id.service(id.src.Port()), addr, backlog, &listenOn{id, d, cm, isIB(&id.srcIB)})
			if err != nil {
				for _, l := range id.listeners {
					l.Close()
				}
				id.listeners = nil
				return err
			}
			id.listeners = append(id.listeners, l)
		}
		id.state = ucmListening
		return nil
	})
}
