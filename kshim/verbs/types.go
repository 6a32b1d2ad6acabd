package verbs

import (
	"net/netip"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
)

// Requests and completions have the form in which kshim/ring codes them.
type (
	SGE    = ring.SGE
	SendWR = ring.SendWR // ID is the caller's own and comes back in WC.ID
	RecvWR = ring.RecvWR
	BindMW = ring.BindMW
	WC     = ring.WC // Imm counts only with WCWithImm in Flags
)

// DeviceAttr and PortAttr are the kernel's answers as they are.
type (
	DeviceAttr = abi.QueryDeviceResp
	PortAttr   = abi.QueryPortResp
)

// DeviceInfo describes a device by its attributes in sysfs, without opening it.
type DeviceInfo struct {
	Name       string // "rxe0"
	Node       string // "/dev/infiniband/uverbs0"
	NetDev     string // the network interface it sits on, "" if the device does not say
	Driver     abi.DriverID
	ABIVersion int // of the driver's part of the interface
}

// GID is an entry of a port's GID table.
type GID struct {
	Index   int
	Addr    netip.Addr // 16 bytes; an IPv4 address as ::ffff:a.b.c.d
	Type    abi.GIDType
	IfIndex uint32 // network interface, 0 if unknown
}

// QPCap is the room of a queue pair.
type QPCap struct {
	MaxSendWR  int // send requests that can be outstanding
	MaxRecvWR  int // receives that can be outstanding; 0 for none
	MaxSendSGE int // pieces of a send
	MaxRecvSGE int // pieces of a receive
	MaxInline  int // bytes of inline data
}

// QPInit holds the parameters of CreateQP.
type QPInit struct {
	SendCQ     *CQ
	RecvCQ     *CQ        // may be SendCQ
	SRQ        *SRQ       // whose receives it takes; nil for receives of its own
	MaxSendWR  int        // send requests that can be outstanding; 0 for none
	MaxRecvWR  int        // receives that can be outstanding; 0 for none. It does not count with SRQ
	MaxSendSGE int        // pieces of a send; 0 means 1. The device may grant more
	MaxRecvSGE int        // pieces of a receive; 0 means 1
	MaxInline  int        // bytes of inline data. The device may grant more
	SigAll     bool       // every send is signaled, whatever its flags
	Probes     bool       // room in the ring for one more, so that Probe never takes a request's place
	Type       abi.QPType // 0 means abi.QPTRC
}

// QPAttr are the attributes of a queue pair that Modify sets and Query reads
// (struct ibv_qp_attr).
type QPAttr struct {
	State            abi.QPState
	CurState         abi.QPState
	PathMTU          abi.MTU
	PathMigState     abi.MigState
	QKey             uint32
	RQPSN            uint32 // 24 bits: first packet expected
	SQPSN            uint32 // 24 bits: first packet sent
	DestQPNum        uint32 // 24 bits
	AccessFlags      abi.AccessFlags
	AV               abi.QPDest // IsGlobal and PortNum must be set for RoCE; SetUDPPort names a soft device's UDP port
	AltAV            abi.QPDest
	PkeyIndex        uint16
	AltPkeyIndex     uint16
	EnSQDAsyncNotify uint8
	SQDraining       uint8 // Query only
	MaxRdAtomic      uint8 // READs and atomics outstanding as requester
	MaxDestRdAtomic  uint8 // and as responder
	MinRNRTimer      uint8 // 5-bit code (IBA table 45); 0 means 655.36 ms
	PortNum          uint8
	Timeout          uint8 // 5 bits: 4.096 µs × 2^Timeout, 0 for ever
	RetryCnt         uint8 // 3 bits
	RNRRetry         uint8 // 3 bits, 7 for ever
	AltPortNum       uint8
	AltTimeout       uint8
	Cap              QPCap // Query only: as granted
	SigAll           bool  // Query only
}
