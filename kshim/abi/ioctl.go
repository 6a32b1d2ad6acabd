package abi

// RDMAVerbsIoctl is the request number RDMA_VERBS_IOCTL, _IOWR(0x1b, 1, struct ib_uverbs_ioctl_hdr).
const RDMAVerbsIoctl = 0xc0181b01

// Flags of an ioctl attribute.
const (
	AttrFMandatory   = 1 // UVERBS_ATTR_F_MANDATORY: fail if the kernel does not know the attribute
	AttrFValidOutput = 2 // UVERBS_ATTR_F_VALID_OUTPUT: set by the kernel
)

// AttrInlineMax is the length up to which an input attribute stands in IoctlAttr.Data itself.
const AttrInlineMax = 8

// ObjectID is the kind of object an ioctl method belongs to: enum uverbs_default_objects.
type ObjectID uint16

const (
	ObjectDevice      ObjectID = 0
	ObjectPD          ObjectID = 1
	ObjectCompChannel ObjectID = 2
	ObjectCQ          ObjectID = 3
	ObjectQP          ObjectID = 4
	ObjectSRQ         ObjectID = 5
	ObjectAH          ObjectID = 6
	ObjectMR          ObjectID = 7
	ObjectMW          ObjectID = 8
	ObjectFlow        ObjectID = 9
	ObjectXRCD        ObjectID = 10
	ObjectRWQIndTbl   ObjectID = 11
	ObjectWQ          ObjectID = 12
	ObjectFlowAction  ObjectID = 13
	ObjectDM          ObjectID = 14
	ObjectCounters    ObjectID = 15
	ObjectAsyncEvent  ObjectID = 16
)

var objectIDNames = map[ObjectID]string{
	ObjectDevice:      "DEVICE",
	ObjectPD:          "PD",
	ObjectCompChannel: "COMP_CHANNEL",
	ObjectCQ:          "CQ",
	ObjectQP:          "QP",
	ObjectSRQ:         "SRQ",
	ObjectAH:          "AH",
	ObjectMR:          "MR",
	ObjectMW:          "MW",
	ObjectFlow:        "FLOW",
	ObjectXRCD:        "XRCD",
	ObjectRWQIndTbl:   "RWQ_IND_TBL",
	ObjectWQ:          "WQ",
	ObjectFlowAction:  "FLOW_ACTION",
	ObjectDM:          "DM",
	ObjectCounters:    "COUNTERS",
	ObjectAsyncEvent:  "ASYNC_EVENT",
}

// String gives the kernel's name without its prefix, or ObjectID(n).
func (v ObjectID) String() string { return enumString(objectIDNames, v, "ObjectID") }

// MethodID is the number of a method within its object.
type MethodID uint16

// Methods of ObjectDevice: enum uverbs_methods_device.
const (
	MethodInvokeWrite   MethodID = 0 // carries any write() command
	MethodInfoHandles   MethodID = 1
	MethodQueryPort     MethodID = 2
	MethodGetContext    MethodID = 3
	MethodQueryContext  MethodID = 4
	MethodQueryGIDTable MethodID = 5
	MethodQueryGIDEntry MethodID = 6
)

// Methods of the other objects, as enum uverbs_methods_cq and its like number them.
const (
	MethodPDDestroy   MethodID = 0
	MethodCQCreate    MethodID = 0
	MethodCQDestroy   MethodID = 1
	MethodQPCreate    MethodID = 0
	MethodQPDestroy   MethodID = 1
	MethodSRQCreate   MethodID = 0
	MethodSRQDestroy  MethodID = 1
	MethodAHDestroy   MethodID = 0
	MethodDMMRReg     MethodID = 0
	MethodMRDestroy   MethodID = 1
	MethodAdviseMR    MethodID = 2
	MethodQueryMR     MethodID = 3
	MethodRegDMABufMR MethodID = 4

	MethodMWDestroy           MethodID = 0
	MethodFlowDestroy         MethodID = 0
	MethodXRCDDestroy         MethodID = 0
	MethodRWQIndTblDestroy    MethodID = 0
	MethodWQCreate            MethodID = 0
	MethodWQDestroy           MethodID = 1
	MethodFlowActionESPCreate MethodID = 0
	MethodFlowActionDestroy   MethodID = 1
	MethodFlowActionESPModify MethodID = 2
	MethodDMAlloc             MethodID = 0
	MethodDMFree              MethodID = 1
	MethodCountersCreate      MethodID = 0
	MethodCountersDestroy     MethodID = 1
	MethodCountersRead        MethodID = 2
	MethodAsyncEventAlloc     MethodID = 0
)

// AttrID is the number of an attribute within its method.
type AttrID uint16

// Attributes of the driver's part of a request or response, in every method that has one.
const (
	AttrUHWIn  AttrID = 0x1000 // UVERBS_ATTR_UHW_IN
	AttrUHWOut AttrID = 0x1001 // UVERBS_ATTR_UHW_OUT
)

// Attributes of MethodInvokeWrite.
const (
	AttrCoreIn   AttrID = 0 // the request of the write() command, without CmdHdr
	AttrCoreOut  AttrID = 1 // room for its response; the request's own Response field is ignored
	AttrWriteCmd AttrID = 2 // the Command, 8 bytes
)

// Attributes of MethodQueryGIDTable.
const (
	AttrQueryGIDTableEntrySize      AttrID = 0 // 8 bytes: GIDEntrySize
	AttrQueryGIDTableFlags          AttrID = 1 // 4 bytes: 0
	AttrQueryGIDTableRespEntries    AttrID = 2 // room for the entries
	AttrQueryGIDTableRespNumEntries AttrID = 3 // 8 bytes
)

// Attributes of MethodQueryGIDEntry.
const (
	AttrQueryGIDEntryPort      AttrID = 0 // must be given as 8 bytes
	AttrQueryGIDEntryGIDIndex  AttrID = 1 // must be given as 8 bytes
	AttrQueryGIDEntryFlags     AttrID = 2 // 4 bytes: 0
	AttrQueryGIDEntryRespEntry AttrID = 3 // room for a GIDEntry
)
