package netlinkmgr

import (
	"encoding/binary"
	"net/netip"
)

// parseObjects reads the table of a resource dump: one message holds some of a
// device's objects, each an entry that parse decodes.
func parseObjects[T any](b []byte, table, entry attrType, parse func([]byte) (T, error)) ([]T, error) {
	var list []T
	found := false
	a := newAttrs(b)
	for a.next() {
		if a.typ != table {
			continue
		}
		found = true
		a.entries(entry, func(e []byte) error {
			o, err := parse(e)
			if err == nil {
				list = append(list, o)
			}
			return err
		})
	}
	if a.err == nil && !found {
		return nil, &MessageError{Reason: "resources: no table"}
	}
	return list, a.err
}

// common takes the attributes that all objects share.
type common struct {
	owner  Owner
	hasPID bool
	driver []DriverAttr
}

func (c *common) take(a *attrs) bool {
	switch a.typ {
	case attrResPID:
		c.owner.PID, c.hasPID = a.u32(), true
	case attrResKernName:
		c.owner.Comm = a.str()
	case attrDriver:
		c.driver = parseDriver(a)
	default:
		return false
	}
	return true
}

func (c *common) done() (Owner, []DriverAttr) {
	c.owner.Kernel = !c.hasPID
	return c.owner, c.driver
}

// parseDriver reads a driver's table: runs of key, optional print type, value.
func parseDriver(a *attrs) (list []DriverAttr) {
	var next DriverAttr
	a.nest(func(in *attrs) {
		if next.Key == "" {
			if in.typ == attrDriverString {
				next.Key = in.str()
			}
			return
		}
		switch in.typ {
		case attrDriverPrintType:
			next.Hex = in.u8() == 1
			return
		case attrDriverString:
			next.Value = in.str()
		case attrDriverS32:
			next.Value = int32(in.u32())
		case attrDriverU32:
			next.Value = in.u32()
		case attrDriverS64:
			next.Value = int64(in.u64())
		case attrDriverU64:
			next.Value = in.u64()
		default:
			return
		}
		list = append(list, next)
		next = DriverAttr{}
	})
	return list
}

// missing reports an object without an attribute that it must have.
func missing(a *attrs, ok bool, what string) error {
	if a.err == nil && !ok {
		return &MessageError{Reason: what}
	}
	return a.err
}

func parseQP(b []byte) (QP, error) {
	var q QP
	var c common
	var num, psn, typ, state bool
	a := newAttrs(b)
	for a.next() {
		if c.take(a) {
			continue
		}
		switch a.typ {
		case attrPortIndex:
			q.Port = a.u32ptr()
		case attrResLQPN:
			q.LQPN, num = a.u32(), true
		case attrResRQPN:
			q.RQPN = a.u32ptr()
		case attrResRQPSN:
			q.RQPSN = a.u32ptr()
		case attrResSQPSN:
			q.SQPSN, psn = a.u32(), true
		case attrResPathMigState:
			s := PathMigState(a.u8())
			q.PathMig = &s
		case attrResType:
			q.Type, typ = QPType(a.u8()), true
		case attrResSubtype:
			q.Subtype = a.str()
		case attrResState:
			q.State, state = QPState(a.u8()), true
		case attrResPDN:
			q.PDN = a.u32ptr()
		}
	}
	q.Owner, q.DriverExt = c.done()
	return q, missing(a, num && psn && typ && state, "queue pair without number, PSN, type or state")
}

func parseCQ(b []byte) (CQ, error) {
	var q CQ
	var c common
	var cqe, users bool
	a := newAttrs(b)
	for a.next() {
		if c.take(a) {
			continue
		}
		switch a.typ {
		case attrResCQN:
			q.CQN = a.u32ptr()
		case attrResCQE:
			q.CQE, cqe = a.u32(), true
		case attrResUseCnt:
			q.Users, users = a.u64(), true
		case attrResPollCtx:
			p := PollContext(a.u8())
			q.PollCtx = &p
		case attrDevDIM:
			q.AdaptiveMod = a.boolptr()
		case attrResCtxN:
			q.CtxN = a.u32ptr()
		}
	}
	q.Owner, q.DriverExt = c.done()
	return q, missing(a, cqe && users, "completion queue without size or users")
}

func parseMR(b []byte) (MR, error) {
	var m MR
	var c common
	var length bool
	a := newAttrs(b)
	for a.next() {
		if c.take(a) {
			continue
		}
		switch a.typ {
		case attrResMRN:
			m.MRN = a.u32ptr()
		case attrResRKey:
			m.RKey = a.u32ptr()
		case attrResLKey:
			m.LKey = a.u32ptr()
		case attrResIOVA:
			m.IOVA = u64ptr(a)
		case attrResMRLen:
			m.Length, length = a.u64(), true
		case attrResPDN:
			m.PDN = a.u32ptr()
		}
	}
	m.Owner, m.DriverExt = c.done()
	return m, missing(a, length, "memory region without length")
}

func parsePD(b []byte) (PD, error) {
	var p PD
	var c common
	var users bool
	a := newAttrs(b)
	for a.next() {
		if c.take(a) {
			continue
		}
		switch a.typ {
		case attrResPDN:
			p.PDN = a.u32ptr()
		case attrResLocalDMALKey:
			p.LocalDMALKey = a.u32ptr()
		case attrResUnsafeGlobalRKey:
			p.UnsafeGlobalRKey = a.u32ptr()
		case attrResUseCnt:
			p.Users, users = a.u64(), true
		case attrResCtxN:
			p.CtxN = a.u32ptr()
		}
	}
	p.Owner, p.DriverExt = c.done()
	return p, missing(a, users, "protection domain without users")
}

func parseCMID(b []byte) (CMID, error) {
	var m CMID
	var c common
	var ps, state bool
	a := newAttrs(b)
	for a.next() {
		if c.take(a) {
			continue
		}
		switch a.typ {
		case attrPortIndex:
			m.Port = a.u32ptr()
		case attrResCMIDN:
			m.CMIDN = a.u32ptr()
		case attrResLQPN:
			m.LQPN = a.u32ptr()
		case attrResType:
			t := QPType(a.u8())
			m.QPType = &t
		case attrResState:
			m.State, state = CMState(a.u8()), true
		case attrResPS:
			m.PortSpace, ps = PortSpace(a.u32()), true
		case attrResSrcAddr:
			m.Src = parseSockaddr(a)
		case attrResDstAddr:
			m.Dst = parseSockaddr(a)
		}
	}
	m.Owner, m.DriverExt = c.done()
	return m, missing(a, ps && state, "CM id without port space or state")
}

func parseContext(b []byte) (Context, error) {
	var x Context
	var c common
	var num bool
	a := newAttrs(b)
	for a.next() {
		if c.take(a) {
			continue
		}
		if a.typ == attrResCtxN {
			x.CtxN, num = a.u32(), true
		}
	}
	x.Owner, x.DriverExt = c.done()
	return x, missing(a, num, "context without number")
}

func parseSRQ(b []byte) (SRQ, error) {
	var q SRQ
	var c common
	var num bool
	a := newAttrs(b)
	for a.next() {
		if c.take(a) {
			continue
		}
		switch a.typ {
		case attrResSRQN:
			q.SRQN, num = a.u32(), true
		case attrResType:
			q.Type = SRQType(a.u8())
		case attrResPDN:
			q.PDN = a.u32ptr()
		case attrResCQN:
			q.CQN = a.u32ptr()
		case attrResQP:
			a.entries(attrResQPEntry, func(e []byte) error {
				var r [2]uint32
				in := newAttrs(e)
				for in.next() {
					switch in.typ {
					case attrResLQPN:
						r[0] = in.u32()
						r[1] = r[0]
					case attrMinRange:
						r[0] = in.u32()
					case attrMaxRange:
						r[1] = in.u32()
					}
				}
				q.QPs = append(q.QPs, r)
				return in.err
			})
		}
	}
	q.Owner, q.DriverExt = c.done()
	return q, missing(a, num, "shared receive queue without number")
}

// Address families of Linux; other systems number theirs differently.
const (
	afInet  = 2
	afInet6 = 10
)

// parseSockaddr reads a __kernel_sockaddr_storage: family in the machine's
// order, port and address in network order. Other families give an invalid
// address.
func parseSockaddr(a *attrs) netip.AddrPort {
	b := a.val
	if len(b) < 8 {
		a.fail("attribute %d is a socket address of %d bytes", a.typ, len(b))
		return netip.AddrPort{}
	}
	port := binary.BigEndian.Uint16(b[2:])
	switch binary.NativeEndian.Uint16(b) {
	case afInet:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), port)
	case afInet6:
		if len(b) < 24 {
			a.fail("attribute %d is an IPv6 socket address of %d bytes", a.typ, len(b))
			return netip.AddrPort{}
		}
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[8:24])), port)
	}
	return netip.AddrPort{}
}
