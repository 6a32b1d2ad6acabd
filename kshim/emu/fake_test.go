package emu

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/stretchr/testify/require"
)

// fakeDevice is a driver without a network: it keeps books of the core's calls,
// complains of a wrong order, and raises events when told.
type fakeDevice struct {
	name string
	attr abi.QueryDeviceResp
	gids []driver.GIDEntry

	doorbells, arms atomic.Int64

	mu     sync.Mutex
	live   map[any]string // objects that exist
	faults []string       // the core's mistakes
	nextQP uint32
	last   *fakeQP
	lastCQ *fakeCQ
	lastMR *fakeMR
	lastAH *fakeAH
	refuse error // of every create and destroy
	closed bool

	hook      func(step string) // of every call of the core, when it begins and when it ends
	gidTblLen uint32
	quiet     bool // doorbells are not counted
}

func newFakeDevice(name string) *fakeDevice {
	return &fakeDevice{
		name: name, nextQP: 17, gidTblLen: 8, live: map[any]string{},
		attr: abi.QueryDeviceResp{
			NodeGUID: 0x02000afffe000001, SysImageGUID: 0x02000afffe000001, FWVer: 1<<32 | 2<<16 | 3,
			MaxMRSize: 1 << 62, MaxQP: 64, MaxQPWR: 1024, MaxSGE: 32, MaxCQ: 64, MaxCQE: 32767,
			MaxMR: 64, MaxPD: 64, MaxAH: 64, MaxSRQ: 64, MaxMW: 64, MaxQPRdAtom: 128, MaxQPInitRdAtom: 128, MaxPkeys: 1, PhysPortCnt: 1,
			DeviceCapFlags: 0x1234,
		},
		gids: []driver.GIDEntry{
			{Index: 0, GID: netip.MustParseAddr("::ffff:10.0.0.1"), Type: uint32(abi.GIDTypeRoCEv2), NetDev: "lo", IfIndex: 1},
			{Index: 3, GID: netip.MustParseAddr("fe80::1"), Type: uint32(abi.GIDTypeRoCEv1), NetDev: "lo", IfIndex: 1},
		},
	}
}

func (d *fakeDevice) Name() string     { return d.name }
func (d *fakeDevice) DriverID() uint32 { return uint32(abi.DriverRXE) }
func (d *fakeDevice) NetDev() string   { return "lo" }

// step calls the hook now, and when its answer is called.
func (d *fakeDevice) step(call string) (end func()) {
	if d.hook == nil {
		return func() {}
	}
	d.hook(call)
	return func() { d.hook("end of " + call) }
}

func (d *fakeDevice) QueryDevice() abi.QueryDeviceResp {
	defer d.step("QueryDevice")()
	return d.attr
}

func (d *fakeDevice) GIDs(uint8) []driver.GIDEntry {
	defer d.step("GIDs")()
	return d.gids
}

func (d *fakeDevice) Counters() map[string]uint64 {
	return map[string]uint64{"sent_pkts": uint64(d.doorbells.Load()), "rcvd_pkts": 7}
}

func (d *fakeDevice) QueryPort(port uint8) (abi.QueryPortResp, error) {
	defer d.step("QueryPort")()
	return abi.QueryPortResp{
		State: abi.PortActive, MaxMTU: abi.MTU4096, ActiveMTU: abi.MTU1024, GIDTblLen: d.gidTblLen, PkeyTblLen: 1,
		PhysState: abi.PortPhysStateLinkUp, LinkLayer: abi.LinkLayerEthernet, MaxMsgSz: 8 << 20,
		ActiveWidth: 2, ActiveSpeed: 32, // 4X EDR
	}, nil
}

func (d *fakeDevice) fault(what string) {
	d.faults = append(d.faults, what)
}

func (d *fakeDevice) born(o any, kind string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		d.fault("create on a closed device")
	}
	if d.refuse != nil {
		return d.refuse
	}
	d.live[o] = kind
	return nil
}

// died checks that an object dies once, and after those that need it.
func (d *fakeDevice) died(o any, needs func(any) bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuse != nil {
		return d.refuse
	}
	if d.live[o] == "" {
		d.fault("an object was destroyed twice")
	}
	delete(d.live, o)
	for other := range d.live {
		if needs(other) {
			d.fault("a " + d.live[other] + " outlived what it needs")
		}
	}
	return nil
}

// check is called at the end of tests: nothing is left, nothing went wrong.
func (d *fakeDevice) check(t testing.TB) {
	d.mu.Lock()
	defer d.mu.Unlock()
	require.Empty(t, d.live, "objects left on the device")
	require.Empty(t, d.faults)
}

func (d *fakeDevice) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || len(d.live) != 0 {
		d.fault("device closed twice, or with objects on it")
	}
	d.closed = true
	return nil
}

type fakePD struct{ d *fakeDevice }

func (d *fakeDevice) AllocPD() (driver.PD, error) {
	defer d.step("AllocPD")()
	p := &fakePD{d}
	return p, d.born(p, "pd")
}

func (p *fakePD) Dealloc() error {
	defer p.d.step("PD.Dealloc")()
	return p.d.died(p, func(o any) bool {
		switch o := o.(type) {
		case *fakeMR:
			return o.pd == p
		case *fakeAH:
			return o.pd == p
		case *fakeQP:
			return o.init.PD == driver.PD(p)
		case *fakeSRQ:
			return o.init.PD == driver.PD(p)
		}
		return false
	})
}

type fakeAH struct {
	d    *fakeDevice
	pd   *fakePD
	attr abi.AHAttr
}

func (d *fakeDevice) CreateAH(pd driver.PD, attr *abi.AHAttr, u *driver.Udata) (driver.AH, error) {
	defer d.step("CreateAH")()
	a := &fakeAH{d, pd.(*fakePD), *attr}
	if len(u.Out) >= abi.RXECreateAHRespSize {
		(&abi.RXECreateAHResp{AHNum: 9}).Put(u.Out)
	}
	d.mu.Lock()
	d.lastAH = a
	d.mu.Unlock()
	return a, d.born(a, "ah")
}

func (a *fakeAH) Destroy() error {
	defer a.d.step("AH.Destroy")()
	return a.d.died(a, func(any) bool { return false })
}

type fakeMR struct {
	d      *fakeDevice
	pd     *fakePD
	mem    driver.Memory
	iova   uint64
	access abi.AccessFlags
}

func (d *fakeDevice) RegMR(pd driver.PD, mem driver.Memory, iova uint64, access abi.AccessFlags) (driver.MR, error) {
	defer d.step("RegMR")()
	m := &fakeMR{d, pd.(*fakePD), mem, iova, access}
	d.mu.Lock()
	d.lastMR = m
	d.mu.Unlock()
	return m, d.born(m, "mr")
}

func (m *fakeMR) Rereg(r *driver.Rereg) error {
	defer m.d.step("MR.Rereg")()
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	if m.d.refuse != nil {
		return m.d.refuse
	}
	if r.Flags&abi.ReregPD != 0 {
		m.pd = r.PD.(*fakePD)
	}
	if r.Flags&abi.ReregTranslation != 0 {
		m.mem, m.iova = r.Mem, r.IOVA
	}
	if r.Flags&abi.ReregAccess != 0 {
		m.access = r.Access
	}
	return nil
}

func (m *fakeMR) LKey() uint32 { return 0x2c4 }
func (m *fakeMR) RKey() uint32 { return 0x2c4 }
func (m *fakeMR) Dereg() error {
	defer m.d.step("MR.Dereg")()
	return m.d.died(m, func(any) bool { return false })
}

type fakeCQ struct {
	d    *fakeDevice
	ev   driver.CQEvents
	ring []byte
	cqe  int
}

func (d *fakeDevice) CreateCQ(cqe int, u *driver.Udata, ev driver.CQEvents) (driver.CQ, error) {
	defer d.step("CreateCQ")()
	if len(u.Out) < abi.RXECreateCQRespSize {
		return nil, syscall.EINVAL
	}
	q := &fakeCQ{d: d, ev: ev, ring: make([]byte, 384+min(128*(cqe+1), 4096)), cqe: cqe}
	if err := d.born(q, "cq"); err != nil {
		return nil, err
	}
	(&abi.RXECreateCQResp{MI: abi.MMInfo{Offset: u.Mmap(q.ring), Size: uint32(len(q.ring))}}).Put(u.Out)
	d.mu.Lock()
	d.lastCQ = q
	d.mu.Unlock()
	return q, nil
}

func (q *fakeCQ) Resize(cqe int, u *driver.Udata) error {
	defer q.d.step("CQ.Resize")()
	if len(u.Out) < abi.RXEResizeCQRespSize {
		return syscall.EINVAL
	}
	q.d.mu.Lock()
	refuse := q.d.refuse
	q.d.mu.Unlock()
	ring := make([]byte, 384+min(128*(cqe+1), 4096))
	mi := abi.MMInfo{Offset: u.Mmap(ring), Size: uint32(len(ring))}
	if refuse != nil {
		return refuse
	}
	q.ring, q.cqe = ring, cqe
	(&abi.RXEResizeCQResp{MI: mi}).Put(u.Out)
	return nil
}

func (q *fakeCQ) CQE() int { return q.cqe }
func (q *fakeCQ) Arm(bool) error {
	defer q.d.step("CQ.Arm")()
	q.d.arms.Add(1)
	return nil
}

func (q *fakeCQ) Destroy() error {
	defer q.d.step("CQ.Destroy")()
	return q.d.died(q, func(o any) bool {
		p, ok := o.(*fakeQP)
		return ok && (p.init.SendCQ == driver.CQ(q) || p.init.RecvCQ == driver.CQ(q))
	})
}

type fakeQP struct {
	d        *fakeDevice
	num      uint32
	init     driver.QPInit
	ev       driver.QPEvents
	sq, rq   []byte
	state    atomic.Uint32
	modified abi.ModifyQP
	dead     atomic.Bool
	groups   []netip.Addr
}

func (d *fakeDevice) CreateQP(init *driver.QPInit, u *driver.Udata, ev driver.QPEvents) (driver.QP, error) {
	defer d.step("CreateQP")()
	if len(u.Out) < abi.RXECreateQPRespSize || len(u.In) != 0 {
		return nil, syscall.EINVAL
	}
	init.Cap.MaxInline = max(init.Cap.MaxInline, 16*init.Cap.MaxSendSGE)
	q := &fakeQP{d: d, init: *init, ev: ev, sq: make([]byte, 1024), rq: make([]byte, 2048)}
	if err := d.born(q, "qp"); err != nil {
		return nil, err
	}
	(&abi.RXECreateQPResp{
		RQMI: abi.MMInfo{Offset: u.Mmap(q.rq), Size: uint32(len(q.rq))},
		SQMI: abi.MMInfo{Offset: u.Mmap(q.sq), Size: uint32(len(q.sq))},
	}).Put(u.Out)
	d.mu.Lock()
	q.num = d.nextQP
	d.nextQP++
	d.last = q
	d.mu.Unlock()
	return q, nil
}

func (q *fakeQP) Num() uint32        { return q.num }
func (q *fakeQP) State() abi.QPState { return abi.QPState(q.state.Load()) }

func (q *fakeQP) Modify(attr *abi.ModifyQP, mask abi.QPAttrMask) error {
	defer q.d.step("QP.Modify")()
	q.d.mu.Lock()
	defer q.d.mu.Unlock()
	q.modified = *attr
	if mask&abi.QPMaskState != 0 {
		q.state.Store(uint32(attr.QPState))
	}
	return nil
}

func (q *fakeQP) Query() (abi.QueryQPResp, error) {
	defer q.d.step("QP.Query")()
	return abi.QueryQPResp{QPState: q.State(), CurQPState: q.State(), MaxSendWR: q.init.Cap.MaxSendWR}, nil
}

func (q *fakeQP) Doorbell() error {
	defer q.d.step("QP.Doorbell")()
	if q.dead.Load() {
		q.d.mu.Lock()
		q.d.fault("doorbell of a destroyed queue pair")
		q.d.mu.Unlock()
	}
	if s := q.State(); s < abi.QPSRTS {
		return syscall.EINVAL
	}
	if !q.d.quiet {
		q.d.doorbells.Add(1)
	}
	return nil
}

func (q *fakeQP) Status() any { return map[string]uint64{"rdma_sends": 5} }

func (q *fakeQP) Destroy() error {
	defer q.d.step("QP.Destroy")()
	err := q.d.died(q, func(any) bool { return false })
	if err == nil {
		q.dead.Store(true)
	}
	return err
}
