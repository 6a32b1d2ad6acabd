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
	return c.with(req.ID, func(id *ucmID) error {
		var resp abi.UCMQueryAddrResp
		if id.dev != nil {
			resp.NodeGUID, resp.PortNum, resp.Pkey, resp.IBDevIndex = id.dev.attr.NodeGUID, 1, id.pkey, uint32(id.dev.index)
		}
		switch dst := id.to(); {
		case req.Option == abi.UCMQueryAddr, req.Option == abi.UCMQueryGID && isIB(&id.srcIB):
			resp.SrcAddr, resp.SrcSize, resp.DstAddr, resp.DstSize = id.addresses()
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
		if c.room < abi.UCMQueryAddrRespSize-8 {
			return fail(syscall.ENOSPC, "the response takes %d bytes", abi.UCMQueryAddrRespSize-8)
		}
		return c.answer(req.Response, &resp, abi.UCMQueryAddrRespSize)
	})
}

// addresses are both of the id's, with their sizes.
func (id *ucmID) addresses() (src abi.SockaddrStorage, srcSize uint16, dst abi.SockaddrStorage, dstSize uint16) {
	if isIB(&id.srcIB) {
		return id.srcIB, abi.SockaddrIBSize, id.dstIB, abi.SockaddrIBSize
	}
	from := id.src
	if id.named.IsValid() && unspecified(from.Addr()) {
		from = netip.AddrPortFrom(id.named, from.Port())
	}
	srcSize, _ = src.Set(from)
	dstSize, _ = dst.Set(id.to())
	return src, srcSize, dst, dstSize
}

// to is the peer's address. Binding chooses the family of both (cma.c:
// rdma_bind_addr).
func (id *ucmID) to() netip.AddrPort {
	if id.dst.IsValid() || !id.src.IsValid() {
		return id.dst
	}
	return netip.AddrPortFrom(anyAddress(id.src.Addr()), 0)
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
	switch {
	case c.room < size:
		return fail(syscall.ENOSPC, "the response takes %d bytes", size)
	case !id.routed():
	case c.room < size+abi.UCMPathRecSize:
		resp.head.NumPaths = 1
	default:
		resp.head.NumPaths = 1
		resp.path = abi.UCMPathRec{Flags: pathFlags, PathRec: id.pathRecord()}
		size += abi.UCMPathRecSize
	}
	return c.answer(addr, &resp, size)
}

// routed reports whether the id has a path record.
func (id *ucmID) routed() bool {
	return id.dev != nil && (id.state == ucmRouteResolved || id.state == ucmConnect && (id.active || id.typ != abi.QPTUD))
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
	if id.given != nil {
		return *id.given
	}
	src, dst := gid16(id.src), gid16(id.dst)
	copy(r[8:], dst[:])
	copy(r[24:], src[:])
	binary.BigEndian.PutUint32(r[44:], id.flow()<<8)
	if !id.active && id.conn != nil {
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

// flow is the flow label of the id's path: the given one's, that of the
// request, or made of the ports (cma.c: cma_get_roce_udp_flow_label).
func (id *ucmID) flow() uint32 {
	switch {
	case id.given != nil:
		return binary.BigEndian.Uint32(id.given[44:]) >> 8 & 0xfffff
	case !id.active && id.conn != nil:
		return id.label
	}
	return (uint32(id.src.Port())*31 + uint32(id.dst.Port())) & 0xfffff
}
