package simple

import (
	"net/netip"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/kshim/ring"
)

// Device is a driver.Device with one port at 127.0.0.1 on lo. A program may
// embed it and replace methods.
type Device struct {
	name    string
	execute func(*ring.SendWR) abi.WCStatus

	mu      sync.Mutex
	regions map[uint32]*region // guarded by mu; by key
	lastKey uint32             // guarded by mu
	lastQPN uint32             // guarded by mu
}

// New returns a device of a name. execute carries out a work request; it is
// called once for each, in the order of its queue pair.
func New(name string, execute func(*ring.SendWR) abi.WCStatus) *Device {
	return &Device{name: name, execute: execute, regions: map[uint32]*region{}, lastQPN: 0x10}
}

func (d *Device) Name() string                { return d.name }
func (d *Device) DriverID() uint32            { return uint32(abi.DriverRXE) } // its rings are rxe's
func (d *Device) NetDev() string              { return "lo" }
func (d *Device) Counters() map[string]uint64 { return nil }
func (d *Device) Close() error                { return nil }

func (d *Device) QueryDevice() abi.QueryDeviceResp {
	return abi.QueryDeviceResp{
		PhysPortCnt: 1, MaxPD: 1 << 10, MaxMR: 1 << 16, MaxMRSize: 1 << 40,
		MaxCQ: 1 << 10, MaxCQE: 1 << 16, MaxQP: 1 << 10, MaxQPWR: 1 << 14, MaxSGE: 1,
		MaxQPRdAtom: 1, MaxQPInitRdAtom: 1, MaxPkeys: 1,
	}
}

func (d *Device) QueryPort(uint8) (abi.QueryPortResp, error) {
	return abi.QueryPortResp{
		State: abi.PortActive, MaxMTU: abi.MTU4096, ActiveMTU: abi.MTU4096,
		MaxMsgSz: 1 << 30, GIDTblLen: 1, PkeyTblLen: 1, LinkLayer: 2, // Ethernet
	}, nil
}

func (d *Device) GIDs(uint8) []driver.GIDEntry {
	return []driver.GIDEntry{{
		GID: netip.MustParseAddr("::ffff:127.0.0.1"), Type: uint32(abi.GIDTypeRoCEv2), NetDev: "lo",
	}}
}

// domain protects nothing: every queue pair reaches every region by its key.
type domain struct{}

func (d *Device) AllocPD() (driver.PD, error) { return domain{}, nil }
func (domain) Dealloc() error                 { return nil }

func (d *Device) CreateAH(driver.PD, *abi.AHAttr, *driver.Udata) (driver.AH, error) {
	return nil, syscall.EOPNOTSUPP
}
