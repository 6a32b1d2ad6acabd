package netlinkmgr

import (
	"fmt"
	"net/netip"

	"github.com/rdmashim/rdmashim/kshim/nldev"
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
	Index        uint32    `nldev:"DEV_INDEX,required"`
	Name         string    `nldev:"DEV_NAME,required"`
	Ports        uint32    `nldev:"PORT_INDEX"` // number of ports; they count from 1
	Caps         *uint64   `nldev:"CAP_FLAGS"`
	Firmware     string    `nldev:"FW_VERSION"`
	NodeGUID     *GUID     `nldev:"NODE_GUID"`
	SysImageGUID *GUID     `nldev:"SYS_IMAGE_GUID"`
	NodeType     *NodeType `nldev:"DEV_NODE_TYPE"`
	Protocol     string    `nldev:"DEV_PROTOCOL"` // "roce", "ib", "iw" …
	AdaptiveMod  *bool     `nldev:"DEV_DIM"`      // CQ adaptive moderation (DIM)
}

// Port is a port of a device.
type Port struct {
	Device       string     `nldev:"DEV_NAME,required"`
	DeviceIndex  uint32     `nldev:"DEV_INDEX,required"`
	Port         uint32     `nldev:"PORT_INDEX,required"`
	Caps         *uint64    `nldev:"CAP_FLAGS"`
	SubnetPrefix *GUID      `nldev:"SUBNET_PREFIX"` // InfiniBand only, as LID, SMLID and LMC
	LID          *uint32    `nldev:"LID"`
	SMLID        *uint32    `nldev:"SM_LID"`
	LMC          *uint8     `nldev:"LMC"`
	State        *PortState `nldev:"PORT_STATE"`
	PhysState    *PhysState `nldev:"PORT_PHYS_STATE"`
	NetDev       string     `nldev:"NDEV_NAME"` // empty when the port has none
	NetDevIndex  uint32     `nldev:"NDEV_INDEX"`
}

// Active reports whether the port carries packets.
func (p *Port) Active() bool { return p.State != nil && *p.State == PortActive }

// System is the RDMA subsystem's settings.
type System struct {
	NetNS          NetNSMode `nldev:"NETNS_MODE"`
	CopyOnFork     bool      `nldev:"COPY_ON_FORK"`
	PrivilegedQKey *bool     `nldev:"PRIVILEGED_QKEY_MODE"` // kernels from 6.7
	Monitor        *bool     `nldev:"MONITOR_MODE"`         // kernels from 6.13
}

// Counter is a named value, in the kernel's order.
type Counter struct {
	Name  string `nldev:"STAT_HWCOUNTER_ENTRY_NAME,required"`
	Value uint64 `nldev:"STAT_HWCOUNTER_ENTRY_VALUE,required"`
}

// Owner is the maker of an object.
type Owner struct {
	Kernel bool   // made in the kernel: Comm is the kernel module's name, PID 0
	PID    uint32 `nldev:"RES_PID"`       // the thread that made it, in the caller's PID namespace
	Comm   string `nldev:"RES_KERN_NAME"` // the process's command; empty when it has gone or is hidden
}

// QP is a queue pair.
type QP struct {
	Port      *uint32       `nldev:"PORT_INDEX"` // not set before INIT
	LQPN      uint32        `nldev:"RES_LQPN,required"`
	RQPN      *uint32       `nldev:"RES_RQPN"` // RC and UC, as RQPSN
	RQPSN     *uint32       `nldev:"RES_RQ_PSN"`
	SQPSN     uint32        `nldev:"RES_SQ_PSN,required"`
	PathMig   *PathMigState `nldev:"RES_PATH_MIG_STATE"`
	Type      QPType        `nldev:"RES_TYPE,required"`
	Subtype   string        `nldev:"RES_SUBTYPE"`
	State     QPState       `nldev:"RES_STATE,required"`
	PDN       *uint32       `nldev:"RES_PDN"`
	Owner     Owner
	DriverExt nldev.DriverAttrs `nldev:"DRIVER"`
}

// CQ is a completion queue.
type CQ struct {
	CQN         *uint32      `nldev:"RES_CQN"`
	CQE         uint32       `nldev:"RES_CQE,required"`
	Users       uint64       `nldev:"RES_USECNT,required"`
	PollCtx     *PollContext `nldev:"RES_POLL_CTX"` // kernel queues only
	AdaptiveMod *bool        `nldev:"DEV_DIM"`
	CtxN        *uint32      `nldev:"RES_CTXN"`
	Owner       Owner
	DriverExt   nldev.DriverAttrs `nldev:"DRIVER"`
}

// MR is a memory region. Its keys are shown to privileged callers only.
type MR struct {
	MRN       *uint32 `nldev:"RES_MRN"`
	RKey      *uint32 `nldev:"RES_RKEY"`
	LKey      *uint32 `nldev:"RES_LKEY"`
	IOVA      *uint64 `nldev:"RES_IOVA"`
	Length    uint64  `nldev:"RES_MRLEN,required"`
	PDN       *uint32 `nldev:"RES_PDN"`
	Owner     Owner
	DriverExt nldev.DriverAttrs `nldev:"DRIVER"`
}

// PD is a protection domain. Its keys are shown to privileged callers only.
type PD struct {
	PDN              *uint32 `nldev:"RES_PDN"`
	LocalDMALKey     *uint32 `nldev:"RES_LOCAL_DMA_LKEY"`
	UnsafeGlobalRKey *uint32 `nldev:"RES_UNSAFE_GLOBAL_RKEY"`
	Users            uint64  `nldev:"RES_USECNT,required"`
	CtxN             *uint32 `nldev:"RES_CTXN"`
	Owner            Owner
	DriverExt        nldev.DriverAttrs `nldev:"DRIVER"`
}

// CMID is an identifier of the connection manager.
type CMID struct {
	Port      *uint32        `nldev:"PORT_INDEX"` // not set before it is bound to a device's port
	CMIDN     *uint32        `nldev:"RES_CM_IDN"`
	LQPN      *uint32        `nldev:"RES_LQPN"`
	QPType    *QPType        `nldev:"RES_TYPE"`
	State     CMState        `nldev:"RES_STATE,required"`
	PortSpace PortSpace      `nldev:"RES_PS,required"`
	Src       netip.AddrPort `nldev:"RES_SRC_ADDR"` // invalid when the kernel sent none, as Dst
	Dst       netip.AddrPort `nldev:"RES_DST_ADDR"`
	Owner     Owner
	DriverExt nldev.DriverAttrs `nldev:"DRIVER"`
}

// Context is a process's opened device.
type Context struct {
	CtxN      uint32 `nldev:"RES_CTXN,required"`
	Owner     Owner
	DriverExt nldev.DriverAttrs `nldev:"DRIVER"`
}

// SRQ is a shared receive queue.
type SRQ struct {
	SRQN      uint32  `nldev:"RES_SRQN,required"`
	Type      SRQType `nldev:"RES_TYPE"`
	QPs       []SRQQP `nldev:"RES_QP"`
	PDN       *uint32 `nldev:"RES_PDN"`
	CQN       *uint32 `nldev:"RES_CQN"` // XRC only
	Owner     Owner
	DriverExt nldev.DriverAttrs `nldev:"DRIVER"`
}

// SRQQP is a queue pair that receives from a shared receive queue, or a range
// of them, both ends included.
type SRQQP struct {
	QPN *uint32 `nldev:"RES_LQPN"`
	Min uint32  `nldev:"MIN_RANGE"`
	Max uint32  `nldev:"MAX_RANGE"`
}

// CharDev is a device file of an RDMA device.
type CharDev struct {
	Name   string  `nldev:"CHARDEV_NAME,required"` // below /dev/infiniband
	ABI    uint64  `nldev:"CHARDEV_ABI"`
	Dev    uint64  `nldev:"CHARDEV"`          // dev_t
	Driver *uint64 `nldev:"UVERBS_DRIVER_ID"` // rdma_driver_id; 14 is rxe
}

// driverRXE is RDMA_DRIVER_RXE of ib_user_ioctl_verbs.h.
const driverRXE = 14
