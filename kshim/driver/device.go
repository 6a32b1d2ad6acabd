package driver

import (
	"net/netip"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
)

// Device is the interface between the emulated RDMA core and a driver:
// ib_device_ops (include/rdma/ib_verbs.h) as far as the core calls them here.
// The core has checked handles, attribute masks, state transitions, object
// counts and the limits that QueryDevice names before it calls; the driver
// checks its own limits. Errors are, or wrap, a syscall.Errno. Methods are
// called concurrently.
//
// A Device may have more: EventSource, CMDevice, SRQDevice, MWDevice and
// kshim.Driven.
//
// The core destroys objects in dependency order (QP, SRQ, CQ, MW, MR, PD) and
// destroys each exactly once, also when a process dies in the middle.
type Device interface {
	// Name is the device's name as it appears in sysfs: "soft0".
	Name() string
	// DriverID tells the client which provider's rings the device speaks:
	// abi.DriverRXE for the soft RNIC.
	DriverID() uint32
	// NetDev names the interface that the device sends on, for the sysfs
	// "parent".
	NetDev() string

	QueryDevice() abi.QueryDeviceResp
	// QueryPort answers for port 1 … phys_port_cnt.
	QueryPort(port uint8) (abi.QueryPortResp, error)
	// GIDs is the port's table of valid entries.
	GIDs(port uint8) []GIDEntry
	// Counters reads the port's counters by name (sysfs ports/N/hw_counters).
	Counters() map[string]uint64

	AllocPD() (PD, error)
	// RegMR registers mem, announced user memory whose first byte has the
	// address iova for both sides.
	RegMR(pd PD, mem Memory, iova uint64, access abi.AccessFlags) (MR, error)
	// CreateAH keeps an address vector for datagrams and answers its number
	// in u, if the client has room for it. The core has checked port, GID and
	// that the route is global.
	CreateAH(pd PD, attr *abi.AHAttr, u *Udata) (AH, error)
	// CreateCQ makes a completion queue of at least cqe entries and answers
	// its ring in u.
	CreateCQ(cqe int, u *Udata, ev CQEvents) (CQ, error)
	// CreateQP makes a queue pair in RESET, raises init.Cap to what it
	// granted, and answers its rings in u.
	CreateQP(init *QPInit, u *Udata, ev QPEvents) (QP, error)

	// Close stops the device when the last user has gone.
	Close() error
}

// Memory is user memory as a driver sees it: bytes of this process, or memory
// of another one. It stays where it is while the region is registered. The
// process that owns it may change or even unmap it at any time.
type Memory struct {
	Bytes []byte
	Far   Far    // nil: Bytes are the memory; else they are nil, and it is
	Addr  uint64 // where far memory begins in its process
	Len   uint64 // in bytes
}

// Near returns the memory that b is; none, if b is empty.
func Near(b []byte) Memory { return Memory{Bytes: b, Len: uint64(len(b))} }

// Far is the address space of another process, reached by copies. Any error
// means that not all of the memory was there: it wraps EFAULT. Methods are
// called concurrently.
type Far interface {
	// Read fills dst with what lies at addr.
	Read(dst []byte, addr uint64) error
	// Write copies src to addr. Its process sees what one call wrote before
	// what the next one writes, and all of an aligned word of eight or four
	// bytes at once. A part may have been written on an error.
	Write(addr uint64, src []byte) error
	// Probe reports EFAULT unless n bytes at addr can be read or, for write,
	// written. It changes none of them.
	Probe(addr, n uint64, write bool) error
}

// GIDEntry is one entry of a port's GID table.
type GIDEntry struct {
	Index   int
	GID     netip.Addr // 16 bytes; IPv4 as ::ffff:a.b.c.d
	Type    uint32     // abi.GIDTypeRoCEv2
	NetDev  string
	IfIndex uint32
}

// PD, AH, MR, CQ and QP are the driver's side of the core's objects.
type PD interface{ Dealloc() error }

type AH interface{ Destroy() error }

type MR interface {
	LKey() uint32
	RKey() uint32
	// Rereg changes what the flags of r name, all of it or, on an error,
	// nothing. The keys stay. When it returns the device no longer touches
	// memory that was replaced.
	Rereg(r *Rereg) error
	// Dereg invalidates the keys. When it returns the device no longer
	// touches the memory.
	Dereg() error
}

type CQ interface {
	// CQE is how many entries the ring holds.
	CQE() int
	// Resize replaces the ring by one of at least cqe entries, to which the
	// entries that wait are moved, and answers it in u. EINVAL if cqe is less
	// than there are.
	Resize(cqe int, u *Udata) error
	// Arm asks for one Completion event (REQ_NOTIFY_CQ).
	Arm(solicitedOnly bool) error
	Destroy() error
}

type QP interface {
	// Num is the queue pair number, 24 bits.
	Num() uint32
	// State is the present state; it may turn to ERR at any time.
	State() abi.QPState
	// Modify carries out a transition whose mask and states the core has
	// checked (ib_modify_qp_is_ok).
	Modify(attr *abi.ModifyQP, mask abi.QPAttrMask) error
	Query() (abi.QueryQPResp, error)
	// Doorbell tells that work requests were published in the send queue.
	// EINVAL in RESET, INIT and RTR.
	Doorbell() error
	// Status returns the contents of the queue pair's file in sysfs
	// (ports/N/qp/NUMBER), as a value for encoding/json: an extension, which
	// Linux does not have. nil is none, and EOPNOTSUPP to the reader.
	Status() any
	// Destroy stops the queue pair. When it returns the device no longer
	// touches its rings nor memory on its behalf.
	Destroy() error
}

// Rereg holds the arguments of ib_device_ops.rereg_user_mr. Only the fields
// that Flags names count.
type Rereg struct {
	Flags  abi.ReregFlags
	Mem    Memory // ReregTranslation, as are
	IOVA   uint64
	PD     PD              // ReregPD
	Access abi.AccessFlags // ReregAccess
}

// QPInit is struct ib_qp_init_attr.
type QPInit struct {
	PD     PD
	SendCQ CQ
	RecvCQ CQ
	SRQ    SRQ // nil: the queue pair has receives of its own
	Type   abi.QPType
	SigAll bool
	Cap    QPCap
}

// QPCap is struct ib_qp_cap.
type QPCap struct {
	MaxSendWR, MaxRecvWR   uint32
	MaxSendSGE, MaxRecvSGE uint32
	MaxInline              uint32
}

// CQEvents and QPEvents are how a driver raises events. They never block and
// may be called with the driver's locks held.
type CQEvents interface {
	// Completion is called once per Arm when an entry was added.
	Completion()
	// Error reports that a completion was lost (IB_EVENT_CQ_ERR).
	Error()
}

// CQJudge is a CQEvents that is asked about each completion with success before
// it is written, with the device's locks held.
type CQJudge interface {
	// Judge returns the status that is written. With toERR the queue pair goes
	// to ERR behind the completion; qp takes its events.
	Judge(op abi.WCOpcode, qp QPEvents) (status abi.WCStatus, toERR bool)
}

type QPEvents interface {
	// Event raises an asynchronous event for the queue pair.
	Event(abi.EventType)
}

// Udata is the driver's part of a command: the input of the client's provider
// and the place of its answer (struct ib_udata).
type Udata struct {
	In  []byte
	Out []byte // as long as the client has room for
	// Mmap publishes ring memory and returns the offset at which the client
	// maps it, once. (rxe_create_mmap_info)
	Mmap func(ring []byte) (offset uint64)
	// CopyOut writes to an address that In names (copy_to_user). EFAULT if the
	// memory was not announced.
	CopyOut func(addr uint64, b []byte) error
	// Memory is where rings lie; nil: in the garbage collector's.
	Memory ring.Memory
}

// EventSource is a Device that raises events of its ports, or of its whole.
// Registering the device gives it the interface to raise them through.
type EventSource interface {
	// SetEvents is called once, before the device is used.
	SetEvents(DeviceEvents)
}

// DeviceEvents is how a driver raises events that concern no single object
// (ib_dispatch_event). As CQEvents it never blocks and may be called with the
// driver's locks held.
type DeviceEvents interface {
	// Event tells every context of the device: PORT_ACTIVE, PORT_ERR,
	// GID_CHANGE and others of a port, or DEVICE_FATAL of all, with port 0.
	Event(port uint8, t abi.EventType)
}
