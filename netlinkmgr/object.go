package netlinkmgr

import (
	"fmt"
	"net/netip"
)

// GUID is a 64-bit identifier in the machine's order.
type GUID uint64

// String writes the GUID in network order as four groups: 0200:00ff:fe00:0001.
func (g GUID) String() string {
	return fmt.Sprintf("%04x:%04x:%04x:%04x", uint16(g>>48), uint16(g>>32), uint16(g>>16), uint16(g))
}

// Device is an RDMA device. A nil pointer is an attribute that the kernel did
// not send.
type Device struct {
	Index        uint32
	Name         string
	Ports        uint32 // number of ports; they count from 1
	Caps         *uint64
	Firmware     string
	NodeGUID     *GUID
	SysImageGUID *GUID
	NodeType     *NodeType
	Protocol     string // "roce", "ib", "iw" …
	AdaptiveMod  *bool  // CQ adaptive moderation (DIM)
}

// Port is a port of a device.
type Port struct {
	Device       string
	DeviceIndex  uint32
	Port         uint32
	Caps         *uint64
	SubnetPrefix *GUID // InfiniBand only, as LID, SMLID and LMC
	LID          *uint32
	SMLID        *uint32
	LMC          *uint8
	State        *PortState
	PhysState    *PhysState
	NetDev       string // empty when the port has none
	NetDevIndex  uint32
}

// Active says whether the port carries packets.
func (p *Port) Active() bool { return p.State != nil && *p.State == PortActive }

// System is the RDMA subsystem's settings.
type System struct {
	NetNS          NetNSMode
	CopyOnFork     bool
	PrivilegedQKey *bool // kernels from 6.7
	Monitor        *bool // kernels from 6.13
}

// Counter is a named value, in the kernel's order.
type Counter struct {
	Name  string
	Value uint64
}

// Owner is who made an object.
type Owner struct {
	Kernel bool   // made in the kernel: Comm is the kernel module's name, PID 0
	PID    uint32 // the thread that made it, in the caller's PID namespace
	Comm   string // the process's command; empty when it has gone or is hidden
}

// DriverAttr is what a driver tells of an object beyond the common attributes.
type DriverAttr struct {
	Key   string
	Value any // string, int32, uint32, int64 or uint64
	Hex   bool
}

// QP is a queue pair.
type QP struct {
	Port      *uint32 // not set before INIT
	LQPN      uint32
	RQPN      *uint32 // RC and UC, as RQPSN
	RQPSN     *uint32
	SQPSN     uint32
	PathMig   *PathMigState
	Type      QPType
	Subtype   string
	State     QPState
	PDN       *uint32
	Owner     Owner
	DriverExt []DriverAttr
}

// CQ is a completion queue.
type CQ struct {
	CQN         *uint32
	CQE         uint32
	Users       uint64
	PollCtx     *PollContext // kernel queues only
	AdaptiveMod *bool
	CtxN        *uint32
	Owner       Owner
	DriverExt   []DriverAttr
}

// MR is a memory region. Its keys are shown to privileged callers only.
type MR struct {
	MRN       *uint32
	RKey      *uint32
	LKey      *uint32
	IOVA      *uint64
	Length    uint64
	PDN       *uint32
	Owner     Owner
	DriverExt []DriverAttr
}

// PD is a protection domain. Its keys are shown to privileged callers only.
type PD struct {
	PDN              *uint32
	LocalDMALKey     *uint32
	UnsafeGlobalRKey *uint32
	Users            uint64
	CtxN             *uint32
	Owner            Owner
	DriverExt        []DriverAttr
}

// CMID is an identifier of the connection manager.
type CMID struct {
	Port      *uint32 // not set before it is bound to a device's port
	CMIDN     *uint32
	LQPN      *uint32
	QPType    *QPType
	State     CMState
	PortSpace PortSpace
	Src, Dst  netip.AddrPort // invalid when the kernel sent none
	Owner     Owner
	DriverExt []DriverAttr
}

// Context is a process's opened device.
type Context struct {
	CtxN      uint32
	Owner     Owner
	DriverExt []DriverAttr
}

// SRQ is a shared receive queue.
type SRQ struct {
	SRQN      uint32
	Type      SRQType
	QPs       [][2]uint32 // ranges of the queue pairs that receive from it, both ends included
	PDN       *uint32
	CQN       *uint32 // XRC only
	Owner     Owner
	DriverExt []DriverAttr
}

// CharDev is a device file of an RDMA device.
type CharDev struct {
	Name   string // below /dev/infiniband
	ABI    uint64
	Dev    uint64 // dev_t
	Driver uint64 // rdma_driver_id; 14 is rxe
	known  bool   // Driver was sent
}

// driverRXE is RDMA_DRIVER_RXE of ib_user_ioctl_verbs.h.
const driverRXE = 14
