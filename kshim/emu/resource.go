package emu

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
)

// DeviceInfo is a device as the kernel's netlink interface shows it.
type DeviceInfo struct {
	driver.Device
	Index int      // among the machine's devices
	Node  *CharDev // nil: it has none
	dev   *device
}

// CharDev is a device file.
type CharDev struct {
	Name   string // below /dev/infiniband
	Number uint64 // as stat says it
	ABI    int    // version of the driver's part of commands
}

func charDev(name string, major, minor, abi int) *CharDev {
	return &CharDev{name, uint64(minor&0xff | major<<8 | minor&^0xff<<12), abi} // huge_encode_dev
}

// Devices lists the devices that the process sees, in the order of their
// indices.
func (p *Process) Devices() []DeviceInfo {
	nodes := p.ns.nodes()
	var list []DeviceInfo
	for _, d := range p.ns.list() {
		i := DeviceInfo{Device: d.Device, Index: d.index, dev: d}
		if n := slices.IndexFunc(nodes, func(n deviceNode) bool { return n.device == d }); n >= 0 {
			i.Node = charDev(nodes[n].node(), uverbsMajor, uverbsMinor+nodes[n].number, d.providerABI())
		}
		list = append(list, i)
	}
	return list
}

// CM is the connection manager's file, nil if no device has one.
func (p *Process) CM() *CharDev {
	if len(p.ns.cmDevices()) == 0 {
		return nil
	}
	return charDev(nodeCM, miscMajor, minorCM, abi.UCMABIVersion)
}

// ObjectInfo is an object of a device as the kernel's resource tracking shows
// it (struct rdma_restrack_entry). Fields that a kind does not have are zero.
type ObjectInfo struct {
	Owner   *Process // that opened the file
	ID      uint32   // unique on the device, among those of the kind
	Context uint32   // ID of the open device file
	PD      uint32   // ID of the protection domain, of regions and queues
	Users   int      // objects that need this one, of domains and completion queues

	CQE        uint32 // of completion queues
	Length     uint64 // of regions, in bytes, as are
	LKey, RKey uint32

	Port uint8 // of queue pairs, 0 before INIT; and of ids, 0 before they have a device
	Type abi.QPType
	QP   abi.QueryQPResp
	Stat any      // of queue pairs: what driver.QP.Status says
	QPs  []uint32 // of shared receive queues: the queue pairs that use it, by number

	QPN      uint32 // of ids: the connection's queue pair, if it is known, as are
	State    uint8  // enum rdma_cm_state
	Space    abi.UCMPortSpace
	Src, Dst abi.SockaddrStorage
}

// Objects lists a device's objects of a kind, in the order of their IDs: "pd",
// "cq", "qp", "mr", "srq", "ah", "mw", "ctx" and "cm_id".
func (p *Process) Objects(of DeviceInfo, name string) (list []ObjectInfo) {
	d := of.dev
	if name == "cm_id" {
		list = p.ns.cm.objects(d)
	}
	k := slices.Index(kindNames[:], name)
	d.mu.Lock()
	files := slices.Collect(maps.Keys(d.files))
	d.mu.Unlock()
	for _, f := range files {
		f.mu.Lock()
		context, number := f.context, f.number
		f.mu.Unlock()
		if name == "ctx" && context {
			list = append(list, ObjectInfo{Owner: f.proc, ID: number})
		}
		if k < 0 {
			continue
		}
		for _, o := range f.handles.all(kind(k)) {
			if i, ok := o.info(); ok {
				i.Context = number
				list = append(list, i)
			}
		}
	}
	slices.SortFunc(list, func(a, b ObjectInfo) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// info describes an object that is still there.
func (o *object) info() (i ObjectInfo, ok bool) {
	o.mu.RLock()
	defer o.release()
	if o.dead {
		return i, false
	}
	i = ObjectInfo{Owner: o.file.proc, ID: o.number, Users: int(o.users.Load())}
	if len(o.needs) > 0 && o.needs[0].kind == kindPD {
		i.PD = o.needs[0].number
	}
	switch b := o.body.(type) {
	case *completionQueue:
		i.CQE = uint32(b.cq.CQE())
	case *region:
		i.Length, i.LKey, i.RKey = b.mem.Len, b.mr.LKey(), b.mr.RKey()
	case *sharedReceives:
		for _, q := range o.file.handles.all(kindQP) {
			if slices.Contains(q.needs, o) {
				i.QPs = append(i.QPs, q.body.(*queuePair).qp.Num())
			}
		}
		slices.Sort(i.QPs)
	case *queuePair:
		attr, err := b.qp.Query()
		i.ID, i.Type, i.QP, i.Port, i.Stat = b.qp.Num(), b.typ, attr, attr.PortNum, b.qp.Status()
		return i, err == nil
	}
	return i, true
}

// cmStates are the states of ids in Linux's numbers (enum rdma_cm_state).
var cmStates = [...]uint8{
	ucmIdle: 0, ucmBound: 7, ucmAddrResolved: 2, ucmRouteResolved: 4, ucmConnect: 5, ucmListening: 8, ucmRemoved: 9,
}

// objects lists the ids that are bound to a device, and those that listen on
// every device.
func (c *ucmCore) objects(d *device) (list []ObjectInfo) {
	c.mu.Lock()
	ids := slices.Collect(maps.Values(c.ids))
	c.mu.Unlock()
	for _, id := range ids {
		id.mu.Lock()
		if !id.gone && (id.dev == d || id.dev == nil && id.state == ucmListening) {
			list = append(list, id.info())
		}
		id.mu.Unlock()
	}
	return list
}

// info describes an id. Preconditions: mu is held.
func (id *ucmID) info() ObjectInfo {
	i := ObjectInfo{Owner: id.file.Load().proc, ID: id.num, Port: 1, QPN: id.qpn, Type: id.typ, State: cmStates[id.state], Space: id.ps, Src: id.srcIB, Dst: id.dstIB}
	if isIB(&id.srcIB) || !id.src.IsValid() {
		return i
	}
	dst := id.dst
	if !dst.IsValid() { // of the source's family, and zero
		dst = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
		if id.src.Addr().Is6() && !id.src.Addr().Is4In6() {
			dst = netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
		}
	}
	_, _ = i.Src.Set(id.src)
	_, _ = i.Dst.Set(dst)
	return i
}
