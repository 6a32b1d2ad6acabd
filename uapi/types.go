package uapi

import (
	"net/netip"
	"time"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// MR is the handle of a memory region, from RegMR. It is never 0: the zero
// value is no region.
type MR int

// QP is the handle of a queue pair, from CreateQP: its queue pair number,
// 24 bits, never 0.
type QP int

// CQ is the handle of a completion queue, from CreateCQ. It is never 0.
type CQ int

// AH is the handle of an address handle, from CreateAH. It is never 0.
type AH int

// PD is the handle of a protection domain, from CreatePD. 0 stands for the
// device's own domain.
type PD int

// MW is the handle of a memory window, from CreateMW. It is never 0.
type MW int

// SRQ is the handle of a shared receive queue, from CreateSRQ. It is never 0.
type SRQ int

// WRID identifies a work request and comes back in WC.WRID. The ids that
// PostWrite and its siblings return count up from 0 for each queue pair; the
// ids given to Post are the caller's own, all 64 bits of them.
type WRID int64

// Access is the set of operations that a memory region permits (enum
// ib_access_flags). Local reading is always allowed.
type Access int32

const (
	// AccessLocalWrite allows local writes: the device may place receives,
	// READ results and atomics' old values there.
	AccessLocalWrite = Access(abi.AccessLocalWrite)
	// AccessRemoteWrite allows remote writes; it needs AccessLocalWrite.
	AccessRemoteWrite = Access(abi.AccessRemoteWrite)
	// AccessRemoteRead allows remote reads.
	AccessRemoteRead = Access(abi.AccessRemoteRead)
	// AccessRemoteAtomic allows remote atomics; it needs AccessLocalWrite.
	AccessRemoteAtomic = Access(abi.AccessRemoteAtomic)
	// AccessMWBind allows memory windows to be bound to the region, also for
	// remote operations that the region itself does not permit: CreateMW.
	AccessMWBind = Access(abi.AccessMWBind)
)

// String lists the flags by their verbs names.
func (a Access) String() string { return abi.AccessFlags(a).String() }

// Op is the operation of a work request (enum ib_wr_opcode).
type Op uint32

const (
	OpWrite       = Op(abi.WRRDMAWrite)
	OpWriteImm    = Op(abi.WRRDMAWriteWithImm)
	OpSend        = Op(abi.WRSend)
	OpSendImm     = Op(abi.WRSendWithImm)
	OpRead        = Op(abi.WRRDMARead)
	OpCompareSwap = Op(abi.WRAtomicCmpAndSwp)
	OpFetchAdd    = Op(abi.WRAtomicFetchAndAdd)
	// OpSendInv is an OpSend that revokes RKey, the key of a memory window that
	// the peer bound: the peer's receive completes with WCWithInv. Behind READs
	// and atomics by that key it needs Fence.
	OpSendInv = Op(abi.WRSendWithInv)
	// OpBindMW binds the memory window MW to the one piece of SGE, with Access.
	// OpLocalInv revokes its key.
	OpBindMW   = Op(abi.WRBindMW)
	OpLocalInv = Op(abi.WRLocalInv)
	// OpRecv posts a receive. Its number is that of its completion.
	OpRecv = Op(abi.WCRecv)
)

// String is the verbs name without its prefix: "RDMA_WRITE".
func (o Op) String() string {
	if o == OpRecv {
		return "RECV"
	}
	return abi.WROpcode(o).String()
}

// SendFlags modify a work request (enum ib_send_flags). They mean nothing for
// OpRecv.
type SendFlags uint32

const (
	// Fence holds the request back until earlier READs and atomics of the
	// queue pair have completed.
	Fence = SendFlags(abi.SendFence)
	// Signaled asks for a completion also when the request succeeds. A failed
	// request always completes.
	Signaled = SendFlags(abi.SendSignaled)
	// Solicited marks the message for a peer that waits for solicited events.
	Solicited = SendFlags(abi.SendSolicited)
	// Inline copies the data at post: the buffer may be reused when Post
	// returns. At most QPConfig.Inline bytes; OpWrite and OpSend (with or
	// without immediate) and OpSendInv only.
	Inline = SendFlags(abi.SendInline)
)

// String lists the flags by their verbs names.
func (f SendFlags) String() string { return abi.SendFlags(f).String() }

// SGE is a piece of a registered region: one entry of a scatter/gather list.
type SGE struct {
	MR     MR
	Offset uint64 // bytes from the start of the region
	Length uint64 // bytes
}

// WR is a work request for Post.
type WR struct {
	ID    WRID // comes back in WC.WRID
	Op    Op
	Flags SendFlags
	// SGE is the local memory: the source of writes and sends, the
	// destination of reads, receives and of an atomic's old value (8 bytes).
	// Post does not keep it.
	SGE []SGE
	// Data is the source of a SEND or WRITE of any kind, in place of SGE:
	// bytes of any memory, which Post copies as it does for the flag
	// Inline, at most QPConfig.Inline of them.
	Data []byte
	// RemoteAddr and RKey name the peer's memory; of sends and receives
	// OpSendInv alone has RKey.
	RemoteAddr uint64
	RKey       uint32
	// Imm goes with OpWriteImm and OpSendImm, in the program's byte order
	// (big-endian on the wire).
	Imm uint32
	// CompareAdd is the value that OpCompareSwap compares with, and the one
	// that OpFetchAdd adds; Swap is the value that OpCompareSwap stores on a
	// match.
	CompareAdd, Swap uint64
	// AH, RemoteQPN and RemoteQKey say where a datagram goes, on queue pairs of
	// TypeUD: see PostSendTo.
	AH                    AH
	RemoteQPN, RemoteQKey uint32
	// MW is the memory window of OpBindMW and OpLocalInv. Access is what a
	// binding permits the peer: AccessRemoteRead, AccessRemoteWrite,
	// AccessRemoteAtomic.
	MW     MW
	Access Access
}

// MRInfo describes a memory region. A peer needs Addr and RKey.
type MRInfo struct {
	Addr, Length uint64
	LKey, RKey   uint32
	Access       Access
	PD           PD // protection domain; 0 is the device's own
}

// QPState is the state of a queue pair (enum ib_qp_state).
type QPState uint32

const (
	StateReset = QPState(abi.QPSReset)
	StateInit  = QPState(abi.QPSInit)
	StateRTR   = QPState(abi.QPSRTR)
	StateRTS   = QPState(abi.QPSRTS)
	StateError = QPState(abi.QPSErr)
)

// String is the verbs name: RESET, INIT, RTR, RTS, ERR.
func (s QPState) String() string { return abi.QPState(s).String() }

// QPInfo describes a queue pair.
type QPInfo struct {
	QP             QP
	Type           QPType
	QKey           uint32 // of TypeUD
	PD             PD     // protection domain; 0 is the device's own
	State          QPState
	SendCQ, RecvCQ CQ
	SRQ            SRQ // whose receives it takes; 0: it has its own
	// SendDepth and RecvDepth are how many requests may be outstanding.
	SendDepth, RecvDepth int
	SendSGE, RecvSGE     int
	Inline               int // bytes
	// Remote is the peer's endpoint once ConnectQP has succeeded.
	Remote   Endpoint
	MTU      int // bytes; 0 before ConnectQP; of TypeUD the longest datagram
	SendPSN  uint32
	RecvPSN  uint32
	GIDIndex int
	// Timeout, MinRNRTimer, Retry, RNRRetry and MaxRdAtomic are in force from
	// ConnectQP on. A Timeout of 0 is for ever, and so is an RNRRetry of 7.
	Timeout, MinRNRTimer         time.Duration
	Retry, RNRRetry, MaxRdAtomic int
}

// GIDType is the version of RoCE of a GID, as sysfs prints it.
type GIDType string

const (
	RoCEv1 GIDType = "IB/RoCE v1"
	RoCEv2 GIDType = "RoCE v2"
)

// GID is an entry of a port's address table.
type GID struct {
	Index  int
	Addr   netip.Addr // IPv4 addresses unmapped
	Type   GIDType
	NetDev string
}

// Kind is what stands behind a device.
type Kind string

const (
	KindSoft Kind = "soft" // the mini kernel and a soft RNIC on UDP
	KindSim  Kind = "sim"  // the same, on a network within the process
	KindHost Kind = "host" // the machine's kernel
)

// PortState is the kernel's name of the state of a port (enum ib_port_state).
type PortState string

const (
	PortNop         PortState = "NOP"
	PortDown        PortState = "DOWN"
	PortInit        PortState = "INIT"
	PortArmed       PortState = "ARMED"
	PortActive      PortState = "ACTIVE"
	PortActiveDefer PortState = "ACTIVE_DEFER"
)

// DeviceInfo describes a device, and the automatic choices on it.
type DeviceInfo struct {
	Name   string // the kernel's name: "soft0"
	Device string // its name for Open: "soft:127.0.0.1"
	Kind   Kind
	Driver string // the driver whose rings it speaks: "RXE"
	NetDev string // the interface it sends on, if known
	// Address is where the device answers: its address and UDP port.
	Address   netip.AddrPort
	NodeGUID  uint64 // as the kernel gives it
	Open      bool   // this process has it open
	PortState PortState
	// Notices are sentences about automatic choices that the user should know.
	Notices []string

	// Port, GIDIndex and MTU are the ones that this device uses; options
	// override them. GIDReason says why that GID was chosen.
	Port      int
	GIDs      []GID
	GIDIndex  int
	GIDReason string
	MTU       int // bytes of payload a packet: the port's active MTU, or the option's
	MaxMTU    int

	// The device's limits.
	MaxMessage  uint64 // bytes
	MaxMRSize   uint64 // bytes
	MaxMR       int
	MaxQP       int
	MaxCQ       int
	MaxCQE      int // entries a completion queue
	MaxDepth    int // work requests a queue
	MaxSGE      int
	MaxRdAtomic int
}
