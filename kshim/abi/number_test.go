package abi

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// numbers pairs the constants that the public headers have with the Go ones.
var numbers = []struct {
	c string
	v uint64
}{
	{"RDMA_VERBS_IOCTL", uint64(RDMAVerbsIoctl)},
	{"IB_USER_VERBS_CMD_COMMAND_MASK", uint64(CmdCommandMask)},
	{"IB_USER_VERBS_CMD_FLAG_EXTENDED", uint64(CmdFlagExtended)},
	{"IB_UVERBS_ACCESS_OPTIONAL_RANGE", uint64(AccessOptionalRange)},
	{"IB_USER_VERBS_CMD_GET_CONTEXT", uint64(CmdGetContext)},
	{"IB_USER_VERBS_CMD_QUERY_DEVICE", uint64(CmdQueryDevice)},
	{"IB_USER_VERBS_CMD_QUERY_PORT", uint64(CmdQueryPort)},
	{"IB_USER_VERBS_CMD_ALLOC_PD", uint64(CmdAllocPD)},
	{"IB_USER_VERBS_CMD_DEALLOC_PD", uint64(CmdDeallocPD)},
	{"IB_USER_VERBS_CMD_CREATE_AH", uint64(CmdCreateAH)},
	{"IB_USER_VERBS_CMD_MODIFY_AH", uint64(CmdModifyAH)},
	{"IB_USER_VERBS_CMD_QUERY_AH", uint64(CmdQueryAH)},
	{"IB_USER_VERBS_CMD_DESTROY_AH", uint64(CmdDestroyAH)},
	{"IB_USER_VERBS_CMD_REG_MR", uint64(CmdRegMR)},
	{"IB_USER_VERBS_CMD_REG_SMR", uint64(CmdRegSMR)},
	{"IB_USER_VERBS_CMD_REREG_MR", uint64(CmdReregMR)},
	{"IB_USER_VERBS_CMD_QUERY_MR", uint64(CmdQueryMR)},
	{"IB_USER_VERBS_CMD_DEREG_MR", uint64(CmdDeregMR)},
	{"IB_USER_VERBS_CMD_ALLOC_MW", uint64(CmdAllocMW)},
	{"IB_USER_VERBS_CMD_BIND_MW", uint64(CmdBindMW)},
	{"IB_USER_VERBS_CMD_DEALLOC_MW", uint64(CmdDeallocMW)},
	{"IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL", uint64(CmdCreateCompChannel)},
	{"IB_USER_VERBS_CMD_CREATE_CQ", uint64(CmdCreateCQ)},
	{"IB_USER_VERBS_CMD_RESIZE_CQ", uint64(CmdResizeCQ)},
	{"IB_USER_VERBS_CMD_DESTROY_CQ", uint64(CmdDestroyCQ)},
	{"IB_USER_VERBS_CMD_POLL_CQ", uint64(CmdPollCQ)},
	{"IB_USER_VERBS_CMD_PEEK_CQ", uint64(CmdPeekCQ)},
	{"IB_USER_VERBS_CMD_REQ_NOTIFY_CQ", uint64(CmdReqNotifyCQ)},
	{"IB_USER_VERBS_CMD_CREATE_QP", uint64(CmdCreateQP)},
	{"IB_USER_VERBS_CMD_QUERY_QP", uint64(CmdQueryQP)},
	{"IB_USER_VERBS_CMD_MODIFY_QP", uint64(CmdModifyQP)},
	{"IB_USER_VERBS_CMD_DESTROY_QP", uint64(CmdDestroyQP)},
	{"IB_USER_VERBS_CMD_POST_SEND", uint64(CmdPostSend)},
	{"IB_USER_VERBS_CMD_POST_RECV", uint64(CmdPostRecv)},
	{"IB_USER_VERBS_CMD_ATTACH_MCAST", uint64(CmdAttachMcast)},
	{"IB_USER_VERBS_CMD_DETACH_MCAST", uint64(CmdDetachMcast)},
	{"IB_USER_VERBS_CMD_CREATE_SRQ", uint64(CmdCreateSRQ)},
	{"IB_USER_VERBS_CMD_MODIFY_SRQ", uint64(CmdModifySRQ)},
	{"IB_USER_VERBS_CMD_QUERY_SRQ", uint64(CmdQuerySRQ)},
	{"IB_USER_VERBS_CMD_DESTROY_SRQ", uint64(CmdDestroySRQ)},
	{"IB_USER_VERBS_CMD_POST_SRQ_RECV", uint64(CmdPostSRQRecv)},
	{"IB_USER_VERBS_CMD_OPEN_XRCD", uint64(CmdOpenXRCD)},
	{"IB_USER_VERBS_CMD_CLOSE_XRCD", uint64(CmdCloseXRCD)},
	{"IB_USER_VERBS_CMD_CREATE_XSRQ", uint64(CmdCreateXSRQ)},
	{"IB_USER_VERBS_CMD_OPEN_QP", uint64(CmdOpenQP)},
	{"IB_USER_VERBS_EX_CMD_QUERY_DEVICE", uint64(ExCmdQueryDevice)},
	{"IB_USER_VERBS_EX_CMD_CREATE_CQ", uint64(ExCmdCreateCQ)},
	{"IB_USER_VERBS_EX_CMD_CREATE_QP", uint64(ExCmdCreateQP)},
	{"IB_USER_VERBS_EX_CMD_MODIFY_QP", uint64(ExCmdModifyQP)},
	{"IB_USER_VERBS_EX_CMD_CREATE_FLOW", uint64(ExCmdCreateFlow)},
	{"IB_USER_VERBS_EX_CMD_DESTROY_FLOW", uint64(ExCmdDestroyFlow)},
	{"IB_USER_VERBS_EX_CMD_CREATE_WQ", uint64(ExCmdCreateWQ)},
	{"IB_USER_VERBS_EX_CMD_MODIFY_WQ", uint64(ExCmdModifyWQ)},
	{"IB_USER_VERBS_EX_CMD_DESTROY_WQ", uint64(ExCmdDestroyWQ)},
	{"IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL", uint64(ExCmdCreateRWQIndTbl)},
	{"IB_USER_VERBS_EX_CMD_DESTROY_RWQ_IND_TBL", uint64(ExCmdDestroyRWQIndTbl)},
	{"IB_USER_VERBS_EX_CMD_MODIFY_CQ", uint64(ExCmdModifyCQ)},
	{"IB_UVERBS_WC_SEND", uint64(WCSend)},
	{"IB_UVERBS_WC_RDMA_WRITE", uint64(WCRDMAWrite)},
	{"IB_UVERBS_WC_RDMA_READ", uint64(WCRDMARead)},
	{"IB_UVERBS_WC_COMP_SWAP", uint64(WCCompSwap)},
	{"IB_UVERBS_WC_FETCH_ADD", uint64(WCFetchAdd)},
	{"IB_UVERBS_WC_BIND_MW", uint64(WCBindMW)},
	{"IB_UVERBS_WC_LOCAL_INV", uint64(WCLocalInv)},
	{"IB_UVERBS_WC_TSO", uint64(WCLSO)},
	{"IB_UVERBS_WR_RDMA_WRITE", uint64(WRRDMAWrite)},
	{"IB_UVERBS_WR_RDMA_WRITE_WITH_IMM", uint64(WRRDMAWriteWithImm)},
	{"IB_UVERBS_WR_SEND", uint64(WRSend)},
	{"IB_UVERBS_WR_SEND_WITH_IMM", uint64(WRSendWithImm)},
	{"IB_UVERBS_WR_RDMA_READ", uint64(WRRDMARead)},
	{"IB_UVERBS_WR_ATOMIC_CMP_AND_SWP", uint64(WRAtomicCmpAndSwp)},
	{"IB_UVERBS_WR_ATOMIC_FETCH_AND_ADD", uint64(WRAtomicFetchAndAdd)},
	{"IB_UVERBS_WR_LOCAL_INV", uint64(WRLocalInv)},
	{"IB_UVERBS_WR_BIND_MW", uint64(WRBindMW)},
	{"IB_UVERBS_WR_SEND_WITH_INV", uint64(WRSendWithInv)},
	{"IB_UVERBS_WR_TSO", uint64(WRTSO)},
	{"IB_UVERBS_WR_RDMA_READ_WITH_INV", uint64(WRRDMAReadWithInv)},
	{"IB_UVERBS_WR_MASKED_ATOMIC_CMP_AND_SWP", uint64(WRMaskedAtomicCmpAndSwp)},
	{"IB_UVERBS_WR_MASKED_ATOMIC_FETCH_AND_ADD", uint64(WRMaskedAtomicFetchAndAdd)},
	{"IB_UVERBS_ACCESS_LOCAL_WRITE", uint64(AccessLocalWrite)},
	{"IB_UVERBS_ACCESS_REMOTE_WRITE", uint64(AccessRemoteWrite)},
	{"IB_UVERBS_ACCESS_REMOTE_READ", uint64(AccessRemoteRead)},
	{"IB_UVERBS_ACCESS_REMOTE_ATOMIC", uint64(AccessRemoteAtomic)},
	{"IB_UVERBS_ACCESS_MW_BIND", uint64(AccessMWBind)},
	{"IB_UVERBS_ACCESS_ZERO_BASED", uint64(AccessZeroBased)},
	{"IB_UVERBS_ACCESS_ON_DEMAND", uint64(AccessOnDemand)},
	{"IB_UVERBS_ACCESS_HUGETLB", uint64(AccessHugetlb)},
	{"IB_UVERBS_ACCESS_RELAXED_ORDERING", uint64(AccessRelaxedOrdering)},
	{"IB_UVERBS_QPT_RC", uint64(QPTRC)},
	{"IB_UVERBS_QPT_UC", uint64(QPTUC)},
	{"IB_UVERBS_QPT_UD", uint64(QPTUD)},
	{"IB_UVERBS_QPT_RAW_PACKET", uint64(QPTRawPacket)},
	{"IB_UVERBS_QPT_XRC_INI", uint64(QPTXRCIni)},
	{"IB_UVERBS_QPT_XRC_TGT", uint64(QPTXRCTgt)},
	{"IB_UVERBS_QPT_DRIVER", uint64(QPTDriver)},
	{"RDMA_DRIVER_UNKNOWN", uint64(DriverUnknown)},
	{"RDMA_DRIVER_MLX5", uint64(DriverMLX5)},
	{"RDMA_DRIVER_MLX4", uint64(DriverMLX4)},
	{"RDMA_DRIVER_CXGB3", uint64(DriverCXGB3)},
	{"RDMA_DRIVER_CXGB4", uint64(DriverCXGB4)},
	{"RDMA_DRIVER_MTHCA", uint64(DriverMTHCA)},
	{"RDMA_DRIVER_BNXT_RE", uint64(DriverBNXTRE)},
	{"RDMA_DRIVER_OCRDMA", uint64(DriverOCRDMA)},
	{"RDMA_DRIVER_NES", uint64(DriverNES)},
	{"RDMA_DRIVER_IRDMA", uint64(DriverIRDMA)},
	{"RDMA_DRIVER_VMW_PVRDMA", uint64(DriverVMWPVRDMA)},
	{"RDMA_DRIVER_QEDR", uint64(DriverQEDR)},
	{"RDMA_DRIVER_HNS", uint64(DriverHNS)},
	{"RDMA_DRIVER_USNIC", uint64(DriverUSNIC)},
	{"RDMA_DRIVER_RXE", uint64(DriverRXE)},
	{"RDMA_DRIVER_HFI1", uint64(DriverHFI1)},
	{"RDMA_DRIVER_QIB", uint64(DriverQIB)},
	{"RDMA_DRIVER_EFA", uint64(DriverEFA)},
	{"RDMA_DRIVER_SIW", uint64(DriverSIW)},
	{"RDMA_DRIVER_ERDMA", uint64(DriverERDMA)},
	{"IB_UVERBS_GID_TYPE_IB", uint64(GIDTypeIB)},
	{"IB_UVERBS_GID_TYPE_ROCE_V1", uint64(GIDTypeRoCEv1)},
	{"IB_UVERBS_GID_TYPE_ROCE_V2", uint64(GIDTypeRoCEv2)},
	{"UVERBS_ATTR_F_MANDATORY", uint64(AttrFMandatory)},
	{"UVERBS_ATTR_F_VALID_OUTPUT", uint64(AttrFValidOutput)},
	{"UVERBS_OBJECT_DEVICE", uint64(ObjectDevice)},
	{"UVERBS_OBJECT_PD", uint64(ObjectPD)},
	{"UVERBS_OBJECT_COMP_CHANNEL", uint64(ObjectCompChannel)},
	{"UVERBS_OBJECT_CQ", uint64(ObjectCQ)},
	{"UVERBS_OBJECT_QP", uint64(ObjectQP)},
	{"UVERBS_OBJECT_SRQ", uint64(ObjectSRQ)},
	{"UVERBS_OBJECT_AH", uint64(ObjectAH)},
	{"UVERBS_OBJECT_MR", uint64(ObjectMR)},
	{"UVERBS_OBJECT_MW", uint64(ObjectMW)},
	{"UVERBS_OBJECT_FLOW", uint64(ObjectFlow)},
	{"UVERBS_OBJECT_XRCD", uint64(ObjectXRCD)},
	{"UVERBS_OBJECT_RWQ_IND_TBL", uint64(ObjectRWQIndTbl)},
	{"UVERBS_OBJECT_WQ", uint64(ObjectWQ)},
	{"UVERBS_OBJECT_FLOW_ACTION", uint64(ObjectFlowAction)},
	{"UVERBS_OBJECT_DM", uint64(ObjectDM)},
	{"UVERBS_OBJECT_COUNTERS", uint64(ObjectCounters)},
	{"UVERBS_OBJECT_ASYNC_EVENT", uint64(ObjectAsyncEvent)},
	{"UVERBS_ATTR_UHW_IN", uint64(AttrUHWIn)},
	{"UVERBS_ATTR_UHW_OUT", uint64(AttrUHWOut)},
	{"UVERBS_METHOD_INVOKE_WRITE", uint64(MethodInvokeWrite)},
	{"UVERBS_METHOD_QUERY_GID_TABLE", uint64(MethodQueryGIDTable)},
	{"UVERBS_METHOD_QUERY_GID_ENTRY", uint64(MethodQueryGIDEntry)},
	{"UVERBS_ATTR_CORE_IN", uint64(AttrCoreIn)},
	{"UVERBS_ATTR_CORE_OUT", uint64(AttrCoreOut)},
	{"UVERBS_ATTR_WRITE_CMD", uint64(AttrWriteCmd)},
	{"UVERBS_METHOD_QP_CREATE", uint64(MethodQPCreate)},
	{"UVERBS_METHOD_QP_DESTROY", uint64(MethodQPDestroy)},
	{"UVERBS_METHOD_CQ_CREATE", uint64(MethodCQCreate)},
	{"UVERBS_METHOD_CQ_DESTROY", uint64(MethodCQDestroy)},
	{"UVERBS_METHOD_MR_DESTROY", uint64(MethodMRDestroy)},
	{"UVERBS_METHOD_QUERY_MR", uint64(MethodQueryMR)},
	{"UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE", uint64(AttrQueryGIDTableEntrySize)},
	{"UVERBS_ATTR_QUERY_GID_TABLE_FLAGS", uint64(AttrQueryGIDTableFlags)},
	{"UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES", uint64(AttrQueryGIDTableRespEntries)},
	{"UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES", uint64(AttrQueryGIDTableRespNumEntries)},
	{"UVERBS_ATTR_QUERY_GID_ENTRY_PORT", uint64(AttrQueryGIDEntryPort)},
	{"UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX", uint64(AttrQueryGIDEntryGIDIndex)},
	{"UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS", uint64(AttrQueryGIDEntryFlags)},
	{"UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY", uint64(AttrQueryGIDEntryRespEntry)},
	{"UVERBS_ATTR_INFO_OBJECT_ID", uint64(AttrInfoObjectID)},
	{"UVERBS_ATTR_INFO_TOTAL_HANDLES", uint64(AttrInfoTotalHandles)},
	{"UVERBS_ATTR_INFO_HANDLES_LIST", uint64(AttrInfoHandlesList)},
	{"UVERBS_ATTR_QUERY_PORT_PORT_NUM", uint64(AttrQueryPortPortNum)},
	{"UVERBS_ATTR_QUERY_PORT_RESP", uint64(AttrQueryPortResp)},
	{"UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS", uint64(AttrGetContextNumCompVectors)},
	{"UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT", uint64(AttrGetContextCoreSupport)},
	{"UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS", uint64(AttrQueryContextNumCompVectors)},
	{"UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT", uint64(AttrQueryContextCoreSupport)},
	{"UVERBS_ATTR_DESTROY_PD_HANDLE", uint64(AttrDestroyPDHandle)},
	{"UVERBS_ATTR_CREATE_CQ_HANDLE", uint64(AttrCreateCQHandle)},
	{"UVERBS_ATTR_CREATE_CQ_CQE", uint64(AttrCreateCQCQE)},
	{"UVERBS_ATTR_CREATE_CQ_USER_HANDLE", uint64(AttrCreateCQUserHandle)},
	{"UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL", uint64(AttrCreateCQCompChannel)},
	{"UVERBS_ATTR_CREATE_CQ_COMP_VECTOR", uint64(AttrCreateCQCompVector)},
	{"UVERBS_ATTR_CREATE_CQ_FLAGS", uint64(AttrCreateCQFlags)},
	{"UVERBS_ATTR_CREATE_CQ_RESP_CQE", uint64(AttrCreateCQRespCQE)},
	{"UVERBS_ATTR_CREATE_CQ_EVENT_FD", uint64(AttrCreateCQEventFD)},
	{"UVERBS_ATTR_DESTROY_CQ_HANDLE", uint64(AttrDestroyCQHandle)},
	{"UVERBS_ATTR_DESTROY_CQ_RESP", uint64(AttrDestroyCQResp)},
	{"UVERBS_ATTR_CREATE_QP_HANDLE", uint64(AttrCreateQPHandle)},
	{"UVERBS_ATTR_CREATE_QP_XRCD_HANDLE", uint64(AttrCreateQPXRCDHandle)},
	{"UVERBS_ATTR_CREATE_QP_PD_HANDLE", uint64(AttrCreateQPPDHandle)},
	{"UVERBS_ATTR_CREATE_QP_SRQ_HANDLE", uint64(AttrCreateQPSRQHandle)},
	{"UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE", uint64(AttrCreateQPSendCQHandle)},
	{"UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE", uint64(AttrCreateQPRecvCQHandle)},
	{"UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE", uint64(AttrCreateQPIndTableHandle)},
	{"UVERBS_ATTR_CREATE_QP_USER_HANDLE", uint64(AttrCreateQPUserHandle)},
	{"UVERBS_ATTR_CREATE_QP_CAP", uint64(AttrCreateQPCap)},
	{"UVERBS_ATTR_CREATE_QP_TYPE", uint64(AttrCreateQPType)},
	{"UVERBS_ATTR_CREATE_QP_FLAGS", uint64(AttrCreateQPFlags)},
	{"UVERBS_ATTR_CREATE_QP_SOURCE_QPN", uint64(AttrCreateQPSourceQPN)},
	{"UVERBS_ATTR_CREATE_QP_EVENT_FD", uint64(AttrCreateQPEventFD)},
	{"UVERBS_ATTR_CREATE_QP_RESP_CAP", uint64(AttrCreateQPRespCap)},
	{"UVERBS_ATTR_CREATE_QP_RESP_QP_NUM", uint64(AttrCreateQPRespQPNum)},
	{"UVERBS_ATTR_DESTROY_QP_HANDLE", uint64(AttrDestroyQPHandle)},
	{"UVERBS_ATTR_DESTROY_QP_RESP", uint64(AttrDestroyQPResp)},
	{"UVERBS_ATTR_CREATE_SRQ_HANDLE", uint64(AttrCreateSRQHandle)},
	{"UVERBS_ATTR_CREATE_SRQ_PD_HANDLE", uint64(AttrCreateSRQPDHandle)},
	{"UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE", uint64(AttrCreateSRQXRCDHandle)},
	{"UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE", uint64(AttrCreateSRQCQHandle)},
	{"UVERBS_ATTR_CREATE_SRQ_USER_HANDLE", uint64(AttrCreateSRQUserHandle)},
	{"UVERBS_ATTR_CREATE_SRQ_MAX_WR", uint64(AttrCreateSRQMaxWR)},
	{"UVERBS_ATTR_CREATE_SRQ_MAX_SGE", uint64(AttrCreateSRQMaxSGE)},
	{"UVERBS_ATTR_CREATE_SRQ_LIMIT", uint64(AttrCreateSRQLimit)},
	{"UVERBS_ATTR_CREATE_SRQ_MAX_NUM_TAGS", uint64(AttrCreateSRQMaxNumTags)},
	{"UVERBS_ATTR_CREATE_SRQ_TYPE", uint64(AttrCreateSRQType)},
	{"UVERBS_ATTR_CREATE_SRQ_EVENT_FD", uint64(AttrCreateSRQEventFD)},
	{"UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR", uint64(AttrCreateSRQRespMaxWR)},
	{"UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE", uint64(AttrCreateSRQRespMaxSGE)},
	{"UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM", uint64(AttrCreateSRQRespSRQNum)},
	{"UVERBS_ATTR_DESTROY_SRQ_HANDLE", uint64(AttrDestroySRQHandle)},
	{"UVERBS_ATTR_DESTROY_SRQ_RESP", uint64(AttrDestroySRQResp)},
	{"UVERBS_ATTR_DESTROY_AH_HANDLE", uint64(AttrDestroyAHHandle)},
	{"UVERBS_ATTR_DESTROY_MR_HANDLE", uint64(AttrDestroyMRHandle)},
	{"UVERBS_ATTR_ADVISE_MR_PD_HANDLE", uint64(AttrAdviseMRPDHandle)},
	{"UVERBS_ATTR_ADVISE_MR_ADVICE", uint64(AttrAdviseMRAdvice)},
	{"UVERBS_ATTR_ADVISE_MR_FLAGS", uint64(AttrAdviseMRFlags)},
	{"UVERBS_ATTR_ADVISE_MR_SGE_LIST", uint64(AttrAdviseMRSGEList)},
	{"UVERBS_ATTR_QUERY_MR_HANDLE", uint64(AttrQueryMRHandle)},
	{"UVERBS_ATTR_QUERY_MR_RESP_LKEY", uint64(AttrQueryMRRespLKey)},
	{"UVERBS_ATTR_QUERY_MR_RESP_RKEY", uint64(AttrQueryMRRespRKey)},
	{"UVERBS_ATTR_QUERY_MR_RESP_LENGTH", uint64(AttrQueryMRRespLength)},
	{"UVERBS_ATTR_QUERY_MR_RESP_IOVA", uint64(AttrQueryMRRespIOVA)},
	{"UVERBS_ATTR_REG_DMABUF_MR_HANDLE", uint64(AttrRegDMABufMRHandle)},
	{"UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE", uint64(AttrRegDMABufMRPDHandle)},
	{"UVERBS_ATTR_REG_DMABUF_MR_OFFSET", uint64(AttrRegDMABufMROffset)},
	{"UVERBS_ATTR_REG_DMABUF_MR_LENGTH", uint64(AttrRegDMABufMRLength)},
	{"UVERBS_ATTR_REG_DMABUF_MR_IOVA", uint64(AttrRegDMABufMRIOVA)},
	{"UVERBS_ATTR_REG_DMABUF_MR_FD", uint64(AttrRegDMABufMRFD)},
	{"UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS", uint64(AttrRegDMABufMRAccessFlags)},
	{"UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY", uint64(AttrRegDMABufMRRespLKey)},
	{"UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY", uint64(AttrRegDMABufMRRespRKey)},
	{"UVERBS_ATTR_DESTROY_MW_HANDLE", uint64(AttrDestroyMWHandle)},
	{"UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE", uint64(AttrAsyncEventAllocFDHandle)},
	{"UVERBS_METHOD_INFO_HANDLES", uint64(MethodInfoHandles)},
	{"UVERBS_METHOD_QUERY_PORT", uint64(MethodQueryPort)},
	{"UVERBS_METHOD_GET_CONTEXT", uint64(MethodGetContext)},
	{"UVERBS_METHOD_QUERY_CONTEXT", uint64(MethodQueryContext)},
	{"UVERBS_METHOD_PD_DESTROY", uint64(MethodPDDestroy)},
	{"UVERBS_METHOD_SRQ_CREATE", uint64(MethodSRQCreate)},
	{"UVERBS_METHOD_SRQ_DESTROY", uint64(MethodSRQDestroy)},
	{"UVERBS_METHOD_AH_DESTROY", uint64(MethodAHDestroy)},
	{"UVERBS_METHOD_DM_MR_REG", uint64(MethodDMMRReg)},
	{"UVERBS_METHOD_ADVISE_MR", uint64(MethodAdviseMR)},
	{"UVERBS_METHOD_REG_DMABUF_MR", uint64(MethodRegDMABufMR)},
	{"UVERBS_METHOD_ASYNC_EVENT_ALLOC", uint64(MethodAsyncEventAlloc)},
	{"UVERBS_METHOD_MW_DESTROY", uint64(MethodMWDestroy)},
	{"UVERBS_METHOD_FLOW_DESTROY", uint64(MethodFlowDestroy)},
	{"UVERBS_METHOD_XRCD_DESTROY", uint64(MethodXRCDDestroy)},
	{"UVERBS_METHOD_RWQ_IND_TBL_DESTROY", uint64(MethodRWQIndTblDestroy)},
	{"UVERBS_METHOD_WQ_CREATE", uint64(MethodWQCreate)},
	{"UVERBS_METHOD_WQ_DESTROY", uint64(MethodWQDestroy)},
	{"UVERBS_METHOD_FLOW_ACTION_ESP_CREATE", uint64(MethodFlowActionESPCreate)},
	{"UVERBS_METHOD_FLOW_ACTION_DESTROY", uint64(MethodFlowActionDestroy)},
	{"UVERBS_METHOD_FLOW_ACTION_ESP_MODIFY", uint64(MethodFlowActionESPModify)},
	{"UVERBS_METHOD_DM_ALLOC", uint64(MethodDMAlloc)},
	{"UVERBS_METHOD_DM_FREE", uint64(MethodDMFree)},
	{"UVERBS_METHOD_COUNTERS_CREATE", uint64(MethodCountersCreate)},
	{"UVERBS_METHOD_COUNTERS_DESTROY", uint64(MethodCountersDestroy)},
	{"UVERBS_METHOD_COUNTERS_READ", uint64(MethodCountersRead)},
}

// offsets pairs the offsets of the structures that are not encoded here.
var offsets = []struct {
	c, field string
	off      int
}{
	{"rxe_queue_buf", "log2_elem_size", QueueBufLog2ElemSize},
	{"rxe_queue_buf", "index_mask", QueueBufIndexMask},
	{"rxe_queue_buf", "producer_index", QueueBufProducerIndex},
	{"rxe_queue_buf", "consumer_index", QueueBufConsumerIndex},
	{"rxe_send_wqe", "wr_id", SendWQEWRID},
	{"rxe_send_wqe", "opcode", SendWQEOpcode},
	{"rxe_send_wqe", "send_flags", SendWQESendFlags},
	{"rxe_send_wqe", "imm_data", SendWQEImmData},
	{"rxe_send_wqe", "invalidate_rkey", SendWQEInvalidateRKey},
	{"rxe_send_wqe", "rdma.remote_addr", SendWQERDMARemoteAddr},
	{"rxe_send_wqe", "rdma.rkey", SendWQERDMARKey},
	{"rxe_send_wqe", "atomic.remote_addr", SendWQEAtomRemoteAddr},
	{"rxe_send_wqe", "atomic.compare_add", SendWQEAtomCompareAdd},
	{"rxe_send_wqe", "atomic.swap", SendWQEAtomSwap},
	{"rxe_send_wqe", "atomic.rkey", SendWQEAtomRKey},
	{"rxe_send_wqe", "ud.remote_qpn", SendWQEUDRemoteQPN},
	{"rxe_send_wqe", "ud.remote_qkey", SendWQEUDRemoteQKey},
	{"rxe_send_wqe", "ud.pkey_index", SendWQEUDPkeyIndex},
	{"rxe_send_wqe", "ud.ah_num", SendWQEUDAHNum},
	{"rxe_send_wqe", "status", SendWQEStatus},
	{"rxe_send_wqe", "state", SendWQEState},
	{"rxe_send_wqe", "iova", SendWQEIOVA},
	{"rxe_send_wqe", "mask", SendWQEMask},
	{"rxe_send_wqe", "first_psn", SendWQEFirstPSN},
	{"rxe_send_wqe", "last_psn", SendWQELastPSN},
	{"rxe_send_wqe", "ack_length", SendWQEAckLength},
	{"rxe_send_wqe", "ssn", SendWQESSN},
	{"rxe_send_wqe", "has_rd_atomic", SendWQEHasRdAtomic},
	{"rxe_send_wqe", "dma", SendWQEDMA},
	{"rxe_recv_wqe", "wr_id", RecvWQEWRID},
	{"rxe_recv_wqe", "dma", RecvWQEDMA},
	{"rxe_dma_info", "length", DMALength},
	{"rxe_dma_info", "resid", DMAResid},
	{"rxe_dma_info", "cur_sge", DMACurSGE},
	{"rxe_dma_info", "num_sge", DMANumSGE},
	{"rxe_dma_info", "sge_offset", DMASGEOffset},
	{"rxe_sge", "addr", RXESGEAddr},
	{"rxe_sge", "length", RXESGELength},
	{"rxe_sge", "lkey", RXESGELKey},
}

// sizes pairs the sizes of those.
var sizes = []struct {
	c    string
	size int
}{
	{"rxe_queue_buf", QueueBufData},
	{"rxe_send_wqe", SendWQESize},
	{"rxe_recv_wqe", RecvWQESize},
	{"rxe_dma_info", DMASize},
	{"rxe_sge", RXESGESize},
	{"ib_uverbs_send_wr", SendWRSize},
}

func TestNumbersAreThoseOfC(t *testing.T) { checkNumbers(t, golden(t)) }

func checkNumbers(t *testing.T, l layout) {
	known := map[string]bool{}
	for _, n := range numbers {
		known[n.c] = true
		want, ok := l.value[n.c]
		require.True(t, ok, n.c)
		require.Equal(t, want, n.v, n.c)
	}
	for c := range l.value {
		require.True(t, known[c], "no Go constant for %s", c)
	}
	for _, o := range offsets {
		span, ok := l.field[o.c][o.field]
		require.True(t, ok, "%s.%s", o.c, o.field)
		require.Equal(t, span.off, o.off, "%s.%s", o.c, o.field)
	}
	for _, s := range sizes {
		require.Equal(t, l.size[s.c], s.size, s.c)
	}
}

// TestNumbersMeasured holds the numbers that the headers leave out against
// masks, states and statuses seen on Linux 6.1.
func TestNumbersMeasured(t *testing.T) {
	require.EqualValues(t, 0x39, QPMaskState|QPMaskAccessFlags|QPMaskPkeyIndex|QPMaskPort)
	require.EqualValues(t, 0x129181, QPMaskState|QPMaskAV|QPMaskPathMTU|QPMaskRQPSN|QPMaskMinRNRTimer|QPMaskMaxDestRdAtomic|QPMaskDestQPN)
	require.EqualValues(t, 0x12e01, QPMaskState|QPMaskTimeout|QPMaskRetryCnt|QPMaskRNRRetry|QPMaskMaxQPRdAtomic|QPMaskSQPSN)
	require.EqualValues(t, 6, QPSErr)
	require.EqualValues(t, 2, WCLocQPOpErr)
	require.EqualValues(t, 5, WCWRFlushErr)
	require.EqualValues(t, 9, WCRemInvReqErr)
	require.EqualValues(t, 10, WCRemAccessErr)
	require.EqualValues(t, 11, WCRemOpErr)
	require.EqualValues(t, 12, WCRetryExcErr)
	require.EqualValues(t, 13, WCRNRRetryExcErr)
	require.EqualValues(t, 21, WCGeneralErr)
	require.EqualValues(t, 128, WCRecv)
	require.EqualValues(t, 129, WCRecvRDMAWithImm)
	require.EqualValues(t, 5, EventSQDrained)
	require.EqualValues(t, 9, EventPortActive)
	require.EqualValues(t, 10, EventPortErr)
}

func TestStrings(t *testing.T) {
	for want, v := range map[string]fmt.Stringer{
		"REM_ACCESS_ERR":            WCRemAccessErr,
		"SUCCESS":                   WCSuccess,
		"WCStatus(99)":              WCStatus(99),
		"RECV_RDMA_WITH_IMM":        WCRecvRDMAWithImm,
		"RTS":                       QPSRTS,
		"LOCAL_WRITE|REMOTE_ATOMIC": AccessLocalWrite | AccessRemoteAtomic,
		"LOCAL_WRITE|0x80000000":    AccessLocalWrite | 1<<31,
		"0":                         SendFlags(0),
		"POST_SEND":                 CmdPostSend,
		"CQ_ERR":                    EventCQErr,
		"4096":                      MTU4096,
		"RXE":                       DriverRXE,
	} {
		require.Equal(t, want, v.String())
	}
}

func TestMTUBytes(t *testing.T) {
	for v, want := range map[MTU]int{0: 0, MTU256: 256, MTU512: 512, MTU1024: 1024, MTU2048: 2048, MTU4096: 4096, 6: 0, 255: 0} {
		require.Equal(t, want, v.Bytes())
	}
	for n, want := range map[int]MTU{-1: 0, 255: 0, 256: MTU256, 511: MTU256, 512: MTU512, 1420: MTU1024, 4095: MTU2048, 4096: MTU4096, 1 << 30: MTU4096} {
		require.Equal(t, want, FitMTU(n), n)
	}
}

func TestEventElement(t *testing.T) {
	require.Equal(t, ElementCQ, EventCQErr.Element())
	require.Equal(t, ElementQP, EventQPFatal.Element())
	require.Equal(t, ElementPort, EventPortActive.Element())
	require.Equal(t, ElementSRQ, EventSRQErr.Element())
	require.Equal(t, ElementWQ, EventWQFatal.Element())
}

func TestErrShortIsEINVAL(t *testing.T) {
	require.ErrorIs(t, (&CmdHdr{}).Parse(nil), syscall.EINVAL)
}
