package rnic

import (
	"fmt"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/mem"
)

// The device's limits: rxe's (rxe_param.h).
const (
	maxQP      = 1<<20 - 16
	maxQPWR    = 1 << 20
	maxCQ      = 1 << 20
	maxCQE     = 1<<15 - 1
	maxPD      = 1 << 20
	maxSRQ     = 1<<20 - 0x20001
	maxSRQWR   = 1 << 20
	maxSRQSGE  = 27
	maxRdAtom  = 128
	maxGroups  = 8192
	maxMembers = 56 // queue pairs of a group
	gidTable   = 1024
	maxPkeys   = 64 // the port's table has one entry all the same
	rxeVendor  = 0xffffff
)

// Device capability flags (enum ib_uverbs_device_cap_flags): rxe's
// (rxe_param.h: RXE_DEVICE_CAP_FLAGS), for programs that look at them. Those of
// the first line promise as much here as there, which is next to nothing: bad
// keys are not counted, and paths do not migrate.
const (
	capNominal       = 1<<1 | 1<<2 | 1<<4 | 1<<5 | 1<<6 | 1<<10
	capSysImageGUID  = 1 << 11
	capRCRNRNAKGen   = 1 << 12
	capSRQResize     = 1 << 13
	capMemWindow     = 1 << 17
	capMemManagement = 1 << 21 // keys are invalidated by requests
	capMemWindow2B   = 1 << 24

	capabilities = capNominal | capSysImageGUID | capRCRNRNAKGen | capSRQResize | capMemWindow | capMemManagement | capMemWindow2B
)

// capCM is IB_PORT_CM_SUP, the one port capability that rxe reports
// (rxe_param.h: RXE_PORT_PORT_CAP_FLAGS).
const capCM = 1 << 16

// Values of struct ib_port_attr that are not enumerated in abi.
const (
	width1X    = 1
	speedSDR   = 1
	oneVirtual = 1 // virtual lanes: max_vl_num
)

// QueryDevice implements driver.Device.
func (d *Device) QueryDevice() abi.QueryDeviceResp {
	return abi.QueryDeviceResp{
		NodeGUID:              d.guid,
		SysImageGUID:          d.guid,
		VendorID:              rxeVendor,
		MaxMRSize:             1<<64 - 1,
		PageSizeCap:           0xfffff000,
		MaxQP:                 maxQP,
		MaxQPWR:               maxQPWR,
		DeviceCapFlags:        capabilities,
		MaxSGE:                ring.MaxSGE,
		MaxSGERd:              ring.MaxSGE,
		MaxSRQ:                maxSRQ,
		MaxSRQWR:              maxSRQWR,
		MaxSRQSGE:             maxSRQSGE,
		MaxCQ:                 maxCQ,
		MaxCQE:                maxCQE,
		MaxMR:                 mem.MaxRegions,
		MaxMW:                 mem.MaxWindows,
		MaxPD:                 maxPD,
		MaxAH:                 maxAH,
		MaxQPRdAtom:           maxRdAtom,
		MaxResRdAtom:          0x3f000,
		MaxQPInitRdAtom:       maxRdAtom,
		AtomicCap:             abi.AtomicHCA,
		MaxMcastGrp:           maxGroups,
		MaxMcastQPAttach:      maxMembers,
		MaxTotalMcastQPAttach: maxGroups * maxMembers,
		MaxPkeys:              maxPkeys,
		LocalCAAckDelay:       15,
		PhysPortCnt:           1,
	}
}

// QueryPort implements driver.Device.
func (d *Device) QueryPort(port uint8) (abi.QueryPortResp, error) {
	if port != 1 {
		return abi.QueryPortResp{}, fmt.Errorf("rnic: device %s has port 1 only, not %d: %w", d.name, port, syscall.EINVAL)
	}
	r := abi.QueryPortResp{
		PortCapFlags: capCM,
		MaxMsgSz:     engine.MaxMessage,
		GIDTblLen:    gidTable,
		PkeyTblLen:   1,
		LID:          portLID(d.caps.Local.Port()),
		State:        abi.PortActive,
		MaxMTU:       abi.MTU4096,
		ActiveMTU:    d.mtu,
		MaxVLNum:     oneVirtual,
		ActiveWidth:  width1X,
		ActiveSpeed:  speedSDR,
		PhysState:    abi.PortPhysStateLinkUp,
		LinkLayer:    abi.LinkLayerEthernet,
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.check() != nil {
		r.State, r.PhysState = abi.PortDown, abi.PortPhysStateDisabled
	}
	return r, nil
}
