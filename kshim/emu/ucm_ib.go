package emu

import (
	"net/netip"
	"slices"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
)

// Addresses of InfiniBand (struct sockaddr_ib) on Ethernet: librdmacm tries
// whether it may bind to one, and devices are found by them, but no routes.

func isIB(s *abi.SockaddrStorage) bool {
	_, err := s.GID()
	return err == nil
}

// spaceMask are the bits of a service id that choose the port space
// (RDMA_IB_IP_PS_MASK).
const spaceMask = ^uint64(0xffff)

// spaceOf finds the port space of a service id (cma.c: cma_select_ib_ps).
func (id *ucmID) spaceOf(s *abi.SockaddrStorage) (abi.UCMPortSpace, error) {
	mask := s.Mask() & spaceMask
	for _, space := range []abi.UCMPortSpace{abi.UCMPSIB, abi.UCMPSTCP, abi.UCMPSUDP} {
		if (id.ps == abi.UCMPSIB || id.ps == space) && s.Service()&mask == uint64(space)<<16&mask {
			return space, nil
		}
	}
	return 0, fail(syscall.EPROTONOSUPPORT, "service id %#x is not of the port space %v", s.Service(), id.ps)
}

// takeIB binds an id to a wildcard address of InfiniBand.
func (id *ucmID) takeIB(s *abi.SockaddrStorage) error {
	space, err := id.spaceOf(s)
	if err != nil {
		return err
	}
	old := id.space
	id.space = space
	if err := id.ns.cm.takePort(id, netip.AddrPortFrom(netip.IPv6Unspecified(), uint16(s.Service()))); err != nil {
		id.space = old
		return err
	}
	id.srcIB.SetGID([16]byte{}, s.Pkey(), id.service(id.src.Port()), s.Mask()|spaceMask)
	id.dstIB = familyIB
	return nil
}

// familyIB is an address of which nothing is known but the family.
var familyIB = abi.SockaddrStorage{abi.AFIB}

func (c *ucmCall) bindIB(req *abi.UCMBind) error {
	if req.AddrSize != abi.SockaddrIBSize {
		return fail(syscall.EINVAL, "the address takes %d bytes, not %d", abi.SockaddrIBSize, req.AddrSize)
	}
	return c.with(req.ID, func(id *ucmID) error {
		if id.state != ucmIdle {
			return fail(syscall.EINVAL, "the id is bound or resolved")
		}
		if gid, _ := req.Addr.GID(); gid != [16]byte{} {
			return fail(syscall.ENODEV, "no device of InfiniBand has the address %v", netip.AddrFrom16(gid))
		}
		err := id.takeIB(&req.Addr)
		if err == nil {
			id.state = ucmBound
		}
		return err
	})
}

// resolveIB resolves an address of InfiniBand (cma.c: cma_resolve_ib_addr): to
// the device that has it, or one of its network.
func (c *ucmCall) resolveIB(req *abi.UCMResolveAddr) error {
	if req.DstSize != abi.SockaddrIBSize {
		return fail(syscall.EINVAL, "the address takes %d bytes, not %d", abi.SockaddrIBSize, req.DstSize)
	}
	return c.with(req.ID, func(id *ucmID) error {
		if id.state != ucmIdle && (id.state != ucmBound || !isIB(&id.srcIB)) {
			return fail(syscall.EINVAL, "the id is resolved, or bound to an address of IP")
		}
		gid, _ := req.DstAddr.GID()
		d, from := id.ns.nearGID(gid)
		if d == nil {
			return fail(syscall.ENODEV, "no device is near %v", netip.AddrFrom16(gid))
		}
		if !id.bound {
			var any abi.SockaddrStorage
			any.SetGID([16]byte{}, req.DstAddr.Pkey(), uint64(id.ps)<<16, ^uint64(0))
			if err := id.takeIB(&any); err != nil {
				return err
			}
		}
		id.srcIB.SetGID(from, req.DstAddr.Pkey(), id.srcIB.Service(), id.srcIB.Mask())
		id.dstIB = req.DstAddr
		id.resolvedTo(d)
		return nil
	})
}

// nearGID finds the device that has a GID, or one whose address is of the same
// network, and that address. A wildcard is the loopback address of any.
func (ns *namespace) nearGID(gid [16]byte) (best *device, from [16]byte) {
	for _, d := range ns.cmDevices() {
		if gid == [16]byte{} {
			return d, netip.IPv6Loopback().As16()
		}
		for _, g := range d.GIDs(1) {
			own := g.GID.As16()
			switch {
			case own == gid:
				return d, own
			case best == nil && slices.Equal(own[:8], gid[:8]):
				best, from = d, own
			}
		}
	}
	return best, from
}

// resolvedTo brings an id to a device by an address without a route.
func (id *ucmID) resolvedTo(d *device) {
	id.lost, id.state = true, ucmAddrResolved
	id.setDevice(d)
	id.post(abi.UCMEventAddrResolved, 0, nil)
}

// resolveLoopback resolves a wildcard (cma.c: cma_resolve_loopback).
func (id *ucmID) resolveLoopback(dst netip.AddrPort) error {
	devices := id.ns.cmDevices()
	if len(devices) == 0 {
		return fail(syscall.ENODEV, "there is no device")
	}
	d := id.dev
	if d == nil {
		d = devices[0]
	}
	src := netip.IPv6Loopback()
	if dst.Addr().Is4() {
		src = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	if !id.bound {
		if err := id.ns.cm.takePort(id, netip.AddrPortFrom(src, 0)); err != nil {
			return err
		}
	}
	id.src, id.dst, id.pkey, id.path = netip.AddrPortFrom(src, id.src.Port()), dst, 0xffff, driver.CMPath{}
	id.resolvedTo(d)
	return nil
}
