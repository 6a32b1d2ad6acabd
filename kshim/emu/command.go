package emu

import (
	"encoding/binary"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

var le = binary.LittleEndian

// exQueryDeviceRespSize is sizeof(struct ib_uverbs_ex_query_device_resp).
const exQueryDeviceRespSize = 304

// support is whether a command is answered, and if not, why; EOPNOTSUPP then.
type support string

const (
	notYet    support = "not in this kernel yet"
	notOnRXE  support = "not on this device, as on rxe: its queues are in mapped memory"
	optional  support = "not on this device, as on rxe"
	ioctlOnly support = "in no kernel by write"
	nowhere   support = "in no kernel"
)

// command is one row of what write() and INVOKE_WRITE understand
// (uverbs_cmd.c: uverbs_def_write_intf).
type command struct {
	name     string
	req      int     // least size of the request, without headers
	resp     int     // least size of the response; 0: it has none
	udata    bool    // the driver has a part of both
	variable bool    // a list of work requests follows the request
	ext      bool    // extended: has the second header, no response field
	hot      bool    // data path: holds its object only, allocates nothing
	lacks    support // empty: do answers it
	do       func(*call) error
}

// commands are the plain ones, by number.
var commands = [...]command{
	abi.CmdGetContext:        {name: "GET_CONTEXT", req: abi.GetContextSize, resp: abi.GetContextRespSize, udata: true, do: getContext},
	abi.CmdQueryDevice:       {name: "QUERY_DEVICE", req: abi.QueryDeviceSize, resp: abi.QueryDeviceRespSize, do: queryDevice},
	abi.CmdQueryPort:         {name: "QUERY_PORT", req: abi.QueryPortSize, resp: abi.QueryPortRespSize, do: queryPort},
	abi.CmdAllocPD:           {name: "ALLOC_PD", req: abi.AllocPDSize, resp: abi.AllocPDRespSize, udata: true, do: allocPD},
	abi.CmdDeallocPD:         {name: "DEALLOC_PD", req: abi.DeallocPDSize, do: deallocPD},
	abi.CmdCreateAH:          {name: "CREATE_AH", req: abi.CreateAHSize, resp: abi.CreateAHRespSize, udata: true, do: createAH},
	abi.CmdModifyAH:          {name: "MODIFY_AH", lacks: nowhere},
	abi.CmdQueryAH:           {name: "QUERY_AH", lacks: nowhere},
	abi.CmdDestroyAH:         {name: "DESTROY_AH", req: abi.DestroyAHSize, do: destroyAH},
	abi.CmdRegMR:             {name: "REG_MR", req: abi.RegMRSize, resp: abi.RegMRRespSize, udata: true, do: regMR},
	abi.CmdRegSMR:            {name: "REG_SMR", lacks: nowhere},
	abi.CmdReregMR:           {name: "REREG_MR", req: abi.ReregMRSize, resp: abi.ReregMRRespSize, udata: true, do: reregMR},
	abi.CmdQueryMR:           {name: "QUERY_MR", lacks: ioctlOnly},
	abi.CmdDeregMR:           {name: "DEREG_MR", req: abi.DeregMRSize, do: deregMR},
	abi.CmdAllocMW:           {name: "ALLOC_MW", lacks: notYet},
	abi.CmdBindMW:            {name: "BIND_MW", lacks: nowhere},
	abi.CmdDeallocMW:         {name: "DEALLOC_MW", lacks: notYet},
	abi.CmdCreateCompChannel: {name: "CREATE_COMP_CHANNEL", req: abi.CreateCompChannelSize, resp: abi.CreateCompChannelRespSize, do: createCompChannel},
	abi.CmdCreateCQ:          {name: "CREATE_CQ", req: abi.CreateCQSize, resp: abi.CreateCQRespSize, udata: true, do: createCQ},
	abi.CmdResizeCQ:          {name: "RESIZE_CQ", req: abi.ResizeCQSize, resp: abi.ResizeCQRespSize, udata: true, do: resizeCQ},
	abi.CmdDestroyCQ:         {name: "DESTROY_CQ", req: abi.DestroyCQSize, resp: abi.DestroyCQRespSize, do: destroyCQ},
	abi.CmdPollCQ:            {name: "POLL_CQ", lacks: notOnRXE},
	abi.CmdPeekCQ:            {name: "PEEK_CQ", lacks: nowhere},
	abi.CmdReqNotifyCQ:       {name: "REQ_NOTIFY_CQ", req: abi.ReqNotifyCQSize, hot: true, do: reqNotifyCQ},
	abi.CmdCreateQP:          {name: "CREATE_QP", req: abi.CreateQPSize, resp: abi.CreateQPRespSize, udata: true, do: createQP},
	abi.CmdQueryQP:           {name: "QUERY_QP", req: abi.QueryQPSize, resp: abi.QueryQPRespSize, do: queryQP},
	abi.CmdModifyQP:          {name: "MODIFY_QP", req: abi.ModifyQPSize, do: modifyQP},
	abi.CmdDestroyQP:         {name: "DESTROY_QP", req: abi.DestroyQPSize, resp: abi.DestroyQPRespSize, do: destroyQP},
	abi.CmdPostSend:          {name: "POST_SEND", req: abi.PostSendSize, resp: abi.PostSendRespSize, variable: true, hot: true, do: postSend},
	abi.CmdPostRecv:          {name: "POST_RECV", lacks: notOnRXE},
	abi.CmdAttachMcast:       {name: "ATTACH_MCAST", lacks: notYet},
	abi.CmdDetachMcast:       {name: "DETACH_MCAST", lacks: notYet},
	abi.CmdCreateSRQ:         {name: "CREATE_SRQ", lacks: notYet},
	abi.CmdModifySRQ:         {name: "MODIFY_SRQ", lacks: notYet},
	abi.CmdQuerySRQ:          {name: "QUERY_SRQ", lacks: notYet},
	abi.CmdDestroySRQ:        {name: "DESTROY_SRQ", lacks: notYet},
	abi.CmdPostSRQRecv:       {name: "POST_SRQ_RECV", lacks: notOnRXE},
	abi.CmdOpenXRCD:          {name: "OPEN_XRCD", lacks: optional},
	abi.CmdCloseXRCD:         {name: "CLOSE_XRCD", lacks: optional},
	abi.CmdCreateXSRQ:        {name: "CREATE_XSRQ", lacks: optional},
	abi.CmdOpenQP:            {name: "OPEN_QP", lacks: optional},
}

// exCommands are the extended ones, by number. Their minimal sizes are the
// kernel's, which end before fields that came later.
var exCommands = [...]command{
	abi.ExCmdQueryDevice:      {name: "EX_QUERY_DEVICE", ext: true, udata: true, req: 8, resp: 184, do: exQueryDevice},
	abi.ExCmdCreateCQ:         {name: "EX_CREATE_CQ", ext: true, lacks: notYet},
	abi.ExCmdCreateQP:         {name: "EX_CREATE_QP", ext: true, lacks: notYet},
	abi.ExCmdModifyQP:         {name: "EX_MODIFY_QP", ext: true, lacks: notYet},
	abi.ExCmdCreateFlow:       {name: "EX_CREATE_FLOW", ext: true, lacks: optional},
	abi.ExCmdDestroyFlow:      {name: "EX_DESTROY_FLOW", ext: true, lacks: optional},
	abi.ExCmdCreateWQ:         {name: "EX_CREATE_WQ", ext: true, lacks: optional},
	abi.ExCmdModifyWQ:         {name: "EX_MODIFY_WQ", ext: true, lacks: optional},
	abi.ExCmdDestroyWQ:        {name: "EX_DESTROY_WQ", ext: true, lacks: optional},
	abi.ExCmdCreateRWQIndTbl:  {name: "EX_CREATE_RWQ_IND_TBL", ext: true, lacks: optional},
	abi.ExCmdDestroyRWQIndTbl: {name: "EX_DESTROY_RWQ_IND_TBL", ext: true, lacks: optional},
	abi.ExCmdModifyCQ:         {name: "EX_MODIFY_CQ", ext: true, lacks: optional},
}

// lookupCommand is uapi_get_method: nil for what no kernel knows.
func lookupCommand(n abi.Command) *command {
	i := int(n & abi.CmdCommandMask)
	table := commands[:]
	if n&abi.CmdFlagExtended != 0 {
		table = exCommands[:]
	}
	if i >= len(table) || table[i].name == "" {
		return nil
	}
	return &table[i]
}
