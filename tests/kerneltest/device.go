package kerneltest

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/stretchr/testify/require"
)

// Device is a driver without a network: it keeps books of the core's calls,
// complains of a wrong order, and raises events when a test calls for them. Its
// queues are real rings, of at most 1,023 entries.
type Device struct {
	name      string
	Driver    abi.DriverID
	Attr      abi.QueryDeviceResp
	GIDTable  []driver.GIDEntry
	GIDTblLen uint32

	Doorbells atomic.Int64
	Quiet     bool // doorbells are not counted

	// Hook is called when a call of the core begins and when it ends.
	Hook func(step string)

	mu     sync.Mutex
	Live   map[any]string // guarded by mu, as are all: objects that exist
	faults []string       // the core's mistakes
	nextQP uint32
	Last   *QP // that was made
	LastCQ *CQ
	LastMR *MR
	Refuse error // of every create and destroy
	Closed bool
	Bell   func(*QP) // the answer to a doorbell outside ERR; nil: none
}

// NewDevice returns a device at 10.0.0.1.
func NewDevice(name string) *Device {
	return &Device{
		name: name, Driver: abi.DriverRXE, nextQP: 17, GIDTblLen: 8, Live: map[any]string{},
		Attr: abi.QueryDeviceResp{
			NodeGUID: 0x02000afffe000001, SysImageGUID: 0x02000afffe000001, FWVer: 1<<32 | 2<<16 | 3,
			MaxMRSize: 1 << 62, MaxQP: 64, MaxQPWR: 1024, MaxSGE: 32, MaxCQ: 64, MaxCQE: 32767,
			MaxMR: 64, MaxPD: 64, MaxAH: 64, MaxSRQ: 64, MaxMW: 64, MaxQPRdAtom: 128, MaxQPInitRdAtom: 128, MaxPkeys: 1, PhysPortCnt: 1,
			DeviceCapFlags: 0x1234,
		},
		GIDTable: []driver.GIDEntry{
			{Index: 0, GID: netip.MustParseAddr("::ffff:10.0.0.1"), Type: uint32(abi.GIDTypeRoCEv2), NetDev: "lo", IfIndex: 1},
			{Index: 3, GID: netip.MustParseAddr("fe80::1"), Type: uint32(abi.GIDTypeRoCEv1), NetDev: "lo", IfIndex: 1},
		},
	}
}

func (d *Device) Name() string     { return d.name }
func (d *Device) DriverID() uint32 { return uint32(d.Driver) }
func (d *Device) NetDev() string   { return "lo" }

// step calls the hook now, and when its answer is called.
func (d *Device) step(call string) (end func()) {
	if d.Hook == nil {
		return func() {}
	}
	d.Hook(call)
	return func() { d.Hook("end of " + call) }
}

func (d *Device) QueryDevice() abi.QueryDeviceResp {
	defer d.step("QueryDevice")()
	return d.Attr
}

func (d *Device) GIDs(uint8) []driver.GIDEntry {
	defer d.step("GIDs")()
	return d.GIDTable
}

func (d *Device) Counters() map[string]uint64 {
	return map[string]uint64{"sent_pkts": uint64(d.Doorbells.Load()), "rcvd_pkts": 7}
}

func (d *Device) QueryPort(port uint8) (abi.QueryPortResp, error) {
	defer d.step("QueryPort")()
	return abi.QueryPortResp{
		State: abi.PortActive, MaxMTU: abi.MTU4096, ActiveMTU: abi.MTU1024, GIDTblLen: d.GIDTblLen, PkeyTblLen: 1,
		PhysState: abi.PortPhysStateLinkUp, LinkLayer: abi.LinkLayerEthernet, MaxMsgSz: 8 << 20,
		ActiveWidth: 2, ActiveSpeed: 32, // 4X EDR
	}, nil
}

func (d *Device) fault(what string) {
	d.faults = append(d.faults, what)
}

func (d *Device) born(o any, kind string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Closed {
		d.fault("create on a closed device")
	}
	if d.Refuse != nil {
		return d.Refuse
	}
	d.Live[o] = kind
	return nil
}

// died checks that an object dies once, and after those that need it.
func (d *Device) died(o any, needs func(any) bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Refuse != nil {
		return d.Refuse
	}
	if d.Live[o] == "" {
		d.fault("an object was destroyed twice")
	}
	delete(d.Live, o)
	for other := range d.Live {
		if needs(other) {
			d.fault("a " + d.Live[other] + " outlived what it needs")
		}
	}
	return nil
}

// Do runs f with the device's lock held, as the driver itself would.
func (d *Device) Do(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// Check is called at the end of tests: nothing is left, nothing went wrong.
func (d *Device) Check(t testing.TB) {
	d.mu.Lock()
	defer d.mu.Unlock()
	require.Empty(t, d.Live, "objects left on the device")
	require.Empty(t, d.faults)
}

func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Closed || len(d.Live) != 0 {
		d.fault("device closed twice, or with objects on it")
	}
	d.Closed = true
	return nil
}

type PD struct{ d *Device }

func (d *Device) AllocPD() (driver.PD, error) {
	defer d.step("AllocPD")()
	p := &PD{d}
	return p, d.born(p, "pd")
}

func (p *PD) Dealloc() error {
	defer p.d.step("PD.Dealloc")()
	return p.d.died(p, func(o any) bool {
		switch o := o.(type) {
		case *MR:
			return o.pd == p
		case *AH:
			return o.pd == p
		case *QP:
			return o.Init.PD == driver.PD(p)
		case *SRQ:
			return o.Init.PD == driver.PD(p)
		}
		return false
	})
}

type AH struct {
	d    *Device
	pd   *PD
	Attr abi.AHAttr
}

func (d *Device) CreateAH(pd driver.PD, attr *abi.AHAttr, u *driver.Udata) (driver.AH, error) {
	defer d.step("CreateAH")()
	a := &AH{d, pd.(*PD), *attr}
	if len(u.Out) >= abi.RXECreateAHRespSize {
		(&abi.RXECreateAHResp{AHNum: 9}).Put(u.Out)
	}
	return a, d.born(a, "ah")
}

func (a *AH) Destroy() error {
	defer a.d.step("AH.Destroy")()
	return a.d.died(a, func(any) bool { return false })
}

type MR struct {
	d      *Device
	pd     *PD
	Mem    driver.Memory
	IOVA   uint64
	Access abi.AccessFlags
}

func (d *Device) RegMR(pd driver.PD, mem driver.Memory, iova uint64, access abi.AccessFlags) (driver.MR, error) {
	defer d.step("RegMR")()
	m := &MR{d, pd.(*PD), mem, iova, access}
	d.Do(func() { d.LastMR = m })
	return m, d.born(m, "mr")
}

func (m *MR) Rereg(r *driver.Rereg) error {
	defer m.d.step("MR.Rereg")()
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	if m.d.Refuse != nil {
		return m.d.Refuse
	}
	if r.Flags&abi.ReregPD != 0 {
		m.pd = r.PD.(*PD)
	}
	if r.Flags&abi.ReregTranslation != 0 {
		m.Mem, m.IOVA = r.Mem, r.IOVA
	}
	if r.Flags&abi.ReregAccess != 0 {
		m.Access = r.Access
	}
	return nil
}

func (m *MR) LKey() uint32 { return 0x2c4 }
func (m *MR) RKey() uint32 { return 0x2c4 }
func (m *MR) Dereg() error {
	defer m.d.step("MR.Dereg")()
	return m.d.died(m, func(any) bool { return false })
}

type MW struct{ d *Device }

func (d *Device) AllocMW(driver.PD, bool) (driver.MW, error) {
	defer d.step("AllocMW")()
	w := &MW{d}
	return w, d.born(w, "mw")
}

func (w *MW) RKey() uint32 { return 0x4200 }

func (w *MW) Dealloc() error {
	defer w.d.step("MW.Dealloc")()
	return w.d.died(w, func(any) bool { return false })
}
