package abi

// Flags in CmdHdr.Command.
const (
	CmdCommandMask  Command = 0xff       // IB_USER_VERBS_CMD_COMMAND_MASK
	CmdFlagExtended Command = 0x80000000 // IB_USER_VERBS_CMD_FLAG_EXTENDED
)

// RDMAVerbsIoctl is the request number RDMA_VERBS_IOCTL, _IOWR(0x1b, 1, struct
// ib_uverbs_ioctl_hdr).
const RDMAVerbsIoctl = 0xc0181b01

// Flags of an ioctl attribute.
const (
	// UVERBS_ATTR_F_MANDATORY: fail if the kernel does not know the attribute
	AttrFMandatory = 1
	// UVERBS_ATTR_F_VALID_OUTPUT: set by the kernel
	AttrFValidOutput = 2
)

// AttrInlineMax is the length up to which an input attribute stands in
// IoctlAttr.Data itself.
const AttrInlineMax = 8

// AccessOptionalRange are the access flags that a kernel may ignore:
// IB_UVERBS_ACCESS_OPTIONAL_RANGE.
const AccessOptionalRange AccessFlags = 0x3ff00000

// ReregSupported is IB_MR_REREG_SUPPORTED.
const ReregSupported = ReregTranslation | ReregPD | ReregAccess

// UverbsABIVersion is the version of the uverbs interface itself:
// /sys/class/infiniband_verbs/abi_version.
const UverbsABIVersion = 6

// ABI versions of the rxe provider that this package describes:
// /sys/class/infiniband_verbs/uverbsN/abi_version.
const (
	RXEABIVersionMin = 1
	RXEABIVersionMax = 2
)
