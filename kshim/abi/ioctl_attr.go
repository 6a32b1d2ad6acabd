package abi

// Attributes of the methods besides those in ioctl.go: enum uverbs_attrs_*_cmd_attr_ids and their like.

// Attributes of MethodInfoHandles.
const (
	AttrInfoObjectID     AttrID = 0
	AttrInfoTotalHandles AttrID = 1
	AttrInfoHandlesList  AttrID = 2
)

// Attributes of MethodQueryPort of ObjectDevice.
const (
	AttrQueryPortPortNum AttrID = 0
	AttrQueryPortResp    AttrID = 1
)

// Attributes of MethodGetContext.
const (
	AttrGetContextNumCompVectors AttrID = 0
	AttrGetContextCoreSupport    AttrID = 1
)

// Attributes of MethodQueryContext.
const (
	AttrQueryContextNumCompVectors AttrID = 0
	AttrQueryContextCoreSupport    AttrID = 1
)

// Attributes of MethodPDDestroy.
const (
	AttrDestroyPDHandle AttrID = 0
)

// Attributes of MethodCQCreate.
const (
	AttrCreateCQHandle      AttrID = 0
	AttrCreateCQCQE         AttrID = 1
	AttrCreateCQUserHandle  AttrID = 2
	AttrCreateCQCompChannel AttrID = 3
	AttrCreateCQCompVector  AttrID = 4
	AttrCreateCQFlags       AttrID = 5
	AttrCreateCQRespCQE     AttrID = 6
	AttrCreateCQEventFD     AttrID = 7
)

// Attributes of MethodCQDestroy.
const (
	AttrDestroyCQHandle AttrID = 0
	AttrDestroyCQResp   AttrID = 1
)

// Attributes of MethodQPCreate.
const (
	AttrCreateQPHandle         AttrID = 0
	AttrCreateQPXRCDHandle     AttrID = 1
	AttrCreateQPPDHandle       AttrID = 2
	AttrCreateQPSRQHandle      AttrID = 3
	AttrCreateQPSendCQHandle   AttrID = 4
	AttrCreateQPRecvCQHandle   AttrID = 5
	AttrCreateQPIndTableHandle AttrID = 6
	AttrCreateQPUserHandle     AttrID = 7
	AttrCreateQPCap            AttrID = 8
	AttrCreateQPType           AttrID = 9
	AttrCreateQPFlags          AttrID = 10
	AttrCreateQPSourceQPN      AttrID = 11
	AttrCreateQPEventFD        AttrID = 12
	AttrCreateQPRespCap        AttrID = 13
	AttrCreateQPRespQPNum      AttrID = 14
)

// Attributes of MethodQPDestroy.
const (
	AttrDestroyQPHandle AttrID = 0
	AttrDestroyQPResp   AttrID = 1
)

// Attributes of MethodSRQCreate.
const (
	AttrCreateSRQHandle     AttrID = 0
	AttrCreateSRQPDHandle   AttrID = 1
	AttrCreateSRQXRCDHandle AttrID = 2
	AttrCreateSRQCQHandle   AttrID = 3
	AttrCreateSRQUserHandle AttrID = 4
	AttrCreateSRQMaxWR      AttrID = 5
	AttrCreateSRQMaxSGE     AttrID = 6
	AttrCreateSRQLimit      AttrID = 7
	AttrCreateSRQMaxNumTags AttrID = 8
	AttrCreateSRQType       AttrID = 9
	AttrCreateSRQEventFD    AttrID = 10
	AttrCreateSRQRespMaxWR  AttrID = 11
	AttrCreateSRQRespMaxSGE AttrID = 12
	AttrCreateSRQRespSRQNum AttrID = 13
)

// Attributes of MethodSRQDestroy.
const (
	AttrDestroySRQHandle AttrID = 0
	AttrDestroySRQResp   AttrID = 1
)

// Attributes of MethodAHDestroy.
const (
	AttrDestroyAHHandle AttrID = 0
)

// Attributes of MethodMRDestroy.
const (
	AttrDestroyMRHandle AttrID = 0
)

// Attributes of MethodAdviseMR.
const (
	AttrAdviseMRPDHandle AttrID = 0
	AttrAdviseMRAdvice   AttrID = 1
	AttrAdviseMRFlags    AttrID = 2
	AttrAdviseMRSGEList  AttrID = 3
)

// Attributes of MethodQueryMR.
const (
	AttrQueryMRHandle     AttrID = 0
	AttrQueryMRRespLKey   AttrID = 1
	AttrQueryMRRespRKey   AttrID = 2
	AttrQueryMRRespLength AttrID = 3
	AttrQueryMRRespIOVA   AttrID = 4
)

// Attributes of MethodRegDMABufMR.
const (
	AttrRegDMABufMRHandle      AttrID = 0
	AttrRegDMABufMRPDHandle    AttrID = 1
	AttrRegDMABufMROffset      AttrID = 2
	AttrRegDMABufMRLength      AttrID = 3
	AttrRegDMABufMRIOVA        AttrID = 4
	AttrRegDMABufMRFD          AttrID = 5
	AttrRegDMABufMRAccessFlags AttrID = 6
	AttrRegDMABufMRRespLKey    AttrID = 7
	AttrRegDMABufMRRespRKey    AttrID = 8
)

// Attributes of MethodMWDestroy.
const (
	AttrDestroyMWHandle AttrID = 0
)

// Attributes of MethodAsyncEventAlloc.
const (
	AttrAsyncEventAllocFDHandle AttrID = 0
)
