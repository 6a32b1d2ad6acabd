package emu

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
)

// method is one row of what RDMA_VERBS_IOCTL understands.
type method struct {
	object abi.ObjectID
	id     abi.MethodID
	name   string
	attrs  []attrSpec
	lacks  support // empty, or known with do: do answers it
	do     func(*call) error
}

// maxAttrs is the most attributes that a method has.
const maxAttrs = 17

// Where the attributes of a method stand in its table, and so in call.attrs. With
// few exceptions that is their number.
const (
	attrCoreIn = iota
	attrCoreOut
	attrWriteCmd
	attrHWIn
	attrHWOut
)

const (
	attrGIDTableSize = iota
	attrGIDTableFlags
	attrGIDTableEntries
	attrGIDTableCount
)

const (
	attrGIDEntryPort = iota
	attrGIDEntryIndex
	attrGIDEntryFlags
	attrGIDEntryResp
)

// methods are all that the headers of Linux 6.1 have. Of those that it removes
// where a driver lacks what they need, only the names count.
var methods = [...]method{
	{object: abi.ObjectDevice, id: abi.MethodInvokeWrite, name: "INVOKE_WRITE", attrs: []attrSpec{
		attrCoreIn:   inputFrom("CORE_IN", abi.AttrCoreIn, 4).opt(),
		attrCoreOut:  outputFrom("CORE_OUT", abi.AttrCoreOut, 0).opt(),
		attrWriteCmd: number("WRITE_CMD", abi.AttrWriteCmd),
		attrHWIn:     driverIn(),
		attrHWOut:    driverOut(),
	}, do: invokeWrite},
	{object: abi.ObjectDevice, id: abi.MethodInfoHandles, name: "INFO_HANDLES", attrs: []attrSpec{
		number("INFO_OBJECT_ID", abi.AttrInfoObjectID),
		output("INFO_TOTAL_HANDLES", abi.AttrInfoTotalHandles, 4).opt(),
		outputFrom("INFO_HANDLES_LIST", abi.AttrInfoHandlesList, 4).opt(),
	}, do: infoHandles},
	{object: abi.ObjectDevice, id: abi.MethodQueryPort, name: "QUERY_PORT", attrs: []attrSpec{
		number("QUERY_PORT_PORT_NUM", abi.AttrQueryPortPortNum),
		outputFrom("QUERY_PORT_RESP", abi.AttrQueryPortResp, queryPortExSize),
	}, do: methodQueryPort},
	{object: abi.ObjectDevice, id: abi.MethodGetContext, name: "GET_CONTEXT", attrs: []attrSpec{
		output("GET_CONTEXT_NUM_COMP_VECTORS", abi.AttrGetContextNumCompVectors, 4).opt(),
		output("GET_CONTEXT_CORE_SUPPORT", abi.AttrGetContextCoreSupport, 8).opt(),
		driverIn(), driverOut(),
	}, do: methodGetContext},
	{object: abi.ObjectDevice, id: abi.MethodQueryContext, name: "QUERY_CONTEXT", attrs: []attrSpec{
		output("QUERY_CONTEXT_NUM_COMP_VECTORS", abi.AttrQueryContextNumCompVectors, 4).opt(),
		output("QUERY_CONTEXT_CORE_SUPPORT", abi.AttrQueryContextCoreSupport, 8).opt(),
	}, lacks: optional, do: notSupported},
	{object: abi.ObjectDevice, id: abi.MethodQueryGIDTable, name: "QUERY_GID_TABLE", attrs: []attrSpec{
		attrGIDTableSize:    number("QUERY_GID_TABLE_ENTRY_SIZE", abi.AttrQueryGIDTableEntrySize),
		attrGIDTableFlags:   flags("QUERY_GID_TABLE_FLAGS", abi.AttrQueryGIDTableFlags).opt(),
		attrGIDTableEntries: outputFrom("QUERY_GID_TABLE_RESP_ENTRIES", abi.AttrQueryGIDTableRespEntries, 0),
		attrGIDTableCount:   output("QUERY_GID_TABLE_RESP_NUM_ENTRIES", abi.AttrQueryGIDTableRespNumEntries, 8),
	}, do: queryGIDTable},
	{object: abi.ObjectDevice, id: abi.MethodQueryGIDEntry, name: "QUERY_GID_ENTRY", attrs: []attrSpec{
		attrGIDEntryPort:  number("QUERY_GID_ENTRY_PORT", abi.AttrQueryGIDEntryPort),
		attrGIDEntryIndex: number("QUERY_GID_ENTRY_GID_INDEX", abi.AttrQueryGIDEntryGIDIndex),
		attrGIDEntryFlags: flags("QUERY_GID_ENTRY_FLAGS", abi.AttrQueryGIDEntryFlags),
		attrGIDEntryResp:  outputFrom("QUERY_GID_ENTRY_RESP_ENTRY", abi.AttrQueryGIDEntryRespEntry, abi.GIDEntrySize),
	}, do: queryGIDEntry},
	{object: abi.ObjectPD, id: abi.MethodPDDestroy, name: "PD_DESTROY", attrs: []attrSpec{
		endOf("DESTROY_PD_HANDLE", abi.AttrDestroyPDHandle, abi.ObjectPD),
	}, do: methodDestroy},
	{object: abi.ObjectCQ, id: abi.MethodCQCreate, name: "CQ_CREATE", attrs: []attrSpec{
		abi.AttrCreateCQHandle:      newHandle("CREATE_CQ_HANDLE", abi.AttrCreateCQHandle, abi.ObjectCQ),
		abi.AttrCreateCQCQE:         input("CREATE_CQ_CQE", abi.AttrCreateCQCQE, 4),
		abi.AttrCreateCQUserHandle:  input("CREATE_CQ_USER_HANDLE", abi.AttrCreateCQUserHandle, 8),
		abi.AttrCreateCQCompChannel: descriptor("CREATE_CQ_COMP_CHANNEL", abi.AttrCreateCQCompChannel, abi.ObjectCompChannel).opt(),
		abi.AttrCreateCQCompVector:  input("CREATE_CQ_COMP_VECTOR", abi.AttrCreateCQCompVector, 4),
		abi.AttrCreateCQFlags:       flags("CREATE_CQ_FLAGS", abi.AttrCreateCQFlags).opt(),
		abi.AttrCreateCQRespCQE:     output("CREATE_CQ_RESP_CQE", abi.AttrCreateCQRespCQE, 4),
		abi.AttrCreateCQEventFD:     descriptor("CREATE_CQ_EVENT_FD", abi.AttrCreateCQEventFD, abi.ObjectAsyncEvent).opt(),
		attrCQHWIn:                  driverIn(),
		attrCQHWOut:                 driverOut(),
	}, do: methodCreateCQ},
	{object: abi.ObjectCQ, id: abi.MethodCQDestroy, name: "CQ_DESTROY", attrs: []attrSpec{
		endOf("DESTROY_CQ_HANDLE", abi.AttrDestroyCQHandle, abi.ObjectCQ),
		output("DESTROY_CQ_RESP", abi.AttrDestroyCQResp, abi.DestroyCQRespSize),
	}, do: methodDestroyCQ},
	{object: abi.ObjectQP, id: abi.MethodQPCreate, name: "QP_CREATE", attrs: []attrSpec{
		abi.AttrCreateQPHandle:         newHandle("CREATE_QP_HANDLE", abi.AttrCreateQPHandle, abi.ObjectQP),
		abi.AttrCreateQPXRCDHandle:     handle("CREATE_QP_XRCD_HANDLE", abi.AttrCreateQPXRCDHandle, abi.ObjectXRCD).opt(),
		abi.AttrCreateQPPDHandle:       handle("CREATE_QP_PD_HANDLE", abi.AttrCreateQPPDHandle, abi.ObjectPD).opt(),
		abi.AttrCreateQPSRQHandle:      handle("CREATE_QP_SRQ_HANDLE", abi.AttrCreateQPSRQHandle, abi.ObjectSRQ).opt(),
		abi.AttrCreateQPSendCQHandle:   handle("CREATE_QP_SEND_CQ_HANDLE", abi.AttrCreateQPSendCQHandle, abi.ObjectCQ).opt(),
		abi.AttrCreateQPRecvCQHandle:   handle("CREATE_QP_RECV_CQ_HANDLE", abi.AttrCreateQPRecvCQHandle, abi.ObjectCQ).opt(),
		abi.AttrCreateQPIndTableHandle: handle("CREATE_QP_IND_TABLE_HANDLE", abi.AttrCreateQPIndTableHandle, abi.ObjectRWQIndTbl).opt(),
		abi.AttrCreateQPUserHandle:     input("CREATE_QP_USER_HANDLE", abi.AttrCreateQPUserHandle, 8),
		abi.AttrCreateQPCap:            inputOf("CREATE_QP_CAP", abi.AttrCreateQPCap, qpCapSize),
		abi.AttrCreateQPType:           number("CREATE_QP_TYPE", abi.AttrCreateQPType),
		abi.AttrCreateQPFlags:          flags("CREATE_QP_FLAGS", abi.AttrCreateQPFlags).opt(),
		abi.AttrCreateQPSourceQPN:      input("CREATE_QP_SOURCE_QPN", abi.AttrCreateQPSourceQPN, 4).opt(),
		abi.AttrCreateQPEventFD:        descriptor("CREATE_QP_EVENT_FD", abi.AttrCreateQPEventFD, abi.ObjectAsyncEvent).opt(),
		abi.AttrCreateQPRespCap:        outputFrom("CREATE_QP_RESP_CAP", abi.AttrCreateQPRespCap, qpCapSize),
		abi.AttrCreateQPRespQPNum:      output("CREATE_QP_RESP_QP_NUM", abi.AttrCreateQPRespQPNum, 4),
		attrQPHWIn:                     driverIn(),
		attrQPHWOut:                    driverOut(),
	}, do: methodCreateQP},
	{object: abi.ObjectQP, id: abi.MethodQPDestroy, name: "QP_DESTROY", attrs: []attrSpec{
		endOf("DESTROY_QP_HANDLE", abi.AttrDestroyQPHandle, abi.ObjectQP),
		output("DESTROY_QP_RESP", abi.AttrDestroyQPResp, abi.DestroyQPRespSize),
	}, do: methodDestroyQP},
	{object: abi.ObjectSRQ, id: abi.MethodSRQCreate, name: "SRQ_CREATE", lacks: noSRQ},
	{object: abi.ObjectSRQ, id: abi.MethodSRQDestroy, name: "SRQ_DESTROY", lacks: noSRQ},
	{object: abi.ObjectAH, id: abi.MethodAHDestroy, name: "AH_DESTROY", attrs: []attrSpec{
		endOf("DESTROY_AH_HANDLE", abi.AttrDestroyAHHandle, abi.ObjectAH),
	}, do: methodDestroy},
	{object: abi.ObjectMR, id: abi.MethodDMMRReg, name: "DM_MR_REG", lacks: optional},
	{object: abi.ObjectMR, id: abi.MethodMRDestroy, name: "MR_DESTROY", attrs: []attrSpec{
		endOf("DESTROY_MR_HANDLE", abi.AttrDestroyMRHandle, abi.ObjectMR),
	}, do: methodDestroy},
	{object: abi.ObjectMR, id: abi.MethodAdviseMR, name: "ADVISE_MR", attrs: []attrSpec{
		handle("ADVISE_MR_PD_HANDLE", abi.AttrAdviseMRPDHandle, abi.ObjectPD),
		number("ADVISE_MR_ADVICE", abi.AttrAdviseMRAdvice),
		flags("ADVISE_MR_FLAGS", abi.AttrAdviseMRFlags),
		inputFrom("ADVISE_MR_SGE_LIST", abi.AttrAdviseMRSGEList, 16),
	}, lacks: optional, do: notSupported},
	{object: abi.ObjectMR, id: abi.MethodQueryMR, name: "QUERY_MR", attrs: []attrSpec{
		handle("QUERY_MR_HANDLE", abi.AttrQueryMRHandle, abi.ObjectMR),
		output("QUERY_MR_RESP_LKEY", abi.AttrQueryMRRespLKey, 4),
		output("QUERY_MR_RESP_RKEY", abi.AttrQueryMRRespRKey, 4),
		output("QUERY_MR_RESP_LENGTH", abi.AttrQueryMRRespLength, 8),
		output("QUERY_MR_RESP_IOVA", abi.AttrQueryMRRespIOVA, 8).opt(),
	}, do: methodQueryMR},
	{object: abi.ObjectMR, id: abi.MethodRegDMABufMR, name: "REG_DMABUF_MR", attrs: []attrSpec{
		newHandle("REG_DMABUF_MR_HANDLE", abi.AttrRegDMABufMRHandle, abi.ObjectMR),
		handle("REG_DMABUF_MR_PD_HANDLE", abi.AttrRegDMABufMRPDHandle, abi.ObjectPD),
		input("REG_DMABUF_MR_OFFSET", abi.AttrRegDMABufMROffset, 8),
		input("REG_DMABUF_MR_LENGTH", abi.AttrRegDMABufMRLength, 8),
		input("REG_DMABUF_MR_IOVA", abi.AttrRegDMABufMRIOVA, 8),
		input("REG_DMABUF_MR_FD", abi.AttrRegDMABufMRFD, 4),
		flags("REG_DMABUF_MR_ACCESS_FLAGS", abi.AttrRegDMABufMRAccessFlags),
		output("REG_DMABUF_MR_RESP_LKEY", abi.AttrRegDMABufMRRespLKey, 4),
		output("REG_DMABUF_MR_RESP_RKEY", abi.AttrRegDMABufMRRespRKey, 4),
	}, lacks: optional, do: notSupported},
	{object: abi.ObjectMW, id: abi.MethodMWDestroy, name: "MW_DESTROY", lacks: noMW},
	{object: abi.ObjectFlow, id: abi.MethodFlowDestroy, name: "FLOW_DESTROY", lacks: optional},
	{object: abi.ObjectXRCD, id: abi.MethodXRCDDestroy, name: "XRCD_DESTROY", lacks: optional},
	{object: abi.ObjectRWQIndTbl, id: abi.MethodRWQIndTblDestroy, name: "RWQ_IND_TBL_DESTROY", lacks: optional},
	{object: abi.ObjectWQ, id: abi.MethodWQCreate, name: "WQ_CREATE", lacks: optional},
	{object: abi.ObjectWQ, id: abi.MethodWQDestroy, name: "WQ_DESTROY", lacks: optional},
	{object: abi.ObjectFlowAction, id: abi.MethodFlowActionESPCreate, name: "FLOW_ACTION_ESP_CREATE", lacks: optional},
	{object: abi.ObjectFlowAction, id: abi.MethodFlowActionDestroy, name: "FLOW_ACTION_DESTROY", lacks: optional},
	{object: abi.ObjectFlowAction, id: abi.MethodFlowActionESPModify, name: "FLOW_ACTION_ESP_MODIFY", lacks: optional},
	{object: abi.ObjectDM, id: abi.MethodDMAlloc, name: "DM_ALLOC", lacks: optional},
	{object: abi.ObjectDM, id: abi.MethodDMFree, name: "DM_FREE", lacks: optional},
	{object: abi.ObjectCounters, id: abi.MethodCountersCreate, name: "COUNTERS_CREATE", lacks: optional},
	{object: abi.ObjectCounters, id: abi.MethodCountersDestroy, name: "COUNTERS_DESTROY", lacks: optional},
	{object: abi.ObjectCounters, id: abi.MethodCountersRead, name: "COUNTERS_READ", lacks: optional},
	{object: abi.ObjectAsyncEvent, id: abi.MethodAsyncEventAlloc, name: "ASYNC_EVENT_ALLOC", attrs: []attrSpec{
		newDescriptor("ASYNC_EVENT_ALLOC_FD_HANDLE", abi.AttrAsyncEventAllocFDHandle, abi.ObjectAsyncEvent),
	}, do: methodAllocAsync},
}

// lookupMethod is uapi_get_method: nil for what no kernel knows, and for what it
// removes where the driver lacks something.
func lookupMethod(o abi.ObjectID, id abi.MethodID) *method {
	for i := range methods {
		if m := &methods[i]; m.object == o && m.id == id && m.do != nil {
			return m
		}
	}
	return nil
}
