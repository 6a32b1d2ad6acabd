package netlinktest

import (
	"context"
	"encoding/binary"
	"net/netip"
	"syscall"

	"github.com/rdmashim/rdmashim/netlinkmgr"
)

// msg builds attributes. Numbers are those of rdma_netlink.h.
type msg []byte

func (m msg) put(t uint16, payload []byte) msg {
	m = binary.NativeEndian.AppendUint16(m, uint16(4+len(payload)))
	m = binary.NativeEndian.AppendUint16(m, t)
	m = append(m, payload...)
	for len(m)%4 != 0 {
		m = append(m, 0)
	}
	return m
}

func (m msg) u8(t uint16, v uint8) msg { return m.put(t, []byte{v}) }
func (m msg) u32(t uint16, v uint32) msg {
	return m.put(t, binary.NativeEndian.AppendUint32(nil, v))
}
func (m msg) u64(t uint16, v uint64) msg {
	return m.put(t, binary.NativeEndian.AppendUint64(nil, v))
}
func (m msg) str(t uint16, s string) msg   { return m.put(t, append([]byte(s), 0)) }
func (m msg) nest(t uint16, inner msg) msg { return m.put(t|1<<15, inner) }
func (m msg) opt32(t uint16, v *uint32) msg {
	if v == nil {
		return m
	}
	return m.u32(t, *v)
}

func (m msg) owner(o netlinkmgr.Owner) msg {
	if o.Kernel {
		return m.str(29, o.Comm)
	}
	return m.u32(28, o.PID)
}

// sockaddr encodes a __kernel_sockaddr_storage.
func sockaddr(a netip.AddrPort) []byte {
	b := make([]byte, 128)
	binary.BigEndian.PutUint16(b[2:], a.Port())
	if a.Addr().Is4() {
		binary.NativeEndian.PutUint16(b, 2)
		copy(b[4:], a.Addr().AsSlice())
	} else {
		binary.NativeEndian.PutUint16(b, 10)
		copy(b[8:], a.Addr().AsSlice())
	}
	return b
}

// request reads the attributes that requests carry.
type request struct {
	index, port           uint32
	hasIndex              bool
	name, kind, dev, char string
	mode                  uint8
}

func parseRequest(b []byte) (r request) {
	for len(b) >= 4 {
		n := int(binary.NativeEndian.Uint16(b))
		v := b[4:n]
		switch binary.NativeEndian.Uint16(b[2:]) & 0x3fff {
		case 1:
			r.index, r.hasIndex = binary.NativeEndian.Uint32(v), true
		case 2:
			r.name = cstr(v)
		case 3:
			r.port = binary.NativeEndian.Uint32(v)
		case 51:
			r.dev = cstr(v)
		case 65:
			r.kind = cstr(v)
		case 66:
			r.mode = v[0]
		case 69:
			r.char = cstr(v)
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	return r
}

func cstr(b []byte) string { return string(b[:len(b)-1]) }

// rdma answers a request as nldev does.
func (k *Kernel) rdma(_ context.Context, req netlinkmgr.Request) ([][]byte, error) {
	r := parseRequest(req.Attrs)
	k.Lock()
	present := k.Modules["ib_core"]
	k.Unlock()
	if !present {
		return nil, syscall.EPROTONOSUPPORT
	}
	switch req.Command {
	case netlinkmgr.CmdNewLink:
		return nil, k.newLink(r.name, r.kind, r.dev)
	case netlinkmgr.CmdSet:
		return nil, k.rename(r.index, r.name)
	case netlinkmgr.CmdDelLink:
		return nil, k.delLink(r.index)
	case netlinkmgr.CmdSysGet:
		k.Lock()
		defer k.Unlock()
		shared := uint8(1)
		if k.Exclusive {
			shared = 0
		}
		m := msg(nil).u8(66, shared)
		if k.Notifies {
			m = m.u8(103, 1)
		}
		return [][]byte{m.u8(93, 1)}, nil
	case netlinkmgr.CmdSysSet:
		return nil, k.setNetNS(r.mode)
	}
	k.Lock()
	defer k.Unlock()
	if req.Command == netlinkmgr.CmdGet && req.Dump {
		var all [][]byte
		for _, l := range k.Links {
			all = append(all, l.device())
		}
		return all, nil
	}
	l := k.link(func(l *Link) bool { return r.hasIndex && l.Index == r.index })
	if l == nil {
		return nil, syscall.EINVAL
	}
	return k.query(l, req.Command, r)
}

func (k *Kernel) query(l *Link, c netlinkmgr.Command, r request) ([][]byte, error) {
	switch c {
	case netlinkmgr.CmdGet:
		return [][]byte{l.device()}, nil
	case netlinkmgr.CmdPortGet:
		if r.port != 1 {
			return nil, syscall.EINVAL
		}
		return [][]byte{k.port(l)}, nil
	case netlinkmgr.CmdGetCharDev:
		if !k.Modules["ib_uverbs"] || r.char != "uverbs" {
			return nil, syscall.EOPNOTSUPP
		}
		driver := uint32(1)
		if l.RXE {
			driver = 14
		}
		return [][]byte{msg(nil).u64(72, 231<<8|192).u64(71, 1).str(70, "uverbs0").u32(73, driver)}, nil
	case netlinkmgr.CmdStatGet:
		table := msg(nil)
		for _, c := range l.Objects.Counters {
			table = table.nest(81, msg(nil).str(82, c.Name).u64(83, c.Value))
		}
		return [][]byte{l.head().u32(3, r.port).nest(80, table)}, nil
	}
	return l.objects(c)
}

func (l *Link) head() msg { return msg(nil).u32(1, l.Index).str(2, l.Name) }

func (l *Link) device() []byte {
	guid := uint64(0x505400fffe123456) + uint64(l.Index)<<48
	return l.head().u32(3, 1).u64(4, 0x01223c76).str(5, "").u64(6, guid).u64(7, guid).u8(14, 1).u8(84, 0).str(67, "roce")
}

func (k *Kernel) port(l *Link) []byte {
	state, phys := uint8(4), uint8(5)
	d := k.Dev(l.NetDev)
	if l.inactive > 0 {
		l.inactive--
		state, phys = 1, 2
	} else if d == nil || !d.Up || !d.Carrier {
		state, phys = 1, 3
	}
	m := l.head().u32(3, 1).u64(4, 0x00890000).u8(12, state).u8(13, phys)
	if d != nil {
		m = m.u32(50, uint32(d.Index)).str(51, d.Name)
	}
	return m
}

// objects answers the resource commands.
func (l *Link) objects(c netlinkmgr.Command) ([][]byte, error) {
	o := &l.Objects
	table := msg(nil)
	number := uint16(0)
	switch c {
	case netlinkmgr.CmdResGet:
		return [][]byte{l.head().nest(15, o.summary())}, nil
	case netlinkmgr.CmdResQPGet:
		number = 19
		for _, q := range o.QPs {
			table = table.nest(20, qp(q))
		}
	case netlinkmgr.CmdResCMIDGet:
		number = 30
		for _, i := range o.CMIDs {
			table = table.nest(31, cmid(i))
		}
	case netlinkmgr.CmdResCQGet:
		number = 35
		for _, q := range o.CQs {
			table = table.nest(36, msg(nil).u32(37, q.CQE).u64(38, q.Users).opt32(61, q.CQN).opt32(64, q.CtxN).owner(q.Owner))
		}
	case netlinkmgr.CmdResMRGet:
		number = 40
		for _, r := range o.MRs {
			table = table.nest(41, msg(nil).opt32(42, r.RKey).opt32(43, r.LKey).u64(45, r.Length).opt32(62, r.MRN).opt32(60, r.PDN).owner(r.Owner))
		}
	case netlinkmgr.CmdResPDGet:
		number = 46
		for _, p := range o.PDs {
			table = table.nest(47, msg(nil).opt32(48, p.LocalDMALKey).u64(38, p.Users).opt32(60, p.PDN).opt32(64, p.CtxN).owner(p.Owner))
		}
	case netlinkmgr.CmdResCtxGet:
		number = 86
		for _, x := range o.Contexts {
			table = table.nest(87, msg(nil).u32(64, x.CtxN).owner(x.Owner))
		}
	case netlinkmgr.CmdResSRQGet:
		number = 88
		for _, q := range o.SRQs {
			qps := msg(nil)
			for _, r := range q.QPs {
				if r[0] == r[1] {
					qps = qps.nest(20, msg(nil).u32(21, r[0]))
				} else {
					qps = qps.nest(20, msg(nil).u32(91, r[0]).u32(92, r[1]))
				}
			}
			table = table.nest(89, msg(nil).u32(90, q.SRQN).u8(26, uint8(q.Type)).opt32(60, q.PDN).opt32(61, q.CQN).nest(19, qps).owner(q.Owner))
		}
	default:
		return nil, syscall.EOPNOTSUPP
	}
	return [][]byte{l.head().nest(number, table)}, nil
}

func (o *Objects) summary() msg {
	table := msg(nil)
	for _, e := range []struct {
		name string
		n    int
	}{{"pd", len(o.PDs)}, {"cq", len(o.CQs)}, {"qp", len(o.QPs)}, {"cm_id", len(o.CMIDs)}, {"mr", len(o.MRs)}, {"ctx", len(o.Contexts)}, {"srq", len(o.SRQs)}} {
		table = table.nest(16, msg(nil).str(17, e.name).u64(18, uint64(e.n)))
	}
	return table
}

func qp(q netlinkmgr.QP) msg {
	m := msg(nil).opt32(3, q.Port).u32(21, q.LQPN).opt32(22, q.RQPN).opt32(23, q.RQPSN).u32(24, q.SQPSN)
	if q.PathMig != nil {
		m = m.u8(25, uint8(*q.PathMig))
	}
	return m.u8(26, uint8(q.Type)).u8(27, uint8(q.State)).opt32(60, q.PDN).owner(q.Owner)
}

func cmid(i netlinkmgr.CMID) msg {
	m := msg(nil).opt32(3, i.Port).opt32(21, i.LQPN)
	if i.QPType != nil {
		m = m.u8(26, uint8(*i.QPType))
	}
	m = m.u32(32, uint32(i.PortSpace)).u8(27, uint8(i.State)).opt32(63, i.CMIDN)
	if i.Src.IsValid() {
		m = m.put(33, sockaddr(i.Src))
	}
	if i.Dst.IsValid() {
		m = m.put(34, sockaddr(i.Dst))
	}
	return m.owner(i.Owner)
}

// Uevent is a uevent of an RDMA device; old is its name before a move.
func Uevent(action, name, old string) []byte {
	dir := "/devices/virtual/infiniband/"
	s := action + "@" + dir + name + "\x00ACTION=" + action + "\x00DEVPATH=" + dir + name + "\x00SUBSYSTEM=infiniband\x00"
	if old != "" {
		s += "DEVPATH_OLD=" + dir + old + "\x00"
	}
	return []byte(s + "NAME=" + name + "\x00SEQNUM=1234\x00")
}

// Notification is an RDMA notification (nldev.c: fill_mon_register,
// fill_mon_netdev_association); port 0 is none.
func Notification(kind uint8, index uint32, name string, port, ndev uint32, netdev string) []byte {
	m := msg(nil).u32(1, index).str(2, name)
	if port != 0 {
		m = m.u32(3, port).u32(50, ndev).str(51, netdev)
	}
	return m.u8(102, kind)
}
