package emu

import (
	"encoding/binary"
	"net/netip"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// query answers addresses, as IP addresses or GIDs.
func (c *ucmCall) query() error {
	var req abi.UCMQuery
	_ = req.Parse(c.in)
	return c.with(8, func(id *ucmID) error {
		var resp abi.UCMQueryAddrResp
		if id.dev != nil {
			resp.NodeGUID, resp.PortNum, resp.Pkey, resp.IBDevIndex = id.dev.attr.NodeGUID, 1, id.pkey, uint32(id.dev.index)
		}
		dst := id.dst
		if !dst.IsValid() && id.src.IsValid() { // binding chooses the family of both (cma.c: rdma_bind_addr)
			dst = netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
			if id.src.Addr().Is4() {
				dst = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
			}
		}
		switch ib := isIB(&id.srcIB); {
		case ib && req.Option != abi.UCMQueryPath && req.Option <= abi.UCMQueryGID:
			resp.SrcAddr, resp.SrcSize, resp.DstAddr, resp.DstSize = id.srcIB, abi.SockaddrIBSize, id.dstIB, abi.SockaddrIBSize
		case req.Option == abi.UCMQueryAddr:
			resp.SrcSize, _ = resp.SrcAddr.Set(id.src)
			resp.DstSize, _ = resp.DstAddr.Set(dst)
		case req.Option == abi.UCMQueryGID:
			resp.SrcSize, resp.DstSize = abi.SockaddrIBSize, abi.SockaddrIBSize
			if id.dev == nil { // a GID is a device's
				resp.SrcAddr.SetGID([16]byte{}, 0, id.service(id.src.Port()), 0)
				resp.DstAddr.SetGID([16]byte{}, 0, id.service(dst.Port()), 0)
				break
			}
			resp.SrcAddr.SetGID(gid16(id.src), id.pkey, id.service(id.src.Port()), 0)
			resp.DstAddr.SetGID(gid16(dst), id.pkey, id.service(dst.Port()), 0)
		case req.Option == abi.UCMQueryPath:
			return c.queryPath(id, req.Response)
		default:
			return fail(syscall.ENOSYS, "there is no such question")
		}
		if c.out < abi.UCMQueryAddrRespSize-8 {
			return fail(syscall.ENOSPC, "the response takes %d bytes", abi.UCMQueryAddrRespSize-8)
		}
		return c.answer(req.Response, &resp, abi.UCMQueryAddrRespSize)
	})
}

func gid16(a netip.AddrPort) [16]byte {
	if !a.IsValid() {
		return [16]byte{}
	}
	return a.Addr().As16()
}

// pathFlags are those of the one path record (IB_PATH_GMP, PRIMARY and
// BIDIRECTIONAL).
const pathFlags = 1 | 2 | 0x28

// queryPath answers the path record of a route, if there is room: one once it
// is resolved, none before, nor for questions of datagrams (ucma.c:
// ucma_query_path).
func (c *ucmCall) queryPath(id *ucmID, addr uint64) error {
	var resp pathAnswer
	size := abi.UCMQueryPathRespSize
	routed := id.state == ucmRouteResolved || id.state == ucmConnect && (id.active || id.typ != abi.QPTUD)
	switch {
	case c.out < size:
		return fail(syscall.ENOSPC, "the response takes %d bytes", size)
	case id.dev == nil || !routed:
	case c.out < size+abi.UCMPathRecSize:
		resp.head.NumPaths = 1
	default:
		resp.head.NumPaths = 1
		resp.path = abi.UCMPathRec{Flags: pathFlags, PathRec: id.pathRecord()}
		size += abi.UCMPathRecSize
	}
	return c.answer(addr, &resp, size)
}

// pathAnswer is QUERY's answer to UCMQueryPath.
type pathAnswer struct {
	head abi.UCMQueryPathResp
	path abi.UCMPathRec
}

func (a *pathAnswer) Put(b []byte) {
	a.head.Put(b)
	a.path.Put(b[abi.UCMQueryPathRespSize:])
}

func (a *pathAnswer) Parse(b []byte) error { return a.head.Parse(b) }

// The constant fields of a path of RoCE (cma.c: cma_resolve_iboe_route).
const (
	pathHopLimit   = 64
	pathReversible = 0x80
	pathExactly    = 2 << 6 // the selector IB_SA_EQ
	pathRate       = 0      // IB_RATE_PORT_CURRENT
	pathLifetime   = 18     // CMA_IBOE_PACKET_LIFETIME
)

// pathRecord is the id's path as on the wire (IBA 15.2.5.16).
func (id *ucmID) pathRecord() (r [64]byte) {
	src, dst := gid16(id.src), gid16(id.dst)
	copy(r[8:], dst[:])
	copy(r[24:], src[:])
	if id.active || id.conn == nil {
		binary.BigEndian.PutUint32(r[44:], id.flow()<<8)
	} else {
		binary.BigEndian.PutUint64(r[:], id.service(id.src.Port()))
	}
	r[47], r[48] = pathHopLimit, id.path.TOS
	r[49] = pathReversible
	binary.BigEndian.PutUint16(r[50:], 0xffff)
	if port, err := id.dev.QueryPort(1); err == nil {
		r[54] = pathExactly | byte(port.ActiveMTU)
	}
	r[55], r[56] = pathExactly|pathRate, pathExactly|pathLifetime
	return r
}

// flow is the flow label of the id's path (cma.c: cma_get_roce_udp_flow_label).
func (id *ucmID) flow() uint32 {
	return (uint32(id.src.Port())*31 + uint32(id.dst.Port())) & 0xfffff
}
