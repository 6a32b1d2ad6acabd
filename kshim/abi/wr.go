package abi

// WROpcode is the operation of a send work request: enum ib_uverbs_wr_opcode.
type WROpcode uint32

const (
	WRRDMAWrite               WROpcode = 0
	WRRDMAWriteWithImm        WROpcode = 1
	WRSend                    WROpcode = 2
	WRSendWithImm             WROpcode = 3
	WRRDMARead                WROpcode = 4
	WRAtomicCmpAndSwp         WROpcode = 5
	WRAtomicFetchAndAdd       WROpcode = 6
	WRLocalInv                WROpcode = 7
	WRBindMW                  WROpcode = 8
	WRSendWithInv             WROpcode = 9
	WRTSO                     WROpcode = 10
	WRRDMAReadWithInv         WROpcode = 11
	WRMaskedAtomicCmpAndSwp   WROpcode = 12
	WRMaskedAtomicFetchAndAdd WROpcode = 13
)

var wrOpcodeNames = map[WROpcode]string{
	WRRDMAWrite:               "RDMA_WRITE",
	WRRDMAWriteWithImm:        "RDMA_WRITE_WITH_IMM",
	WRSend:                    "SEND",
	WRSendWithImm:             "SEND_WITH_IMM",
	WRRDMARead:                "RDMA_READ",
	WRAtomicCmpAndSwp:         "ATOMIC_CMP_AND_SWP",
	WRAtomicFetchAndAdd:       "ATOMIC_FETCH_AND_ADD",
	WRLocalInv:                "LOCAL_INV",
	WRBindMW:                  "BIND_MW",
	WRSendWithInv:             "SEND_WITH_INV",
	WRTSO:                     "TSO",
	WRRDMAReadWithInv:         "RDMA_READ_WITH_INV",
	WRMaskedAtomicCmpAndSwp:   "MASKED_ATOMIC_CMP_AND_SWP",
	WRMaskedAtomicFetchAndAdd: "MASKED_ATOMIC_FETCH_AND_ADD",
}

// String gives the kernel's name without its prefix, or WROpcode(n).
func (v WROpcode) String() string { return enumString(wrOpcodeNames, v, "WROpcode") }

// SendFlags is enum ib_send_flags.
type SendFlags uint32

const (
	SendFence     SendFlags = 0x1
	SendSignaled  SendFlags = 0x2
	SendSolicited SendFlags = 0x4
	SendInline    SendFlags = 0x8
	SendIPCsum    SendFlags = 0x10
)

var sendFlagsNames = []flagName{
	{uint32(SendFence), "FENCE"},
	{uint32(SendSignaled), "SIGNALED"},
	{uint32(SendSolicited), "SOLICITED"},
	{uint32(SendInline), "INLINE"},
	{uint32(SendIPCsum), "IP_CSUM"},
}

// String lists the flags by name, joined by "|"; unknown bits in hexadecimal.
func (v SendFlags) String() string { return flagString(uint32(v), sendFlagsNames) }

// AccessFlags is what a memory region or a queue pair permits: enum ib_uverbs_access_flags.
type AccessFlags uint32

const (
	AccessLocalWrite      AccessFlags = 0x1
	AccessRemoteWrite     AccessFlags = 0x2
	AccessRemoteRead      AccessFlags = 0x4
	AccessRemoteAtomic    AccessFlags = 0x8
	AccessMWBind          AccessFlags = 0x10
	AccessZeroBased       AccessFlags = 0x20
	AccessOnDemand        AccessFlags = 0x40
	AccessHugetlb         AccessFlags = 0x80
	AccessRelaxedOrdering AccessFlags = 0x100000
)

var accessFlagsNames = []flagName{
	{uint32(AccessLocalWrite), "LOCAL_WRITE"},
	{uint32(AccessRemoteWrite), "REMOTE_WRITE"},
	{uint32(AccessRemoteRead), "REMOTE_READ"},
	{uint32(AccessRemoteAtomic), "REMOTE_ATOMIC"},
	{uint32(AccessMWBind), "MW_BIND"},
	{uint32(AccessZeroBased), "ZERO_BASED"},
	{uint32(AccessOnDemand), "ON_DEMAND"},
	{uint32(AccessHugetlb), "HUGETLB"},
	{uint32(AccessRelaxedOrdering), "RELAXED_ORDERING"},
}

// String lists the flags by name, joined by "|"; unknown bits in hexadecimal.
func (v AccessFlags) String() string { return flagString(uint32(v), accessFlagsNames) }

// AccessOptionalRange are the access flags that a kernel may ignore: IB_UVERBS_ACCESS_OPTIONAL_RANGE.
const AccessOptionalRange AccessFlags = 0x3ff00000
