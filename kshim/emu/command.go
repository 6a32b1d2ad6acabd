package emu

import (
	"encoding/binary"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

var le = binary.LittleEndian

// exQueryDeviceRespSize is sizeof(struct ib_uverbs_ex_query_device_resp).
const exQueryDeviceRespSize = 304

// support is whether a command is answered, and if not, why.
type support string

const (
	noSRQ     support = "the soft RNIC has no shared receive queues; rdma_rxe has"
	noMW      support = "the soft RNIC has no memory windows; rdma_rxe has"
	noMcast   support = "the soft RNIC has no multicast; rdma_rxe has"
	noXRC     support = "no extended reliable connections, as rdma_rxe"
	notOnRXE  support = "not for this device, as for rdma_rxe: its queues are in mapped memory"
	optional  support = "not for this device, as for rdma_rxe"
	ioctlOnly support = "in no kernel by write; by ioctl it is"
	nowhere   support = "in no kernel"
)

// command is one row of what write() and INVOKE_WRITE understand
// (uverbs_cmd.c: uverbs_def_write_intf).
type command struct {
	name     string
	req      int     // size of the request, without headers
	resp     int     // size of the response; 0: it has none
	udata    bool    // the driver has a part of both
	variable bool    // a list of work requests follows the request
	ext      bool    // extended: has the second header, no response field, and no least sizes
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
	abi.CmdAllocMW:           {name: "ALLOC_MW", req: 16, resp: 8, udata: true, lacks: noMW},
	abi.CmdBindMW:            {name: "BIND_MW", lacks: nowhere},
	abi.CmdDeallocMW:         {name: "DEALLOC_MW", req: 4, lacks: noMW},
	abi.CmdCreateCompChannel: {name: "CREATE_COMP_CHANNEL", req: abi.CreateCompChannelSize, resp: abi.CreateCompChannelRespSize, do: createCompChannel},
	abi.CmdCreateCQ:          {name: "CREATE_CQ", req: abi.CreateCQSize, resp: abi.CreateCQRespSize, udata: true, do: createCQ},
	abi.CmdResizeCQ:          {name: "RESIZE_CQ", req: abi.ResizeCQSize, resp: abi.ResizeCQRespSize, udata: true, do: resizeCQ},
	abi.CmdDestroyCQ:         {name: "DESTROY_CQ", req: abi.DestroyCQSize, resp: abi.DestroyCQRespSize, do: destroyCQ},
	abi.CmdPollCQ:            {name: "POLL_CQ", req: 16, resp: 8, lacks: notOnRXE},
	abi.CmdPeekCQ:            {name: "PEEK_CQ", lacks: nowhere},
	abi.CmdReqNotifyCQ:       {name: "REQ_NOTIFY_CQ", req: abi.ReqNotifyCQSize, hot: true, do: reqNotifyCQ},
	abi.CmdCreateQP:          {name: "CREATE_QP", req: abi.CreateQPSize, resp: abi.CreateQPRespSize, udata: true, do: createQP},
	abi.CmdQueryQP:           {name: "QUERY_QP", req: abi.QueryQPSize, resp: abi.QueryQPRespSize, do: queryQP},
	abi.CmdModifyQP:          {name: "MODIFY_QP", req: abi.ModifyQPSize, do: modifyQP},
	abi.CmdDestroyQP:         {name: "DESTROY_QP", req: abi.DestroyQPSize, resp: abi.DestroyQPRespSize, do: destroyQP},
	abi.CmdPostSend:          {name: "POST_SEND", req: abi.PostSendSize, resp: abi.PostSendRespSize, variable: true, hot: true, do: postSend},
	abi.CmdPostRecv:          {name: "POST_RECV", req: 24, resp: 4, variable: true, lacks: notOnRXE},
	abi.CmdAttachMcast:       {name: "ATTACH_MCAST", req: 24, lacks: noMcast},
	abi.CmdDetachMcast:       {name: "DETACH_MCAST", req: 24, lacks: noMcast},
	abi.CmdCreateSRQ:         {name: "CREATE_SRQ", req: 32, resp: 16, udata: true, lacks: noSRQ},
	abi.CmdModifySRQ:         {name: "MODIFY_SRQ", req: 16, udata: true, lacks: noSRQ},
	abi.CmdQuerySRQ:          {name: "QUERY_SRQ", req: 16, resp: 16, lacks: noSRQ},
	abi.CmdDestroySRQ:        {name: "DESTROY_SRQ", req: 16, resp: 4, lacks: noSRQ},
	abi.CmdPostSRQRecv:       {name: "POST_SRQ_RECV", req: 24, resp: 4, variable: true, lacks: notOnRXE},
	abi.CmdOpenXRCD:          {name: "OPEN_XRCD", req: 16, resp: 4, udata: true, lacks: noXRC},
	abi.CmdCloseXRCD:         {name: "CLOSE_XRCD", req: 4, lacks: noXRC},
	abi.CmdCreateXSRQ:        {name: "CREATE_XSRQ", req: 48, resp: 16, udata: true, lacks: noSRQ},
	abi.CmdOpenQP:            {name: "OPEN_QP", req: 32, resp: 32, udata: true, lacks: noXRC},
}

// exCommands are the extended ones, by number.
var exCommands = [...]command{
	abi.ExCmdQueryDevice:      {name: "EX_QUERY_DEVICE", ext: true, udata: true, req: 8, resp: exQueryDeviceRespSize, do: exQueryDevice},
	abi.ExCmdCreateCQ:         {name: "EX_CREATE_CQ", ext: true, udata: true, req: abi.ExCreateCQSize, resp: abi.ExCreateCQRespSize, do: exCreateCQ},
	abi.ExCmdCreateQP:         {name: "EX_CREATE_QP", ext: true, udata: true, req: abi.ExCreateQPSize, resp: abi.ExCreateQPRespSize, do: exCreateQP},
	abi.ExCmdModifyQP:         {name: "EX_MODIFY_QP", ext: true, udata: true, req: abi.ExModifyQPSize, resp: abi.ExModifyQPRespSize, do: exModifyQP},
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
