//go:build linux || darwin

package conform

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
)

// methodExamples has one for each supported method.
var methodExamples = map[string]*methodExample{
	"DEVICE.INVOKE_WRITE": {
		data: func(*stand) map[string]uint64 {
			return map[string]uint64{"CORE_IN": 0, "WRITE_CMD": uint64(abi.CmdAllocPD)}
		},
		out: []string{"CORE_OUT"}, sizes: map[string]int{"CORE_IN": 8, "CORE_OUT": 4},
	},
	"DEVICE.INFO_HANDLES": {
		data:  func(*stand) map[string]uint64 { return map[string]uint64{"INFO_OBJECT_ID": uint64(abi.ObjectPD)} },
		out:   []string{"INFO_TOTAL_HANDLES", "INFO_HANDLES_LIST"},
		sizes: map[string]int{"INFO_HANDLES_LIST": 32},
		wrong: []wrongCall{{what: "no such type", data: func(_ *stand, d map[string]uint64) { d["INFO_OBJECT_ID"] = 99 }}},
	},
	"DEVICE.QUERY_PORT": {
		data: func(*stand) map[string]uint64 { return map[string]uint64{"QUERY_PORT_PORT_NUM": 1} },
		out:  []string{"QUERY_PORT_RESP"},
		wrong: []wrongCall{
			{what: "port 0", data: func(_ *stand, d map[string]uint64) { d["QUERY_PORT_PORT_NUM"] = 0 }},
			{what: "port 2", data: func(_ *stand, d map[string]uint64) { d["QUERY_PORT_PORT_NUM"] = 2 }},
			{what: "port 257", data: func(_ *stand, d map[string]uint64) { d["QUERY_PORT_PORT_NUM"] = 257 }},
		},
	},
	"DEVICE.GET_CONTEXT": {
		opens: true, out: []string{"GET_CONTEXT_NUM_COMP_VECTORS", "GET_CONTEXT_CORE_SUPPORT"},
		wrong: []wrongCall{{what: "a second time", prepare: func(s *stand) {
			s.r.must(s.ioctl(abi.ObjectDevice, abi.MethodGetContext, nil))
		}}},
	},
	"DEVICE.QUERY_GID_TABLE": {
		data: func(*stand) map[string]uint64 {
			return map[string]uint64{"QUERY_GID_TABLE_ENTRY_SIZE": abi.GIDEntrySize, "QUERY_GID_TABLE_FLAGS": 0}
		},
		out:   []string{"QUERY_GID_TABLE_RESP_ENTRIES", "QUERY_GID_TABLE_RESP_NUM_ENTRIES"},
		sizes: map[string]int{"QUERY_GID_TABLE_RESP_ENTRIES": 8 * abi.GIDEntrySize},
		wrong: []wrongCall{
			{what: "entries of nothing", data: func(_ *stand, d map[string]uint64) { d["QUERY_GID_TABLE_ENTRY_SIZE"] = 0 }},
			{what: "entries that do not fit", data: func(_ *stand, d map[string]uint64) { d["QUERY_GID_TABLE_ENTRY_SIZE"] = 33 }},
		},
	},
	"DEVICE.QUERY_GID_ENTRY": {
		data: func(s *stand) map[string]uint64 {
			return map[string]uint64{
				"QUERY_GID_ENTRY_PORT": 1, "QUERY_GID_ENTRY_GID_INDEX": uint64(s.path.SGIDIndex), "QUERY_GID_ENTRY_FLAGS": 0,
			}
		},
		out: []string{"QUERY_GID_ENTRY_RESP_ENTRY"},
		wrong: []wrongCall{
			{what: "an empty one", data: func(_ *stand, d map[string]uint64) { d["QUERY_GID_ENTRY_GID_INDEX"] = 200 }},
			{what: "beyond the table", data: func(_ *stand, d map[string]uint64) { d["QUERY_GID_ENTRY_GID_INDEX"] = 5000 }},
			{what: "port 2", data: func(_ *stand, d map[string]uint64) { d["QUERY_GID_ENTRY_PORT"] = 2 }},
		},
	},
	"PD.PD_DESTROY": {
		data: func(s *stand) map[string]uint64 { return map[string]uint64{"DESTROY_PD_HANDLE": uint64(s.FreePD)} },
		wrong: []wrongCall{
			{what: "in use", data: func(s *stand, d map[string]uint64) { d["DESTROY_PD_HANDLE"] = uint64(s.PD) }},
		},
	},
	"CQ.CQ_CREATE": {
		data: func(s *stand) map[string]uint64 {
			return map[string]uint64{
				"CREATE_CQ_HANDLE": 0, "CREATE_CQ_CQE": 4, "CREATE_CQ_USER_HANDLE": 5, "CREATE_CQ_COMP_CHANNEL": uint64(s.Channel),
				"CREATE_CQ_COMP_VECTOR": 0, "CREATE_CQ_FLAGS": 0, "CREATE_CQ_EVENT_FD": uint64(s.async),
			}
		},
		out:   []string{"CREATE_CQ_RESP_CQE", "UHW_OUT"},
		sizes: map[string]int{"UHW_OUT": abi.RXECreateCQRespSize},
		wrong: []wrongCall{
			{what: "no entries", data: func(_ *stand, d map[string]uint64) { d["CREATE_CQ_CQE"] = 0 }},
			{what: "too many", data: func(_ *stand, d map[string]uint64) { d["CREATE_CQ_CQE"] = 32768 }},
			{what: "vector", data: func(_ *stand, d map[string]uint64) { d["CREATE_CQ_COMP_VECTOR"] = 4096 }},
			{what: "a flag that rxe lacks", data: func(_ *stand, d map[string]uint64) { d["CREATE_CQ_FLAGS"] = 1 }},
		},
	},
	"CQ.CQ_DESTROY": {
		data: func(s *stand) map[string]uint64 { return map[string]uint64{"DESTROY_CQ_HANDLE": uint64(s.FreeCQ)} },
		out:  []string{"DESTROY_CQ_RESP"},
		wrong: []wrongCall{
			{what: "in use", data: func(s *stand, d map[string]uint64) { d["DESTROY_CQ_HANDLE"] = uint64(s.CQ) }},
		},
	},
	"QP.QP_CREATE": {
		data:  func(s *stand) map[string]uint64 { return s.qpData() },
		out:   []string{"CREATE_QP_RESP_CAP", "CREATE_QP_RESP_QP_NUM", "UHW_OUT"},
		sizes: map[string]int{"UHW_OUT": abi.RXECreateQPRespSize},
		wrong: []wrongCall{
			{what: "a type that is none", data: func(_ *stand, d map[string]uint64) { d["CREATE_QP_TYPE"] = 7 }},
			{what: "a flag that rxe lacks", data: func(_ *stand, d map[string]uint64) { d["CREATE_QP_FLAGS"] = 1 << 1 }},
			{what: "too many pieces", data: func(s *stand, d map[string]uint64) { le.PutUint32(s.mem[rawIn+8:], 33) }},
			{what: "an XRC domain", data: func(_ *stand, d map[string]uint64) { d["CREATE_QP_XRCD_HANDLE"] = 0x7fff0000 }},
			{what: "a shared receive queue", data: func(_ *stand, d map[string]uint64) { d["CREATE_QP_SRQ_HANDLE"] = 0x7fff0000 }},
			{what: "an indirection table", data: func(_ *stand, d map[string]uint64) { d["CREATE_QP_IND_TABLE_HANDLE"] = 0x7fff0000 }},
		},
	},
	"QP.QP_DESTROY": {
		data: func(s *stand) map[string]uint64 { return map[string]uint64{"DESTROY_QP_HANDLE": uint64(s.QP)} },
		out:  []string{"DESTROY_QP_RESP"},
	},
	"SRQ.SRQ_CREATE": {
		data: func(s *stand) map[string]uint64 {
			return map[string]uint64{
				"CREATE_SRQ_HANDLE": 0, "CREATE_SRQ_PD_HANDLE": uint64(s.PD), "CREATE_SRQ_USER_HANDLE": 8, "CREATE_SRQ_MAX_WR": 4,
				"CREATE_SRQ_MAX_SGE": 1, "CREATE_SRQ_LIMIT": 0, "CREATE_SRQ_TYPE": uint64(abi.SRQTBasic), "CREATE_SRQ_EVENT_FD": uint64(s.async),
			}
		},
		out:   []string{"CREATE_SRQ_RESP_MAX_WR", "CREATE_SRQ_RESP_MAX_SGE", "UHW_OUT"},
		sizes: map[string]int{"UHW_OUT": abi.RXECreateSRQRespSize},
		wrong: []wrongCall{
			{what: "no receives", data: func(_ *stand, d map[string]uint64) { d["CREATE_SRQ_MAX_WR"] = 0 }},
			{what: "too many pieces", data: func(_ *stand, d map[string]uint64) { d["CREATE_SRQ_MAX_SGE"] = 28 }},
			{what: "XRC", data: func(_ *stand, d map[string]uint64) { d["CREATE_SRQ_TYPE"] = uint64(abi.SRQTXRC) }},
			{what: "a type that is none", data: func(_ *stand, d map[string]uint64) { d["CREATE_SRQ_TYPE"] = 7 }},
		},
	},
	"SRQ.SRQ_DESTROY": {
		data: func(s *stand) map[string]uint64 { return map[string]uint64{"DESTROY_SRQ_HANDLE": uint64(s.SRQ)} },
		out:  []string{"DESTROY_SRQ_RESP"},
		wrong: []wrongCall{
			{what: "in use", prepare: func(s *stand) { s.sharing() },
				data: func(s *stand, d map[string]uint64) { d["DESTROY_SRQ_HANDLE"] = uint64(s.SRQ) }},
		},
	},
	"AH.AH_DESTROY": {
		data: func(s *stand) map[string]uint64 { return map[string]uint64{"DESTROY_AH_HANDLE": uint64(s.FreeAH)} },
	},
	"MW.MW_DESTROY": {
		data: func(s *stand) map[string]uint64 { return map[string]uint64{"DESTROY_MW_HANDLE": uint64(s.MW)} },
	},
	"MR.MR_DESTROY": {
		data: func(s *stand) map[string]uint64 { return map[string]uint64{"DESTROY_MR_HANDLE": uint64(s.FreeMR)} },
	},
	"MR.QUERY_MR": {
		data: func(s *stand) map[string]uint64 { return map[string]uint64{"QUERY_MR_HANDLE": uint64(s.MR)} },
		out:  []string{"QUERY_MR_RESP_LKEY", "QUERY_MR_RESP_RKEY", "QUERY_MR_RESP_LENGTH", "QUERY_MR_RESP_IOVA"},
	},
	"ASYNC_EVENT.ASYNC_EVENT_ALLOC": {
		data: func(*stand) map[string]uint64 { return map[string]uint64{"ASYNC_EVENT_ALLOC_FD_HANDLE": 0} },
	},
}

// qpData is the data of QP_CREATE; the capabilities lie at rawIn.
func (s *stand) qpData() map[string]uint64 {
	q := s.CreateQP()
	for i, v := range []uint32{q.MaxSendWR, q.MaxRecvWR, q.MaxSendSGE, q.MaxRecvSGE, q.MaxInlineData} {
		le.PutUint32(s.mem[rawIn+4*i:], v)
	}
	return map[string]uint64{
		"CREATE_QP_HANDLE": 0, "CREATE_QP_PD_HANDLE": uint64(s.PD), "CREATE_QP_SEND_CQ_HANDLE": uint64(s.CQ),
		"CREATE_QP_RECV_CQ_HANDLE": uint64(s.CQ), "CREATE_QP_USER_HANDLE": 6, "CREATE_QP_CAP": s.addr + rawIn,
		"CREATE_QP_TYPE": uint64(abi.QPTRC), "CREATE_QP_FLAGS": 0, "CREATE_QP_EVENT_FD": uint64(s.async),
	}
}
