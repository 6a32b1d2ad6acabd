package netlinktest

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/nldev"
	"github.com/rdmashim/rdmashim/netlinkmgr"
)

// request is the attributes that requests carry.
type request struct {
	Index *uint32 `nldev:"DEV_INDEX"`
	Port  uint32  `nldev:"PORT_INDEX"`
	Name  string  `nldev:"DEV_NAME"`
	Kind  string  `nldev:"LINK_TYPE"`
	Dev   string  `nldev:"NDEV_NAME"`
	Char  string  `nldev:"CHARDEV_TYPE"`
	Mode  uint8   `nldev:"NETNS_MODE"`
	QKey  *uint8  `nldev:"PRIVILEGED_QKEY_MODE"`
	NetNS *uint32 `nldev:"NET_NS_FD"`
}

// rdma answers a request as nldev does.
func (k *Kernel) rdma(_ context.Context, req netlinkmgr.Request) ([][]byte, error) {
	var r request
	if err := nldev.Decode(req.Attrs, &r); err != nil {
		return nil, syscall.EINVAL
	}
	k.Lock()
	present := k.Modules["ib_core"]
	k.Unlock()
	if !present {
		return nil, syscall.EPROTONOSUPPORT
	}
	switch req.Command {
	case "NEWLINK":
		return nil, k.newLink(r.Name, r.Kind, r.Dev)
	case "SET":
		if r.NetNS != nil {
			return nil, k.refuse("move", fmt.Sprint(*r.Index))
		}
		return nil, k.rename(*r.Index, r.Name)
	case "DELLINK":
		return nil, k.delLink(*r.Index)
	case "SYS_SET":
		if r.QKey != nil {
			return nil, k.refuse("setqkey", fmt.Sprint(*r.QKey))
		}
		return nil, k.setNetNS(r.Mode)
	}
	k.Lock()
	defer k.Unlock()
	if req.Command == "SYS_GET" {
		return [][]byte{k.system()}, nil
	}
	if req.Command == "GET" && req.Dump {
		var all [][]byte
		for _, l := range k.Links {
			all = append(all, l.device())
		}
		return all, nil
	}
	l := k.link(func(l *Link) bool { return r.Index != nil && l.Index == *r.Index })
	if l == nil {
		return nil, syscall.EINVAL
	}
	answer, err := k.query(l, req.Command, r)
	return [][]byte{answer}, err
}

func (k *Kernel) system() []byte {
	mode := uint8(netlinkmgr.NetNSShared)
	if k.Exclusive {
		mode = uint8(netlinkmgr.NetNSExclusive)
	}
	b := nldev.Encode("NETNS_MODE", mode)
	if k.Notifies {
		b = append(b, nldev.Encode("MONITOR_MODE", uint8(1))...)
	}
	return append(b, nldev.Encode("COPY_ON_FORK", uint8(1))...)
}

func (k *Kernel) query(l *Link, command string, r request) ([]byte, error) {
	switch command {
	case "GET":
		return l.device(), nil
	case "PORT_GET":
		if r.Port != 1 {
			return nil, syscall.EINVAL
		}
		return k.port(l), nil
	case "GET_CHARDEV":
		if !k.Modules["ib_uverbs"] || r.Char != "uverbs" {
			return nil, syscall.EOPNOTSUPP
		}
		driver := uint32(1)
		if l.RXE {
			driver = 14
		}
		return nldev.Encode("CHARDEV", uint64(231<<8|192), "CHARDEV_ABI", uint64(1), "CHARDEV_NAME", "uverbs0", "UVERBS_DRIVER_ID", driver), nil
	case "STAT_GET":
		var table nldev.Nested
		for _, c := range l.Objects.Counters {
			table = append(table, nldev.Encode("STAT_HWCOUNTER_ENTRY", nldev.Nested(nldev.Encode("STAT_HWCOUNTER_ENTRY_NAME", c.Name, "STAT_HWCOUNTER_ENTRY_VALUE", c.Value)))...)
		}
		return l.with("PORT_INDEX", r.Port, "STAT_HWCOUNTERS", table), nil
	}
	return l.objects(command)
}

// with begins with the device's number and name.
func (l *Link) with(more ...any) []byte {
	return nldev.Encode(append([]any{"DEV_INDEX", l.Index, "DEV_NAME", l.Name}, more...)...)
}

func (l *Link) device() []byte {
	guid := uint64(0x505400fffe123456) + uint64(l.Index)<<48
	return l.with("PORT_INDEX", uint32(1), "CAP_FLAGS", uint64(0x01223c76), "FW_VERSION", "", "NODE_GUID", guid, "SYS_IMAGE_GUID", guid,
		"DEV_NODE_TYPE", uint8(1), "DEV_DIM", uint8(0), "DEV_PROTOCOL", "roce")
}

func (k *Kernel) port(l *Link) []byte {
	state, phys := uint8(netlinkmgr.PortActive), uint8(5)
	d := k.Dev(l.NetDev)
	if l.inactive > 0 {
		l.inactive--
		state, phys = 1, 2
	} else if d == nil || !d.Up || !d.Carrier {
		state, phys = 1, 3
	}
	b := l.with("PORT_INDEX", uint32(1), "CAP_FLAGS", uint64(0x00890000), "PORT_STATE", state, "PORT_PHYS_STATE", phys)
	if d != nil {
		b = append(b, nldev.Encode("NDEV_INDEX", uint32(d.Index), "NDEV_NAME", d.Name)...)
	}
	return b
}

// objects answers the resource commands.
func (l *Link) objects(command string) ([]byte, error) {
	o := &l.Objects
	switch command {
	case "RES_GET":
		var table nldev.Nested
		for _, c := range []netlinkmgr.Counter{{Name: "pd", Value: uint64(len(o.PDs))}, {Name: "cq", Value: uint64(len(o.CQs))}, {Name: "qp", Value: uint64(len(o.QPs))},
			{Name: "cm_id", Value: uint64(len(o.CMIDs))}, {Name: "mr", Value: uint64(len(o.MRs))}, {Name: "ctx", Value: uint64(len(o.Contexts))}, {Name: "srq", Value: uint64(len(o.SRQs))}} {
			table = append(table, nldev.Encode("RES_SUMMARY_ENTRY", nldev.Nested(nldev.Encode("RES_SUMMARY_ENTRY_NAME", c.Name, "RES_SUMMARY_ENTRY_CURR", c.Value)))...)
		}
		return l.with("RES_SUMMARY", table), nil
	case "RES_QP_GET":
		return table(l, "RES_QP", o.QPs, func(q netlinkmgr.QP) []byte {
			return encode(q.Owner, "PORT_INDEX", q.Port, "RES_LQPN", q.LQPN, "RES_RQPN", q.RQPN, "RES_RQ_PSN", q.RQPSN, "RES_SQ_PSN", q.SQPSN,
				"RES_PATH_MIG_STATE", (*uint8)(q.PathMig), "RES_TYPE", uint8(q.Type), "RES_STATE", uint8(q.State), "RES_PDN", q.PDN)
		}), nil
	case "RES_CM_ID_GET":
		return table(l, "RES_CM_ID", o.CMIDs, func(i netlinkmgr.CMID) []byte {
			return encode(i.Owner, "PORT_INDEX", i.Port, "RES_LQPN", i.LQPN, "RES_TYPE", (*uint8)(i.QPType), "RES_PS", uint32(i.PortSpace), "RES_STATE", uint8(i.State),
				"RES_CM_IDN", i.CMIDN, "RES_SRC_ADDR", sockaddr(i.Src), "RES_DST_ADDR", sockaddr(i.Dst))
		}), nil
	case "RES_CQ_GET":
		return table(l, "RES_CQ", o.CQs, func(q netlinkmgr.CQ) []byte {
			return encode(q.Owner, "RES_CQE", q.CQE, "RES_USECNT", q.Users, "RES_CQN", q.CQN, "RES_CTXN", q.CtxN)
		}), nil
	case "RES_MR_GET":
		return table(l, "RES_MR", o.MRs, func(r netlinkmgr.MR) []byte {
			return encode(r.Owner, "RES_RKEY", r.RKey, "RES_LKEY", r.LKey, "RES_MRLEN", r.Length, "RES_MRN", r.MRN, "RES_PDN", r.PDN)
		}), nil
	case "RES_PD_GET":
		return table(l, "RES_PD", o.PDs, func(p netlinkmgr.PD) []byte {
			return encode(p.Owner, "RES_LOCAL_DMA_LKEY", p.LocalDMALKey, "RES_USECNT", p.Users, "RES_PDN", p.PDN, "RES_CTXN", p.CtxN)
		}), nil
	case "RES_CTX_GET":
		return table(l, "RES_CTX", o.Contexts, func(x netlinkmgr.Context) []byte { return encode(x.Owner, "RES_CTXN", x.CtxN) }), nil
	case "RES_SRQ_GET":
		return table(l, "RES_SRQ", o.SRQs, func(q netlinkmgr.SRQ) []byte {
			qps := nldev.Nested{} // there also when it is empty
			for _, r := range q.QPs {
				entry := nldev.Encode("MIN_RANGE", r.Min, "MAX_RANGE", r.Max)
				if r.QPN != nil {
					entry = nldev.Encode("RES_LQPN", *r.QPN)
				}
				qps = append(qps, nldev.Encode("RES_QP_ENTRY", nldev.Nested(entry))...)
			}
			return encode(q.Owner, "RES_SRQN", q.SRQN, "RES_TYPE", uint8(q.Type), "RES_PDN", q.PDN, "RES_CQN", q.CQN, "RES_QP", qps)
		}), nil
	}
	return nil, syscall.EOPNOTSUPP
}

func table[T any](l *Link, name string, list []T, entry func(T) []byte) []byte {
	var all nldev.Nested
	for _, o := range list {
		all = append(all, nldev.Encode(name+"_ENTRY", nldev.Nested(entry(o)))...)
	}
	return l.with(name, all)
}

// encode leaves out nil attributes, and puts the owner behind the rest.
func encode(o netlinkmgr.Owner, namesAndValues ...any) (b []byte) {
	for pair := range slices.Chunk(namesAndValues, 2) {
		v := reflect.ValueOf(pair[1])
		if (v.Kind() == reflect.Pointer || v.Kind() == reflect.Slice) && v.IsNil() {
			continue
		}
		b = append(b, nldev.Encode(pair[0], reflect.Indirect(v).Interface())...)
	}
	if o.Kernel {
		return append(b, nldev.Encode("RES_KERN_NAME", o.Comm)...)
	}
	return append(b, nldev.Encode("RES_PID", o.PID)...)
}

// sockaddr encodes a __kernel_sockaddr_storage; nil for none.
func sockaddr(a netip.AddrPort) []byte {
	if !a.IsValid() {
		return nil
	}
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
	b := nldev.Encode("DEV_INDEX", index, "DEV_NAME", name)
	if port != 0 {
		b = append(b, nldev.Encode("PORT_INDEX", port, "NDEV_INDEX", ndev, "NDEV_NAME", netdev)...)
	}
	return append(b, nldev.Encode("EVENT_TYPE", kind)...)
}
