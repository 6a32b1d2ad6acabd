package abi

// WCStatus is the status of a work completion: enum ib_wc_status.
type WCStatus uint32

const (
	WCSuccess        WCStatus = 0
	WCLocLenErr      WCStatus = 1
	WCLocQPOpErr     WCStatus = 2
	WCLocEECOpErr    WCStatus = 3
	WCLocProtErr     WCStatus = 4
	WCWRFlushErr     WCStatus = 5
	WCMWBindErr      WCStatus = 6
	WCBadRespErr     WCStatus = 7
	WCLocAccessErr   WCStatus = 8
	WCRemInvReqErr   WCStatus = 9
	WCRemAccessErr   WCStatus = 10
	WCRemOpErr       WCStatus = 11
	WCRetryExcErr    WCStatus = 12
	WCRNRRetryExcErr WCStatus = 13
	WCLocRDDViolErr  WCStatus = 14
	WCRemInvRDReqErr WCStatus = 15
	WCRemAbortErr    WCStatus = 16
	WCInvEECNErr     WCStatus = 17
	WCInvEECStateErr WCStatus = 18
	WCFatalErr       WCStatus = 19
	WCRespTimeoutErr WCStatus = 20
	WCGeneralErr     WCStatus = 21
)

var wcStatusNames = map[WCStatus]string{
	WCSuccess:        "SUCCESS",
	WCLocLenErr:      "LOC_LEN_ERR",
	WCLocQPOpErr:     "LOC_QP_OP_ERR",
	WCLocEECOpErr:    "LOC_EEC_OP_ERR",
	WCLocProtErr:     "LOC_PROT_ERR",
	WCWRFlushErr:     "WR_FLUSH_ERR",
	WCMWBindErr:      "MW_BIND_ERR",
	WCBadRespErr:     "BAD_RESP_ERR",
	WCLocAccessErr:   "LOC_ACCESS_ERR",
	WCRemInvReqErr:   "REM_INV_REQ_ERR",
	WCRemAccessErr:   "REM_ACCESS_ERR",
	WCRemOpErr:       "REM_OP_ERR",
	WCRetryExcErr:    "RETRY_EXC_ERR",
	WCRNRRetryExcErr: "RNR_RETRY_EXC_ERR",
	WCLocRDDViolErr:  "LOC_RDD_VIOL_ERR",
	WCRemInvRDReqErr: "REM_INV_RD_REQ_ERR",
	WCRemAbortErr:    "REM_ABORT_ERR",
	WCInvEECNErr:     "INV_EECN_ERR",
	WCInvEECStateErr: "INV_EEC_STATE_ERR",
	WCFatalErr:       "FATAL_ERR",
	WCRespTimeoutErr: "RESP_TIMEOUT_ERR",
	WCGeneralErr:     "GENERAL_ERR",
}

// String gives the kernel's name without its prefix, or WCStatus(n).
func (v WCStatus) String() string { return enumString(wcStatusNames, v, "WCStatus") }

// WCOpcode is what a work completion completes: enum ib_wc_opcode, ib_uverbs_wc_opcode. Linux leaves it 0 on an
// error status.
type WCOpcode uint32

const (
	WCSend            WCOpcode = 0
	WCRDMAWrite       WCOpcode = 1
	WCRDMARead        WCOpcode = 2
	WCCompSwap        WCOpcode = 3
	WCFetchAdd        WCOpcode = 4
	WCBindMW          WCOpcode = 5
	WCLocalInv        WCOpcode = 6
	WCLSO             WCOpcode = 7
	WCRecv            WCOpcode = 128
	WCRecvRDMAWithImm WCOpcode = 129
)

var wcOpcodeNames = map[WCOpcode]string{
	WCSend:            "SEND",
	WCRDMAWrite:       "RDMA_WRITE",
	WCRDMARead:        "RDMA_READ",
	WCCompSwap:        "COMP_SWAP",
	WCFetchAdd:        "FETCH_ADD",
	WCBindMW:          "BIND_MW",
	WCLocalInv:        "LOCAL_INV",
	WCLSO:             "LSO",
	WCRecv:            "RECV",
	WCRecvRDMAWithImm: "RECV_RDMA_WITH_IMM",
}

// String gives the kernel's name without its prefix, or WCOpcode(n).
func (v WCOpcode) String() string { return enumString(wcOpcodeNames, v, "WCOpcode") }

// WCFlags is enum ib_wc_flags. Linux sets WCWithImm on the sender's side as well, with no immediate: look at it only
// when the opcode is WCRecv or WCRecvRDMAWithImm.
type WCFlags uint32

const (
	WCGRH            WCFlags = 0x1
	WCWithImm        WCFlags = 0x2
	WCWithInvalidate WCFlags = 0x4
	WCIPCsumOK       WCFlags = 0x8
)

var wcFlagsNames = []flagName{
	{uint32(WCGRH), "GRH"},
	{uint32(WCWithImm), "WITH_IMM"},
	{uint32(WCWithInvalidate), "WITH_INVALIDATE"},
	{uint32(WCIPCsumOK), "IP_CSUM_OK"},
}

// String lists the flags by name, joined by "|"; unknown bits in hexadecimal.
func (v WCFlags) String() string { return flagString(uint32(v), wcFlagsNames) }
