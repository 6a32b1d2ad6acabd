package uapi

import (
	"fmt"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// Status is the outcome of a work request, with the kernel's numbers (enum
// ib_wc_status). It prints as its verbs name with an explanation. It is no
// error: WC.Err makes one, and StatusOf finds the status in that.
type Status uint32

const (
	// WCSuccess: the operation completed successfully.
	WCSuccess = Status(abi.WCSuccess)
	// WCLocLenErr: a message was longer than the receive's buffers.
	WCLocLenErr = Status(abi.WCLocLenErr)
	// WCLocQPOpErr: the work request itself was malformed.
	WCLocQPOpErr = Status(abi.WCLocQPOpErr)
	// WCLocEECOpErr is of a service that this package does not use.
	WCLocEECOpErr = Status(abi.WCLocEECOpErr)
	// WCLocProtErr: local protection error.
	WCLocProtErr = Status(abi.WCLocProtErr)
	// WCWRFlushErr: the queue pair failed, or was disconnected, before this
	// request was carried out.
	WCWRFlushErr = Status(abi.WCWRFlushErr)
	// WCMWBindErr: a memory window could not be bound.
	WCMWBindErr = Status(abi.WCMWBindErr)
	// WCBadRespErr: the peer's answer made no sense.
	WCBadRespErr = Status(abi.WCBadRespErr)
	// WCLocAccessErr: local access error during a write with immediate.
	WCLocAccessErr = Status(abi.WCLocAccessErr)
	// WCRemInvReqErr: the peer found the request invalid.
	WCRemInvReqErr = Status(abi.WCRemInvReqErr)
	// WCRemAccessErr: remote access error.
	WCRemAccessErr = Status(abi.WCRemAccessErr)
	// WCRemOpErr: the peer could not carry the operation out.
	WCRemOpErr = Status(abi.WCRemOpErr)
	// WCRetryExcErr: the peer did not answer.
	WCRetryExcErr = Status(abi.WCRetryExcErr)
	// WCRNRRetryExcErr: the peer had no receive posted, too often.
	WCRNRRetryExcErr = Status(abi.WCRNRRetryExcErr)
	// WCLocRDDViolErr is of a service that this package does not use.
	WCLocRDDViolErr = Status(abi.WCLocRDDViolErr)
	// WCRemInvRDReqErr is of a service that this package does not use.
	WCRemInvRDReqErr = Status(abi.WCRemInvRDReqErr)
	// WCRemAbortErr: the peer gave the operation up.
	WCRemAbortErr = Status(abi.WCRemAbortErr)
	// WCInvEECNErr is of a service that this package does not use.
	WCInvEECNErr = Status(abi.WCInvEECNErr)
	// WCInvEECStateErr is of a service that this package does not use.
	WCInvEECStateErr = Status(abi.WCInvEECStateErr)
	// WCFatalErr: the device failed.
	WCFatalErr = Status(abi.WCFatalErr)
	// WCRespTimeoutErr: the peer's answer took too long.
	WCRespTimeoutErr = Status(abi.WCRespTimeoutErr)
	// WCGeneralErr: general error.
	WCGeneralErr = Status(abi.WCGeneralErr)
)

// explanations says what a status means to the program that sees it, and
// where to look (IBA 10.10.3, 11.6.2).
var explanations = map[Status]string{
	WCSuccess:        "completed successfully",
	WCLocLenErr:      "the message is longer than the posted receive, or than the device allows",
	WCLocQPOpErr:     "the work request is malformed or the queue pair cannot carry it out",
	WCLocEECOpErr:    "end-to-end context error",
	WCLocProtErr:     "local protection error: a local buffer is not registered, out of bounds or lacks AccessLocalWrite",
	WCWRFlushErr:     "flushed: the queue pair had failed or was disconnected before; if one of its own requests failed, that one's completion says why (Linux 6.12's rdma_rxe flushes that one, too, if the fault is local)",
	WCMWBindErr:      "a memory window could not be bound",
	WCBadRespErr:     "the peer answered with something unexpected",
	WCLocAccessErr:   "local access error while receiving a write with immediate",
	WCRemInvReqErr:   "the peer found the request invalid: unsupported, misaligned or longer than its receive",
	WCRemAccessErr:   "remote access error: the peer refused the remote key, address range or permission",
	WCRemOpErr:       "the peer could not carry out the operation; its own completions say why",
	WCRetryExcErr:    "the peer did not answer in time: it is gone, unreachable, or its queue pair is not connected",
	WCRNRRetryExcErr: "the peer had no receive posted, for all retries",
	WCLocRDDViolErr:  "reliable datagram domain violation",
	WCRemInvRDReqErr: "invalid reliable datagram request",
	WCRemAbortErr:    "the peer aborted the operation",
	WCInvEECNErr:     "invalid end-to-end context number",
	WCInvEECStateErr: "invalid end-to-end context state",
	WCFatalErr:       "the device failed",
	WCRespTimeoutErr: "the peer's response took too long",
	WCGeneralErr:     "general error",
}

// Name is the verbs name without its prefix: "REM_ACCESS_ERR".
func (s Status) Name() string { return abi.WCStatus(s).String() }

// Explanation returns the status in words.
func (s Status) Explanation() string {
	if text, ok := explanations[s]; ok {
		return text
	}
	return "not a status that verbs knows"
}

// String is the name and the explanation.
func (s Status) String() string { return fmt.Sprintf("%s (%s)", s.Name(), s.Explanation()) }

// Opcode is the operation that a completion reports, with the kernel's numbers
// (enum ib_wc_opcode).
type Opcode uint32

const (
	WCOpSend        = Opcode(abi.WCSend)
	WCOpWrite       = Opcode(abi.WCRDMAWrite)
	WCOpRead        = Opcode(abi.WCRDMARead)
	WCOpCompareSwap = Opcode(abi.WCCompSwap)
	WCOpFetchAdd    = Opcode(abi.WCFetchAdd)
	WCOpBindMW      = Opcode(abi.WCBindMW)
	WCOpLocalInv    = Opcode(abi.WCLocalInv)
	// WCOpRecv completes a receive with a message.
	WCOpRecv = Opcode(abi.WCRecv)
	// WCOpRecvWriteImm completes a receive that a write with immediate used up.
	WCOpRecvWriteImm = Opcode(abi.WCRecvRDMAWithImm)
)

// String is the verbs name without its prefix: "RDMA_WRITE".
func (o Opcode) String() string { return abi.WCOpcode(o).String() }

// WCFlags names the other fields that a completion carries (enum ib_wc_flags).
type WCFlags uint32

const (
	// WCWithImm: Imm is valid.
	WCWithImm = WCFlags(abi.WCWithImm)
	// WCWithInv: InvRKey is valid.
	WCWithInv = WCFlags(abi.WCWithInvalidate)
)

func (f WCFlags) String() string { return abi.WCFlags(f).String() }

// WC is a work completion: struct rdma_wc of the founding document, and the
// fields that verbs adds to it.
type WC struct {
	// WRID is the id that the post returned, or that Post was given.
	WRID WRID
	// Status says how it ended. If it is not WCSuccess, ByteLen, Imm, InvRKey
	// and Flags are zero.
	Status Status
	// Opcode is the operation's type.
	Opcode Opcode
	// ByteLen is the number of bytes transferred.
	ByteLen uint64
	// Imm is the peer's immediate when Flags has WCWithImm.
	Imm uint32
	// InvRKey is the key that the peer's OpSendInv revoked when Flags has
	// WCWithInv.
	InvRKey uint32
	Flags   WCFlags
	// QP is the queue pair that the request was posted to.
	QP QP
	// SrcQPN is the number of the queue pair that sent the message, on
	// receives.
	SrcQPN uint32
	// VendorErr is the device's own reason, 0 if it has none.
	VendorErr uint32

	failure *failure // nil unless a device knows more of one that failed
}

// failure is what a device knows of a failed completion: WCError's fields.
type failure struct {
	cause error
	peer  Endpoint
}

// Err is nil for WCSuccess and a *WCError else.
func (wc WC) Err() error {
	if wc.Status == WCSuccess {
		return nil
	}
	e := &WCError{WC: wc}
	if f := wc.failure; f != nil {
		e.Cause, e.Peer, e.PeerQPN = f.cause, f.peer.Addr, f.peer.QPN
	}
	return e
}

func (wc WC) String() string {
	if wc.failure != nil && wc.failure.cause != nil {
		return fmt.Sprintf("qp %d wr %d: %v: %v", int(wc.QP), int64(wc.WRID), wc.Status, wc.failure.cause)
	}
	if wc.Status != WCSuccess {
		return fmt.Sprintf("qp %d wr %d: %v", int(wc.QP), int64(wc.WRID), wc.Status)
	}
	text := fmt.Sprintf("qp %d wr %d: %v, %d bytes", int(wc.QP), int64(wc.WRID), wc.Opcode, wc.ByteLen)
	if wc.Flags&WCWithImm != 0 {
		text += fmt.Sprintf(", immediate %#x", wc.Imm)
	}
	if wc.Flags&WCWithInv != 0 {
		text += fmt.Sprintf(", key %#x revoked", wc.InvRKey)
	}
	return text
}
