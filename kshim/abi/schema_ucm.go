package abi

import "syscall"

// ucmCommands are those of /dev/infiniband/rdma_cm, by number (ucma.c:
// ucma_cmd_table). Only CONNECT and ACCEPT look at the length of a request;
// fields that the others lack are zero here.
var ucmCommands = complete(FormCM, func(n int) string { return UCMCommand(n).String() }, []Entry{
	UCMCmdCreateID:     {Request: of[UCMCreateID](UCMCreateIDSize), Response: of[UCMCreateIDResp](UCMCreateIDRespSize), LeastResponse: UCMCreateIDRespSize},
	UCMCmdDestroyID:    {Request: of[UCMDestroyID](UCMDestroyIDSize), Response: of[UCMDestroyIDResp](UCMDestroyIDRespSize), LeastResponse: UCMDestroyIDRespSize},
	UCMCmdBindIP:       {Request: of[UCMBindIP](UCMBindIPSize)},
	UCMCmdResolveIP:    {Request: of[UCMResolveIP](UCMResolveIPSize)},
	UCMCmdResolveRoute: {Request: of[UCMResolveRoute](UCMResolveRouteSize)},
	UCMCmdQueryRoute:   {Request: of[UCMQuery](UCMQuerySize), Response: of[UCMQueryRouteResp](UCMQueryRouteRespSize), LeastResponse: UCMQueryRouteRespSize - 8},
	UCMCmdConnect:      {Request: of[UCMConnect](UCMConnectSize), LeastRequest: UCMConnectSize - UCMECESize},
	UCMCmdListen:       {Request: of[UCMListen](UCMListenSize)},
	UCMCmdAccept:       {Request: of[UCMAccept](UCMAcceptSize), LeastRequest: UCMAcceptSize - UCMECESize},
	UCMCmdReject:       {Request: of[UCMReject](UCMRejectSize)},
	UCMCmdDisconnect:   {Request: of[UCMDisconnect](UCMDisconnectSize)},
	UCMCmdInitQPAttr:   {Request: of[UCMInitQPAttr](UCMInitQPAttrSize), Response: of[QPAttr](QPAttrSize), LeastResponse: QPAttrSize},
	UCMCmdGetEvent:     {Request: of[UCMGetEvent](UCMGetEventSize), Response: of[UCMEventResp](UCMEventRespSize), LeastResponse: UCMEventRespSize - UCMECESize - 4},
	UCMCmdGetOption:    {Lacks: nowhere, Errno: syscall.ENOSYS},
	UCMCmdSetOption:    {Request: of[UCMSetOption](UCMSetOptionSize)},
	UCMCmdNotify:       {Request: of[UCMNotify](UCMNotifySize)},
	UCMCmdJoinIPMcast:  {Request: of[UCMJoinIPMcast](UCMJoinIPMcastSize), Response: of[UCMCreateIDResp](UCMCreateIDRespSize), LeastResponse: UCMCreateIDRespSize},
	UCMCmdLeaveMcast:   {Request: of[UCMDestroyID](UCMDestroyIDSize), Response: of[UCMDestroyIDResp](UCMDestroyIDRespSize), LeastResponse: UCMDestroyIDRespSize},
	UCMCmdMigrateID:    {Request: of[UCMMigrateID](UCMMigrateIDSize), Response: of[UCMMigrateResp](UCMMigrateRespSize), LeastResponse: UCMMigrateRespSize},
	UCMCmdQuery:        {Request: of[UCMQuery](UCMQuerySize), Response: opaque(UCMQueryAddrRespSize)},
	UCMCmdBind:         {Request: of[UCMBind](UCMBindSize)},
	UCMCmdResolveAddr:  {Request: of[UCMResolveAddr](UCMResolveAddrSize)},
	UCMCmdJoinMcast:    {Request: of[UCMJoinMcast](UCMJoinMcastSize), Response: of[UCMCreateIDResp](UCMCreateIDRespSize), LeastResponse: UCMCreateIDRespSize},
})

// Answer returns the layout of QUERY's response, which depends on what is
// asked; the schema says how large it can be.
func (o UCMQueryOption) Answer() Layout {
	switch o {
	case UCMQueryAddr, UCMQueryGID:
		return of[UCMQueryAddrResp](UCMQueryAddrRespSize)
	case UCMQueryPath:
		return of[UCMQueryPathResp](UCMQueryPathRespSize)
	}
	return Layout{}
}
