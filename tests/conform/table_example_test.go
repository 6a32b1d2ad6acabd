//go:build linux || darwin

package conform

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
)

// commandCases has what there is to ask beside the examples of abitest.
var commandCases = map[string]*commandCase{
	"GET_CONTEXT": {
		opens: true,
		wrong: []wrongState{{what: "a second time", prepare: func(s *stand) { s.context() },
			request: func(*stand) abi.Struct { return &abi.GetContext{} }}},
	},
	"QUERY_PORT": {
		wrong: []wrongState{
			{what: "port 0", request: func(*stand) abi.Struct { return &abi.QueryPort{} }},
			{what: "port 2", request: func(*stand) abi.Struct { return &abi.QueryPort{PortNum: 2} }},
		},
	},
	"DEALLOC_PD": {
		wrong: []wrongState{
			{what: "in use", request: func(s *stand) abi.Struct { return &abi.DeallocPD{PDHandle: s.PD} }},
			twice(abi.CmdDeallocPD, func(s *stand) abi.Struct { return &abi.DeallocPD{PDHandle: s.FreePD} }),
		},
	},
	"CREATE_AH": {
		wrong: []wrongState{
			{what: "port 2", request: wrongPath(func(a *abi.AHAttr) { a.PortNum = 2 })},
			{what: "port 0", request: wrongPath(func(a *abi.AHAttr) { a.PortNum = 0 })},
			{what: "no global route", request: wrongPath(func(a *abi.AHAttr) { a.IsGlobal = 0 })},
			{what: "an empty GID index", request: wrongPath(func(a *abi.AHAttr) { a.SGIDIndex = 200 })},
		},
	},
	"DESTROY_AH": {
		wrong: []wrongState{twice(abi.CmdDestroyAH, func(s *stand) abi.Struct { return &abi.DestroyAH{AHHandle: s.FreeAH} })},
	},
	"ATTACH_MCAST": {
		wrong: []wrongState{
			{what: "no group", request: func(s *stand) abi.Struct { return &abi.AttachMcast{QPHandle: s.UD, GID: s.path.DGID} }},
			{what: "of a connection", request: func(s *stand) abi.Struct { return &abi.AttachMcast{QPHandle: s.QP, GID: group.As16()} }},
		},
	},
	"DETACH_MCAST": {
		ready: func(s *stand) {
			s.r.must(s.call(abi.CmdAttachMcast, s.AttachMcast()))
		},
		wrong: []wrongState{
			{what: "another group", request: func(s *stand) abi.Struct { return &abi.DetachMcast{QPHandle: s.UD, GID: group.Next().As16()} }},
			{what: "another LID", request: func(s *stand) abi.Struct { return &abi.DetachMcast{QPHandle: s.UD, GID: group.As16(), Mlid: 7} }},
		},
	},
	"ALLOC_MW": {
		wrong: []wrongState{
			{what: "type 2", request: func(s *stand) abi.Struct { return &abi.AllocMW{PDHandle: s.PD, MWType: 2} }},
			{what: "type 0", request: func(s *stand) abi.Struct { return &abi.AllocMW{PDHandle: s.PD, MWType: 0} }},
			{what: "type 77", request: func(s *stand) abi.Struct { return &abi.AllocMW{PDHandle: s.PD, MWType: 77} }},
		},
	},
	"DEALLOC_MW": {
		wrong: []wrongState{twice(abi.CmdDeallocMW, func(s *stand) abi.Struct { return &abi.DeallocMW{MWHandle: s.MW} })},
	},
	"REG_MR": {
		wrong: []wrongState{
			{what: "unlike within the page", request: spoilt((*stand).RegMR, func(m *abi.RegMR) { m.HCAVA++ })},
			{what: "REMOTE_WRITE alone", request: spoilt((*stand).RegMR, func(m *abi.RegMR) { m.AccessFlags = abi.AccessRemoteWrite })},
			{what: "unknown access", request: spoilt((*stand).RegMR, func(m *abi.RegMR) { m.AccessFlags |= 1 << 19 })},
			{what: "on demand", request: spoilt((*stand).RegMR, func(m *abi.RegMR) { m.AccessFlags |= abi.AccessOnDemand })},
			{what: "empty", request: spoilt((*stand).RegMR, func(m *abi.RegMR) { m.Length = 0 })},
			{what: "wraps", request: spoilt((*stand).RegMR, func(m *abi.RegMR) { m.Length = ^uint64(0) })},
			{what: "nowhere", request: spoilt((*stand).RegMR, func(m *abi.RegMR) { m.Start, m.HCAVA = 0x1000, 0x1000 })},
		},
	},
	"REREG_MR": {rxeLacks: true},
	"DEREG_MR": {
		wrong: []wrongState{twice(abi.CmdDeregMR, func(s *stand) abi.Struct { return &abi.DeregMR{MRHandle: s.FreeMR} })},
	},
	"CREATE_CQ": {
		wrong: []wrongState{
			{what: "no entries", request: func(*stand) abi.Struct { return &abi.CreateCQ{CompChannel: -1} }},
			{what: "too many", request: func(*stand) abi.Struct { return &abi.CreateCQ{CQE: 32768, CompChannel: -1} }},
			{what: "vector", request: func(*stand) abi.Struct { return &abi.CreateCQ{CQE: 4, CompVector: 4096, CompChannel: -1} }},
			{what: "a channel that is none", request: func(s *stand) abi.Struct { return &abi.CreateCQ{CQE: 4, CompChannel: s.async} }},
		},
	},
	"RESIZE_CQ": {
		wrong: []wrongState{
			{what: "no entries", request: func(s *stand) abi.Struct { return &abi.ResizeCQ{CQHandle: s.CQ} }},
			{what: "too many", request: func(s *stand) abi.Struct { return &abi.ResizeCQ{CQHandle: s.CQ, CQE: 32768} }},
			{what: "negative", request: func(s *stand) abi.Struct { return &abi.ResizeCQ{CQHandle: s.CQ, CQE: 1 << 31} }},
		},
	},
	"DESTROY_CQ": {
		wrong: []wrongState{
			{what: "in use", request: func(s *stand) abi.Struct { return &abi.DestroyCQ{CQHandle: s.CQ} }},
		},
	},
	"CREATE_QP": {
		wrong: []wrongState{
			{what: "a type that is none", request: spoilt((*stand).CreateQP, func(q *abi.CreateQP) { q.QPType = 7 })},
			{what: "too many pieces", request: spoilt((*stand).CreateQP, func(q *abi.CreateQP) { q.MaxSendSGE = 33 })},
			{what: "too many requests", request: spoilt((*stand).CreateQP, func(q *abi.CreateQP) { q.MaxSendWR = 1<<20 + 1 })},
			{what: "too much inline", request: spoilt((*stand).CreateQP, func(q *abi.CreateQP) { q.MaxInlineData = 1 << 20 })},
			{what: "a shared receive queue", request: spoilt((*stand).CreateQP, func(q *abi.CreateQP) { q.IsSRQ, q.SRQHandle = 1, 0x7fff0000 })},
			{what: "a shared receive queue that is there, and too many receives", request: func(s *stand) abi.Struct {
				q := s.CreateQP()
				q.IsSRQ, q.SRQHandle, q.MaxRecvWR, q.MaxRecvSGE = 1, s.SRQ, 1<<20+1, 33
				return q
			}},
		},
	},
	"CREATE_SRQ": {
		wrong: []wrongState{
			{what: "no receives", request: spoilt((*stand).CreateSRQ, func(q *abi.CreateSRQ) { q.MaxWR = 0 })},
			{what: "too many receives", request: spoilt((*stand).CreateSRQ, func(q *abi.CreateSRQ) { q.MaxWR = 1<<20 + 1 })},
			{what: "no pieces", request: spoilt((*stand).CreateSRQ, func(q *abi.CreateSRQ) { q.MaxSGE = 0 })},
			{what: "the most pieces", request: spoilt((*stand).CreateSRQ, func(q *abi.CreateSRQ) { q.MaxSGE = 27 })},
			{what: "too many pieces", request: spoilt((*stand).CreateSRQ, func(q *abi.CreateSRQ) { q.MaxSGE = 28 })},
			{what: "a limit above the size", request: spoilt((*stand).CreateSRQ, func(q *abi.CreateSRQ) { q.SRQLimit = 100 })},
		},
	},
	"CREATE_XSRQ": {
		wrong: []wrongState{
			{what: "XRC", request: func(s *stand) abi.Struct { return s.CreateXSRQ(abi.SRQTXRC) }},
			{what: "tag matching", request: func(s *stand) abi.Struct { return s.CreateXSRQ(abi.SRQTTM) }},
			{what: "a type that is none", request: func(s *stand) abi.Struct { return s.CreateXSRQ(7) }},
		},
	},
	"MODIFY_SRQ": {
		hwIn: abi.RXEModifySRQSize,
		wrong: []wrongState{
			{what: "no limit", request: func(s *stand) abi.Struct { return s.ModifySRQ(0) }},
			{what: "the largest limit", request: func(s *stand) abi.Struct { return s.ModifySRQ(7) }},
			{what: "a limit above the size", request: func(s *stand) abi.Struct { return s.ModifySRQ(8) }},
			{what: "nothing", request: func(s *stand) abi.Struct { return &abi.ModifySRQ{SRQHandle: s.SRQ} }},
			{what: "something unknown", request: func(s *stand) abi.Struct { return &abi.ModifySRQ{SRQHandle: s.SRQ, AttrMask: 1 << 7} }},
		},
	},
	"DESTROY_SRQ": {
		wrong: []wrongState{
			{what: "in use", prepare: func(s *stand) { s.sharing() },
				request: func(s *stand) abi.Struct { return &abi.DestroySRQ{SRQHandle: s.SRQ} }},
		},
	},
	"MODIFY_QP": {
		wrong: []wrongState{
			{what: "RESET to RTS", request: spoilt((*stand).ModifyQP, func(m *abi.ModifyQP) { m.QPState, m.AttrMask = abi.QPSRTS, maskRTS })},
			{what: "something missing", request: spoilt((*stand).ModifyQP, func(m *abi.ModifyQP) { m.AttrMask &^= abi.QPMaskPort })},
			{what: "something more", request: spoilt((*stand).ModifyQP, func(m *abi.ModifyQP) { m.AttrMask |= abi.QPMaskTimeout })},
			{what: "unknown attribute", request: spoilt((*stand).ModifyQP, func(m *abi.ModifyQP) { m.AttrMask |= 1 << 30 })},
			{what: "port 2", request: spoilt((*stand).ModifyQP, func(m *abi.ModifyQP) { m.PortNum = 2 })},
		},
	},
	"DESTROY_QP": {
		wrong: []wrongState{twice(abi.CmdDestroyQP, func(s *stand) abi.Struct { return &abi.DestroyQP{QPHandle: s.QP} })},
	},
	"POST_SEND": {
		ready: func(s *stand) { s.inRTS() },
		wrong: []wrongState{
			{what: "in RESET", request: func(s *stand) abi.Struct { return &abi.PostSend{QPHandle: s.QP, WQESize: abi.SendWRSize} }},
			{what: "small requests", prepare: func(s *stand) { s.inRTS() },
				request: func(s *stand) abi.Struct { return &abi.PostSend{QPHandle: s.QP, WQESize: abi.SendWRSize - 4} }},
			{what: "more requests than there are", prepare: func(s *stand) { s.inRTS() },
				request: func(s *stand) abi.Struct { return &abi.PostSend{QPHandle: s.QP, WQESize: abi.SendWRSize, WRCount: 1} }},
		},
	},
	"EX_QUERY_DEVICE": {
		wrong: []wrongState{
			{what: "comp_mask", request: func(*stand) abi.Struct { return octets{1, 0, 0, 0, 0, 0, 0, 0} }},
			{what: "reserved", request: func(*stand) abi.Struct { return octets{0, 0, 0, 0, 1, 0, 0, 0} }},
		},
	},
	"EX_CREATE_CQ": {
		wrong: []wrongState{
			{what: "comp_mask", request: func(*stand) abi.Struct { return &abi.ExCreateCQ{CQE: 4, CompChannel: -1, CompMask: 1} }},
			{what: "reserved", request: func(*stand) abi.Struct { return &abi.ExCreateCQ{CQE: 4, CompChannel: -1, Reserved: 1} }},
			{what: "flags", request: func(*stand) abi.Struct { return &abi.ExCreateCQ{CQE: 4, CompChannel: -1, Flags: 1} }},
			{what: "no entries", request: func(*stand) abi.Struct { return &abi.ExCreateCQ{CompChannel: -1} }},
			{what: "a channel that is none", request: func(*stand) abi.Struct { return &abi.ExCreateCQ{CQE: 4, CompChannel: 0x7ff} }},
		},
	},
	"EX_CREATE_QP": {
		wrong: []wrongState{
			{what: "comp_mask", request: spoilt((*stand).ExCreateQP, func(q *abi.ExCreateQP) { q.CompMask = 2 })},
			{what: "reserved", request: spoilt((*stand).ExCreateQP, func(q *abi.ExCreateQP) { q.Reserved = 1 })},
			{what: "an indirection table", request: spoilt((*stand).ExCreateQP, func(q *abi.ExCreateQP) { q.CompMask, q.RWQIndTblHandle = 1, 0x7fff0000 })},
			{what: "a flag that rxe lacks", request: spoilt((*stand).ExCreateQP, func(q *abi.ExCreateQP) { q.CreateFlags = 1 << 1 })},
			{what: "an unknown flag", request: spoilt((*stand).ExCreateQP, func(q *abi.ExCreateQP) { q.CreateFlags = 1 << 5 })},
		},
	},
	"EX_MODIFY_QP": {
		wrong: []wrongState{
			{what: "rate limit", request: func(s *stand) abi.Struct {
				m := &abi.ExModifyQP{Base: *s.ModifyQP()}
				m.Base.AttrMask |= 1 << 25
				return m
			}},
			{what: "unknown attribute", request: func(s *stand) abi.Struct {
				m := &abi.ExModifyQP{Base: *s.ModifyQP()}
				m.Base.AttrMask |= 1 << 30
				return m
			}},
		},
	},
}

// inRTS takes the stand's queue pair to RTS, once.
func (s *stand) inRTS() {
	var resp abi.QueryQPResp
	s.r.must(s.command(abi.CmdQueryQP, &abi.QueryQP{QPHandle: s.QP, AttrMask: 1}, abi.QueryQPSize, &resp, abi.QueryQPRespSize, nil, 0))
	if resp.QPState == abi.QPSReset {
		s.toRTS()
	}
}

// twice is a command that destroys what it names, given again.
func twice(cmd abi.Command, request func(*stand) abi.Struct) wrongState {
	return wrongState{what: "twice", prepare: func(s *stand) { s.r.must(s.call(cmd, request(s))) }, request: request}
}

// spoilt is a good request, changed.
func spoilt[P abi.Struct](good func(*stand) P, change func(P)) func(*stand) abi.Struct {
	return func(s *stand) abi.Struct {
		req := good(s)
		change(req)
		return req
	}
}

func wrongPath(change func(*abi.AHAttr)) func(*stand) abi.Struct {
	return func(s *stand) abi.Struct {
		a := &abi.CreateAH{PDHandle: s.PD, Attr: s.Path}
		change(&a.Attr)
		return a
	}
}

// sharing makes a queue pair that takes the shared receives.
func (s *stand) sharing() {
	q := s.CreateQP()
	q.IsSRQ, q.SRQHandle = 1, s.SRQ
	s.made(abi.CmdCreateQP, q)
}
