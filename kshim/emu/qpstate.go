package emu

import (
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// transition is which attributes a change of state needs and which it takes,
// per service, besides STATE itself.
type transition struct {
	valid               bool
	reqRC, reqUC, reqUD abi.QPAttrMask
	optRC, optUC, optUD abi.QPAttrMask
}

const (
	mState  = abi.QPMaskState
	mCur    = abi.QPMaskCurState
	mAccess = abi.QPMaskAccessFlags
	mPkey   = abi.QPMaskPkeyIndex
	mPort   = abi.QPMaskPort
	mQKey   = abi.QPMaskQKey
	mAV     = abi.QPMaskAV
	mAlt    = abi.QPMaskAltPath
	mMig    = abi.QPMaskPathMigState
	mRNR    = abi.QPMaskMinRNRTimer
	mSQPSN  = abi.QPMaskSQPSN

	mInit = mPkey | mPort | mAccess
	mRTR  = mAV | abi.QPMaskPathMTU | abi.QPMaskDestQPN | abi.QPMaskRQPSN
	mRTS  = abi.QPMaskTimeout | abi.QPMaskRetryCnt | abi.QPMaskRNRRetry | abi.QPMaskMaxQPRdAtomic
	mLive = mCur | mAccess | mAlt | mMig
)

const numStates = int(abi.QPSErr) + 1

// plain is a transition without attributes.
var plain = transition{valid: true}

// transitions is IBA 10.3.1 as Linux enforces it (verbs.c: qp_state_table,
// ib_modify_qp_is_ok), from and to.
var transitions = [numStates][numStates]transition{
	abi.QPSReset: {
		abi.QPSReset: plain,
		abi.QPSInit:  {valid: true, reqRC: mInit, reqUC: mInit, reqUD: mPkey | mPort | mQKey},
	},
	abi.QPSInit: {
		abi.QPSReset: plain,
		abi.QPSErr:   plain,
		abi.QPSInit:  {valid: true, optRC: mInit, optUC: mInit, optUD: mPkey | mPort | mQKey},
		abi.QPSRTR: {valid: true,
			reqRC: mRTR | abi.QPMaskMaxDestRdAtomic | mRNR, reqUC: mRTR,
			optRC: mAlt | mAccess | mPkey, optUC: mAlt | mAccess | mPkey, optUD: mPkey | mQKey},
	},
	abi.QPSRTR: {
		abi.QPSReset: plain,
		abi.QPSErr:   plain,
		abi.QPSRTS: {valid: true,
			reqRC: mRTS | mSQPSN, reqUC: mSQPSN, reqUD: mSQPSN,
			optRC: mLive | mRNR, optUC: mLive, optUD: mCur | mQKey},
	},
	abi.QPSRTS: {
		abi.QPSReset: plain,
		abi.QPSErr:   plain,
		abi.QPSRTS:   {valid: true, optRC: mLive | mRNR, optUC: mLive, optUD: mCur | mQKey},
		abi.QPSSQD: {valid: true,
			optRC: abi.QPMaskEnSQDAsyncNotify, optUC: abi.QPMaskEnSQDAsyncNotify, optUD: abi.QPMaskEnSQDAsyncNotify},
	},
	abi.QPSSQD: {
		abi.QPSReset: plain,
		abi.QPSErr:   plain,
		abi.QPSRTS:   {valid: true, optRC: mLive | mRNR, optUC: mLive, optUD: mCur | mQKey},
		abi.QPSSQD: {valid: true,
			optRC: mPort | mAV | mRTS | abi.QPMaskMaxDestRdAtomic | mAlt | mAccess | mPkey | mRNR | mMig,
			optUC: mAV | mAlt | mAccess | mPkey | mMig, optUD: mPkey | mQKey},
	},
	abi.QPSSQE: {
		abi.QPSReset: plain,
		abi.QPSErr:   plain,
		abi.QPSRTS:   {valid: true, optUC: mCur | mAccess, optUD: mCur | mQKey},
	},
	abi.QPSErr: {
		abi.QPSReset: plain,
		abi.QPSErr:   plain,
	},
}

func (t *transition) masks(typ abi.QPType) (req, opt abi.QPAttrMask) {
	switch typ {
	case abi.QPTRC:
		return t.reqRC, t.optRC
	case abi.QPTUC:
		return t.reqUC, t.optUC
	default:
		return t.reqUD, t.optUD
	}
}

// checkTransition is ib_modify_qp_is_ok.
func checkTransition(from, to abi.QPState, typ abi.QPType, mask abi.QPAttrMask) error {
	if mask&mCur != 0 && (from < abi.QPSRTR || from > abi.QPSSQE) {
		return fail(syscall.EINVAL, "CUR_STATE says %v, which no client can know", from)
	}
	t := &transitions[from][to]
	if !t.valid {
		return fail(syscall.EINVAL, "%v queue pair goes not from %v to %v", typ, from, to)
	}
	req, opt := t.masks(typ)
	if missing := req &^ mask; missing != 0 {
		return fail(syscall.EINVAL, "%v to %v of %v also needs %v", from, to, typ, missing)
	}
	if extra := mask &^ (req | opt | mState); extra != 0 {
		return fail(syscall.EINVAL, "%v to %v of %v takes no %v", from, to, typ, extra)
	}
	return nil
}
