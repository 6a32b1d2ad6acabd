//go:build linux || darwin

package conform

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
)

// commandExamples has one for each supported command.
var commandExamples = map[string]*commandExample{
	"GET_CONTEXT": {
		opens: true, request: func(*stand) abi.Struct { return &abi.GetContext{} },
		wrong: []wrongState{{what: "a second time", prepare: func(s *stand) { s.context() },
			request: func(*stand) abi.Struct { return &abi.GetContext{} }}},
	},
	"QUERY_DEVICE": {request: func(*stand) abi.Struct { return &abi.QueryDevice{} }},
	"QUERY_PORT": {
		request: func(*stand) abi.Struct { return &abi.QueryPort{PortNum: 1} },
		wrong: []wrongState{
			{what: "port 0", request: func(*stand) abi.Struct { return &abi.QueryPort{} }},
			{what: "port 2", request: func(*stand) abi.Struct { return &abi.QueryPort{PortNum: 2} }},
		},
	},
	"ALLOC_PD": {request: func(*stand) abi.Struct { return &abi.AllocPD{} }},
	"DEALLOC_PD": {
		request: func(s *stand) abi.Struct { return &abi.DeallocPD{PDHandle: s.freePD} },
		handles: []handleField{{0, abi.ObjectPD}},
		wrong: []wrongState{
			{what: "in use", request: func(s *stand) abi.Struct { return &abi.DeallocPD{PDHandle: s.pd} }},
			{what: "twice", prepare: func(s *stand) {
				s.r.must(s.command(abi.CmdDeallocPD, &abi.DeallocPD{PDHandle: s.freePD}, abi.DeallocPDSize, nil, 0, nil, 0))
			}, request: func(s *stand) abi.Struct { return &abi.DeallocPD{PDHandle: s.freePD} }},
		},
	},
	"CREATE_AH": {
		request: func(s *stand) abi.Struct { return s.ahRequest() }, hw: abi.RXECreateAHRespSize,
		handles: []handleField{{16, abi.ObjectPD}},
		wrong: []wrongState{
			{what: "port 2", request: wrongPath(func(a *abi.AHAttr) { a.PortNum = 2 })},
			{what: "port 0", request: wrongPath(func(a *abi.AHAttr) { a.PortNum = 0 })},
			{what: "no global route", request: wrongPath(func(a *abi.AHAttr) { a.IsGlobal = 0 })},
			{what: "an empty GID index", request: wrongPath(func(a *abi.AHAttr) { a.SGIDIndex = 200 })},
		},
	},
	"DESTROY_AH": {
		request: func(s *stand) abi.Struct { return &abi.DestroyAH{AHHandle: s.freeAH} },
		handles: []handleField{{0, abi.ObjectAH}},
		wrong: []wrongState{{what: "twice", prepare: func(s *stand) {
			s.r.must(s.command(abi.CmdDestroyAH, &abi.DestroyAH{AHHandle: s.freeAH}, abi.DestroyAHSize, nil, 0, nil, 0))
		}, request: func(s *stand) abi.Struct { return &abi.DestroyAH{AHHandle: s.freeAH} }}},
	},
	"ATTACH_MCAST": {
		request: func(s *stand) abi.Struct { return &abi.AttachMcast{QPHandle: s.ud, GID: group.As16()} },
		handles: []handleField{{16, abi.ObjectQP}},
		wrong: []wrongState{
			{what: "no group", request: func(s *stand) abi.Struct { return &abi.AttachMcast{QPHandle: s.ud, GID: s.path.DGID} }},
			{what: "of a connection", request: func(s *stand) abi.Struct { return &abi.AttachMcast{QPHandle: s.qp, GID: group.As16()} }},
		},
	},
	"DETACH_MCAST": {
		request: func(s *stand) abi.Struct { return &abi.DetachMcast{QPHandle: s.ud, GID: group.As16()} },
		handles: []handleField{{16, abi.ObjectQP}},
		ready: func(s *stand) {
			attach := &abi.AttachMcast{QPHandle: s.ud, GID: group.As16()}
			s.r.must(s.command(abi.CmdAttachMcast, attach, abi.AttachMcastSize, nil, 0, nil, 0))
		},
		wrong: []wrongState{
			{what: "another group", request: func(s *stand) abi.Struct { return &abi.DetachMcast{QPHandle: s.ud, GID: group.Next().As16()} }},
			{what: "another LID", request: func(s *stand) abi.Struct { return &abi.DetachMcast{QPHandle: s.ud, GID: group.As16(), Mlid: 7} }},
		},
	},
	"ALLOC_MW": {
		request: func(s *stand) abi.Struct { return s.mwRequest(1) },
		handles: []handleField{{8, abi.ObjectPD}},
		wrong: []wrongState{
			{what: "type 2", request: func(s *stand) abi.Struct { return s.mwRequest(2) }},
			{what: "type 0", request: func(s *stand) abi.Struct { return s.mwRequest(0) }},
			{what: "type 77", request: func(s *stand) abi.Struct { return s.mwRequest(77) }},
		},
	},
	"DEALLOC_MW": {
		request: func(s *stand) abi.Struct { return &abi.DeallocMW{MWHandle: s.mw} },
		handles: []handleField{{0, abi.ObjectMW}},
		wrong: []wrongState{{what: "twice", prepare: func(s *stand) {
			s.r.must(s.command(abi.CmdDeallocMW, &abi.DeallocMW{MWHandle: s.mw}, abi.DeallocMWSize, nil, 0, nil, 0))
		}, request: func(s *stand) abi.Struct { return &abi.DeallocMW{MWHandle: s.mw} }}},
	},
	"REG_MR": {
		request: func(s *stand) abi.Struct { return s.mrRequest() },
		handles: []handleField{{32, abi.ObjectPD}},
		wrong: []wrongState{
			{what: "unlike within the page", request: wrongRegion(func(m *abi.RegMR) { m.HCAVA++ })},
			{what: "REMOTE_WRITE alone", request: wrongRegion(func(m *abi.RegMR) { m.AccessFlags = abi.AccessRemoteWrite })},
			{what: "unknown access", request: wrongRegion(func(m *abi.RegMR) { m.AccessFlags |= 1 << 19 })},
			{what: "on demand", request: wrongRegion(func(m *abi.RegMR) { m.AccessFlags |= abi.AccessOnDemand })},
			{what: "empty", request: wrongRegion(func(m *abi.RegMR) { m.Length = 0 })},
			{what: "wraps", request: wrongRegion(func(m *abi.RegMR) { m.Length = ^uint64(0) })},
			{what: "nowhere", request: wrongRegion(func(m *abi.RegMR) { m.Start, m.HCAVA = 0x1000, 0x1000 })},
		},
	},
	"REREG_MR": {
		rxeLacks: true,
		request: func(s *stand) abi.Struct {
			return &abi.ReregMR{
				MRHandle: s.mr, Flags: abi.ReregSupported, Start: s.buf + 4096, Length: 4096, HCAVA: s.buf, PDHandle: s.freePD,
				AccessFlags: allAccess,
			}
		},
		handles: []handleField{{8, abi.ObjectMR}, {40, abi.ObjectPD}},
	},
	"DEREG_MR": {
		request: func(s *stand) abi.Struct { return &abi.DeregMR{MRHandle: s.freeMR} },
		handles: []handleField{{0, abi.ObjectMR}},
		wrong: []wrongState{{what: "twice", prepare: func(s *stand) {
			s.r.must(s.command(abi.CmdDeregMR, &abi.DeregMR{MRHandle: s.freeMR}, abi.DeregMRSize, nil, 0, nil, 0))
		}, request: func(s *stand) abi.Struct { return &abi.DeregMR{MRHandle: s.freeMR} }}},
	},
	"CREATE_COMP_CHANNEL": {request: func(*stand) abi.Struct { return &abi.CreateCompChannel{} }},
	"CREATE_CQ": {
		request: func(s *stand) abi.Struct { return &abi.CreateCQ{CQE: 4, CompChannel: s.channel} }, hw: abi.RXECreateCQRespSize,
		wrong: []wrongState{
			{what: "no entries", request: func(*stand) abi.Struct { return &abi.CreateCQ{CompChannel: -1} }},
			{what: "too many", request: func(*stand) abi.Struct { return &abi.CreateCQ{CQE: 32768, CompChannel: -1} }},
			{what: "vector", request: func(*stand) abi.Struct { return &abi.CreateCQ{CQE: 4, CompVector: 4096, CompChannel: -1} }},
			{what: "a channel that is none", request: func(s *stand) abi.Struct { return &abi.CreateCQ{CQE: 4, CompChannel: s.async} }},
		},
	},
	"RESIZE_CQ": {
		request: func(s *stand) abi.Struct { return &abi.ResizeCQ{CQHandle: s.cq, CQE: 100} }, hw: abi.RXEResizeCQRespSize,
		handles: []handleField{{8, abi.ObjectCQ}},
		wrong: []wrongState{
			{what: "no entries", request: func(s *stand) abi.Struct { return &abi.ResizeCQ{CQHandle: s.cq} }},
			{what: "too many", request: func(s *stand) abi.Struct { return &abi.ResizeCQ{CQHandle: s.cq, CQE: 32768} }},
			{what: "negative", request: func(s *stand) abi.Struct { return &abi.ResizeCQ{CQHandle: s.cq, CQE: 1 << 31} }},
		},
	},
	"DESTROY_CQ": {
		request: func(s *stand) abi.Struct { return &abi.DestroyCQ{CQHandle: s.freeCQ} },
		handles: []handleField{{8, abi.ObjectCQ}},
		wrong: []wrongState{
			{what: "in use", request: func(s *stand) abi.Struct { return &abi.DestroyCQ{CQHandle: s.cq} }},
		},
	},
	"REQ_NOTIFY_CQ": {
		request: func(s *stand) abi.Struct { return &abi.ReqNotifyCQ{CQHandle: s.cq} },
		handles: []handleField{{0, abi.ObjectCQ}},
	},
	"CREATE_QP": {
		request: func(s *stand) abi.Struct { return s.qpRequest() }, hw: abi.RXECreateQPRespSize,
		handles: []handleField{{16, abi.ObjectPD}, {20, abi.ObjectCQ}, {24, abi.ObjectCQ}},
		wrong: []wrongState{
			{what: "a type that is none", request: wrongPair(func(q *abi.CreateQP) { q.QPType = 7 })},
			{what: "too many pieces", request: wrongPair(func(q *abi.CreateQP) { q.MaxSendSGE = 33 })},
			{what: "too many requests", request: wrongPair(func(q *abi.CreateQP) { q.MaxSendWR = 1<<20 + 1 })},
			{what: "too much inline", request: wrongPair(func(q *abi.CreateQP) { q.MaxInlineData = 1 << 20 })},
			{what: "a shared receive queue", request: wrongPair(func(q *abi.CreateQP) { q.IsSRQ, q.SRQHandle = 1, 0x7fff0000 })},
			{what: "a shared receive queue that is there, and too many receives", request: func(s *stand) abi.Struct {
				q := s.qpRequest()
				q.IsSRQ, q.SRQHandle, q.MaxRecvWR, q.MaxRecvSGE = 1, s.srq, 1<<20+1, 33
				return q
			}},
		},
	},
	"CREATE_SRQ": {
		request: func(s *stand) abi.Struct { return s.srqRequest() }, hw: abi.RXECreateSRQRespSize,
		handles: []handleField{{16, abi.ObjectPD}},
		wrong: []wrongState{
			{what: "no receives", request: wrongShared(func(q *abi.CreateSRQ) { q.MaxWR = 0 })},
			{what: "too many receives", request: wrongShared(func(q *abi.CreateSRQ) { q.MaxWR = 1<<20 + 1 })},
			{what: "no pieces", request: wrongShared(func(q *abi.CreateSRQ) { q.MaxSGE = 0 })},
			{what: "the most pieces", request: wrongShared(func(q *abi.CreateSRQ) { q.MaxSGE = 27 })},
			{what: "too many pieces", request: wrongShared(func(q *abi.CreateSRQ) { q.MaxSGE = 28 })},
			{what: "a limit above the size", request: wrongShared(func(q *abi.CreateSRQ) { q.SRQLimit = 100 })},
		},
	},
	"CREATE_XSRQ": {
		request: func(s *stand) abi.Struct { return s.typedRequest(abi.SRQTBasic) }, hw: abi.RXECreateSRQRespSize,
		handles: []handleField{{20, abi.ObjectPD}},
		wrong: []wrongState{
			{what: "XRC", request: func(s *stand) abi.Struct { return s.typedRequest(abi.SRQTXRC) }},
			{what: "tag matching", request: func(s *stand) abi.Struct { return s.typedRequest(abi.SRQTTM) }},
			{what: "a type that is none", request: func(s *stand) abi.Struct { return s.typedRequest(7) }},
		},
	},
	"MODIFY_SRQ": {
		request: func(s *stand) abi.Struct { return s.limitRequest(1) }, hwIn: abi.RXEModifySRQSize,
		handles: []handleField{{0, abi.ObjectSRQ}},
		wrong: []wrongState{
			{what: "no limit", request: func(s *stand) abi.Struct { return s.limitRequest(0) }},
			{what: "the largest limit", request: func(s *stand) abi.Struct { return s.limitRequest(7) }},
			{what: "a limit above the size", request: func(s *stand) abi.Struct { return s.limitRequest(8) }},
			{what: "nothing", request: func(s *stand) abi.Struct { return &abi.ModifySRQ{SRQHandle: s.srq} }},
			{what: "something unknown", request: func(s *stand) abi.Struct { return &abi.ModifySRQ{SRQHandle: s.srq, AttrMask: 1 << 7} }},
		},
	},
	"QUERY_SRQ": {
		request: func(s *stand) abi.Struct { return &abi.QuerySRQ{SRQHandle: s.srq} },
		handles: []handleField{{8, abi.ObjectSRQ}},
	},
	"DESTROY_SRQ": {
		request: func(s *stand) abi.Struct { return &abi.DestroySRQ{SRQHandle: s.srq} },
		handles: []handleField{{8, abi.ObjectSRQ}},
		wrong: []wrongState{
			{what: "in use", prepare: func(s *stand) { s.sharing() },
				request: func(s *stand) abi.Struct { return &abi.DestroySRQ{SRQHandle: s.srq} }},
		},
	},
	"QUERY_QP": {
		request: func(s *stand) abi.Struct { return &abi.QueryQP{QPHandle: s.qp, AttrMask: 1} },
		handles: []handleField{{8, abi.ObjectQP}},
	},
	"MODIFY_QP": {
		request: func(s *stand) abi.Struct { return s.initRequest() },
		handles: []handleField{{64, abi.ObjectQP}},
		wrong: []wrongState{
			{what: "RESET to RTS", request: wrongChange(func(m *abi.ModifyQP) { m.QPState, m.AttrMask = abi.QPSRTS, maskRTS })},
			{what: "something missing", request: wrongChange(func(m *abi.ModifyQP) { m.AttrMask &^= abi.QPMaskPort })},
			{what: "something more", request: wrongChange(func(m *abi.ModifyQP) { m.AttrMask |= abi.QPMaskTimeout })},
			{what: "unknown attribute", request: wrongChange(func(m *abi.ModifyQP) { m.AttrMask |= 1 << 30 })},
			{what: "port 2", request: wrongChange(func(m *abi.ModifyQP) { m.PortNum = 2 })},
		},
	},
	"DESTROY_QP": {
		request: func(s *stand) abi.Struct { return &abi.DestroyQP{QPHandle: s.qp} },
		handles: []handleField{{8, abi.ObjectQP}},
		wrong: []wrongState{{what: "twice", prepare: func(s *stand) {
			s.r.must(s.command(abi.CmdDestroyQP, &abi.DestroyQP{QPHandle: s.qp}, abi.DestroyQPSize, &abi.DestroyQPResp{}, abi.DestroyQPRespSize, nil, 0))
		}, request: func(s *stand) abi.Struct { return &abi.DestroyQP{QPHandle: s.qp} }}},
	},
	"POST_SEND": {
		request: func(s *stand) abi.Struct { return &abi.PostSend{QPHandle: s.qp, WQESize: abi.SendWRSize} },
		handles: []handleField{{8, abi.ObjectQP}},
		ready:   func(s *stand) { s.inRTS() },
		wrong: []wrongState{
			{what: "in RESET", request: func(s *stand) abi.Struct { return &abi.PostSend{QPHandle: s.qp, WQESize: abi.SendWRSize} }},
			{what: "small requests", prepare: func(s *stand) { s.inRTS() },
				request: func(s *stand) abi.Struct { return &abi.PostSend{QPHandle: s.qp, WQESize: abi.SendWRSize - 4} }},
			{what: "more requests than there are", prepare: func(s *stand) { s.inRTS() },
				request: func(s *stand) abi.Struct { return &abi.PostSend{QPHandle: s.qp, WQESize: abi.SendWRSize, WRCount: 1} }},
		},
	},
	"EX_QUERY_DEVICE": {
		request: func(*stand) abi.Struct { return octets(make([]byte, 8)) },
		wrong: []wrongState{
			{what: "comp_mask", request: func(*stand) abi.Struct { return octets{1, 0, 0, 0, 0, 0, 0, 0} }},
			{what: "reserved", request: func(*stand) abi.Struct { return octets{0, 0, 0, 0, 1, 0, 0, 0} }},
		},
	},
	"EX_CREATE_CQ": {
		request: func(s *stand) abi.Struct { return &abi.ExCreateCQ{CQE: 4, CompChannel: s.channel} }, hw: abi.RXECreateCQRespSize,
		wrong: []wrongState{
			{what: "comp_mask", request: func(*stand) abi.Struct { return &abi.ExCreateCQ{CQE: 4, CompChannel: -1, CompMask: 1} }},
			{what: "reserved", request: func(*stand) abi.Struct { return &abi.ExCreateCQ{CQE: 4, CompChannel: -1, Reserved: 1} }},
			{what: "flags", request: func(*stand) abi.Struct { return &abi.ExCreateCQ{CQE: 4, CompChannel: -1, Flags: 1} }},
			{what: "no entries", request: func(*stand) abi.Struct { return &abi.ExCreateCQ{CompChannel: -1} }},
			{what: "a channel that is none", request: func(*stand) abi.Struct { return &abi.ExCreateCQ{CQE: 4, CompChannel: 0x7ff} }},
		},
	},
	"EX_CREATE_QP": {
		request: func(s *stand) abi.Struct { return s.exQPRequest() }, hw: abi.RXECreateQPRespSize,
		handles: []handleField{{8, abi.ObjectPD}, {12, abi.ObjectCQ}, {16, abi.ObjectCQ}},
		wrong: []wrongState{
			{what: "comp_mask", request: wrongExPair(func(q *abi.ExCreateQP) { q.CompMask = 2 })},
			{what: "reserved", request: wrongExPair(func(q *abi.ExCreateQP) { q.Reserved = 1 })},
			{what: "an indirection table", request: wrongExPair(func(q *abi.ExCreateQP) { q.CompMask, q.RWQIndTblHandle = 1, 0x7fff0000 })},
			{what: "a flag that rxe lacks", request: wrongExPair(func(q *abi.ExCreateQP) { q.CreateFlags = 1 << 1 })},
			{what: "an unknown flag", request: wrongExPair(func(q *abi.ExCreateQP) { q.CreateFlags = 1 << 5 })},
		},
	},
	"EX_MODIFY_QP": {
		request: func(s *stand) abi.Struct { return &abi.ExModifyQP{Base: *s.initRequest()} },
		handles: []handleField{{64, abi.ObjectQP}},
		wrong: []wrongState{
			{what: "rate limit", request: func(s *stand) abi.Struct {
				m := &abi.ExModifyQP{Base: *s.initRequest()}
				m.Base.AttrMask |= 1 << 25
				return m
			}},
			{what: "unknown attribute", request: func(s *stand) abi.Struct {
				m := &abi.ExModifyQP{Base: *s.initRequest()}
				m.Base.AttrMask |= 1 << 30
				return m
			}},
		},
	},
}

// inRTS takes the stand's queue pair to RTS, once.
func (s *stand) inRTS() {
	var resp abi.QueryQPResp
	s.r.must(s.command(abi.CmdQueryQP, &abi.QueryQP{QPHandle: s.qp, AttrMask: 1}, abi.QueryQPSize, &resp, abi.QueryQPRespSize, nil, 0))
	if resp.QPState == abi.QPSReset {
		s.toRTS()
	}
}

func (s *stand) exQPRequest() *abi.ExCreateQP {
	q := s.qpRequest()
	return &abi.ExCreateQP{
		UserHandle: q.UserHandle, PDHandle: q.PDHandle, SendCQHandle: q.SendCQHandle, RecvCQHandle: q.RecvCQHandle,
		MaxSendWR: q.MaxSendWR, MaxRecvWR: q.MaxRecvWR, MaxSendSGE: q.MaxSendSGE, MaxRecvSGE: q.MaxRecvSGE, QPType: q.QPType,
	}
}

func wrongPath(change func(*abi.AHAttr)) func(*stand) abi.Struct {
	return func(s *stand) abi.Struct {
		a := s.ahRequest()
		change(&a.Attr)
		return a
	}
}

func wrongRegion(change func(*abi.RegMR)) func(*stand) abi.Struct {
	return func(s *stand) abi.Struct {
		m := s.mrRequest()
		change(m)
		return m
	}
}

func wrongPair(change func(*abi.CreateQP)) func(*stand) abi.Struct {
	return func(s *stand) abi.Struct {
		q := s.qpRequest()
		change(q)
		return q
	}
}

func wrongExPair(change func(*abi.ExCreateQP)) func(*stand) abi.Struct {
	return func(s *stand) abi.Struct {
		q := s.exQPRequest()
		change(q)
		return q
	}
}

func wrongChange(change func(*abi.ModifyQP)) func(*stand) abi.Struct {
	return func(s *stand) abi.Struct {
		m := s.initRequest()
		change(m)
		return m
	}
}

func (s *stand) typedRequest(t abi.SRQType) *abi.CreateXSRQ {
	return &abi.CreateXSRQ{UserHandle: 8, SRQType: t, PDHandle: s.pd, MaxWR: 4, MaxSGE: 1, XRCDHandle: 0x7fff0000, CQHandle: s.cq}
}

func (s *stand) limitRequest(limit uint32) *abi.ModifySRQ {
	return &abi.ModifySRQ{SRQHandle: s.srq, AttrMask: abi.SRQMaskLimit, SRQLimit: limit}
}

// sharing makes a queue pair that takes the shared receives.
func (s *stand) sharing() {
	s.r.Helper()
	q := s.qpRequest()
	q.IsSRQ, q.SRQHandle = 1, s.srq
	var resp abi.CreateQPResp
	var uhw abi.RXECreateQPResp
	s.r.must(s.command(abi.CmdCreateQP, q, abi.CreateQPSize, &resp, abi.CreateQPRespSize, &uhw, abi.RXECreateQPRespSize))
}

// wrongShared is the good request of CREATE_SRQ, spoilt.
func wrongShared(spoil func(*abi.CreateSRQ)) func(s *stand) abi.Struct {
	return func(s *stand) abi.Struct {
		q := s.srqRequest()
		spoil(q)
		return q
	}
}
