package abi

// Command is the number of a plain write() command: IB_USER_VERBS_CMD_*.
type Command uint32

const (
	CmdGetContext        Command = 0
	CmdQueryDevice       Command = 1
	CmdQueryPort         Command = 2
	CmdAllocPD           Command = 3
	CmdDeallocPD         Command = 4
	CmdCreateAH          Command = 5
	CmdModifyAH          Command = 6
	CmdQueryAH           Command = 7
	CmdDestroyAH         Command = 8
	CmdRegMR             Command = 9
	CmdRegSMR            Command = 10
	CmdReregMR           Command = 11
	CmdQueryMR           Command = 12
	CmdDeregMR           Command = 13
	CmdAllocMW           Command = 14
	CmdBindMW            Command = 15
	CmdDeallocMW         Command = 16
	CmdCreateCompChannel Command = 17
	CmdCreateCQ          Command = 18
	CmdResizeCQ          Command = 19
	CmdDestroyCQ         Command = 20
	CmdPollCQ            Command = 21
	CmdPeekCQ            Command = 22
	CmdReqNotifyCQ       Command = 23
	CmdCreateQP          Command = 24
	CmdQueryQP           Command = 25
	CmdModifyQP          Command = 26
	CmdDestroyQP         Command = 27
	CmdPostSend          Command = 28
	CmdPostRecv          Command = 29
	CmdAttachMcast       Command = 30
	CmdDetachMcast       Command = 31
	CmdCreateSRQ         Command = 32
	CmdModifySRQ         Command = 33
	CmdQuerySRQ          Command = 34
	CmdDestroySRQ        Command = 35
	CmdPostSRQRecv       Command = 36
	CmdOpenXRCD          Command = 37
	CmdCloseXRCD         Command = 38
	CmdCreateXSRQ        Command = 39
	CmdOpenQP            Command = 40
)

var commandNames = map[Command]string{
	CmdGetContext:        "GET_CONTEXT",
	CmdQueryDevice:       "QUERY_DEVICE",
	CmdQueryPort:         "QUERY_PORT",
	CmdAllocPD:           "ALLOC_PD",
	CmdDeallocPD:         "DEALLOC_PD",
	CmdCreateAH:          "CREATE_AH",
	CmdModifyAH:          "MODIFY_AH",
	CmdQueryAH:           "QUERY_AH",
	CmdDestroyAH:         "DESTROY_AH",
	CmdRegMR:             "REG_MR",
	CmdRegSMR:            "REG_SMR",
	CmdReregMR:           "REREG_MR",
	CmdQueryMR:           "QUERY_MR",
	CmdDeregMR:           "DEREG_MR",
	CmdAllocMW:           "ALLOC_MW",
	CmdBindMW:            "BIND_MW",
	CmdDeallocMW:         "DEALLOC_MW",
	CmdCreateCompChannel: "CREATE_COMP_CHANNEL",
	CmdCreateCQ:          "CREATE_CQ",
	CmdResizeCQ:          "RESIZE_CQ",
	CmdDestroyCQ:         "DESTROY_CQ",
	CmdPollCQ:            "POLL_CQ",
	CmdPeekCQ:            "PEEK_CQ",
	CmdReqNotifyCQ:       "REQ_NOTIFY_CQ",
	CmdCreateQP:          "CREATE_QP",
	CmdQueryQP:           "QUERY_QP",
	CmdModifyQP:          "MODIFY_QP",
	CmdDestroyQP:         "DESTROY_QP",
	CmdPostSend:          "POST_SEND",
	CmdPostRecv:          "POST_RECV",
	CmdAttachMcast:       "ATTACH_MCAST",
	CmdDetachMcast:       "DETACH_MCAST",
	CmdCreateSRQ:         "CREATE_SRQ",
	CmdModifySRQ:         "MODIFY_SRQ",
	CmdQuerySRQ:          "QUERY_SRQ",
	CmdDestroySRQ:        "DESTROY_SRQ",
	CmdPostSRQRecv:       "POST_SRQ_RECV",
	CmdOpenXRCD:          "OPEN_XRCD",
	CmdCloseXRCD:         "CLOSE_XRCD",
	CmdCreateXSRQ:        "CREATE_XSRQ",
	CmdOpenQP:            "OPEN_QP",
}

// String gives the kernel's name without its prefix, or Command(n).
func (v Command) String() string { return enumString(commandNames, v, "Command") }

// Flags in CmdHdr.Command.
const (
	CmdCommandMask  Command = 0xff       // IB_USER_VERBS_CMD_COMMAND_MASK
	CmdFlagExtended Command = 0x80000000 // IB_USER_VERBS_CMD_FLAG_EXTENDED
)

// ExCommand is the number of an extended write() command: IB_USER_VERBS_EX_CMD_*. In CmdHdr it stands
// with CmdFlagExtended.
type ExCommand uint32

const (
	ExCmdQueryDevice      ExCommand = 1
	ExCmdCreateCQ         ExCommand = 18
	ExCmdCreateQP         ExCommand = 24
	ExCmdModifyQP         ExCommand = 26
	ExCmdCreateFlow       ExCommand = 50
	ExCmdDestroyFlow      ExCommand = 51
	ExCmdCreateWQ         ExCommand = 52
	ExCmdModifyWQ         ExCommand = 53
	ExCmdDestroyWQ        ExCommand = 54
	ExCmdCreateRWQIndTbl  ExCommand = 55
	ExCmdDestroyRWQIndTbl ExCommand = 56
	ExCmdModifyCQ         ExCommand = 57
)

var exCommandNames = map[ExCommand]string{
	ExCmdQueryDevice:      "QUERY_DEVICE",
	ExCmdCreateCQ:         "CREATE_CQ",
	ExCmdCreateQP:         "CREATE_QP",
	ExCmdModifyQP:         "MODIFY_QP",
	ExCmdCreateFlow:       "CREATE_FLOW",
	ExCmdDestroyFlow:      "DESTROY_FLOW",
	ExCmdCreateWQ:         "CREATE_WQ",
	ExCmdModifyWQ:         "MODIFY_WQ",
	ExCmdDestroyWQ:        "DESTROY_WQ",
	ExCmdCreateRWQIndTbl:  "CREATE_RWQ_IND_TBL",
	ExCmdDestroyRWQIndTbl: "DESTROY_RWQ_IND_TBL",
	ExCmdModifyCQ:         "MODIFY_CQ",
}

// String gives the kernel's name without its prefix, or ExCommand(n).
func (v ExCommand) String() string { return enumString(exCommandNames, v, "ExCommand") }
