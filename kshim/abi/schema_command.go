package abi

// commands are the plain ones of write(), by number (uverbs_cmd.c:
// uverbs_def_write_intf).
var commands = complete(FormWrite, func(n int) string { return Command(n).String() }, []Entry{
	CmdGetContext:  {Request: of[GetContext](GetContextSize), Response: of[GetContextResp](GetContextRespSize), Driver: true},
	CmdQueryDevice: {Request: of[QueryDevice](QueryDeviceSize), Response: of[QueryDeviceResp](QueryDeviceRespSize)},
	CmdQueryPort:   {Request: of[QueryPort](QueryPortSize), Response: of[QueryPortResp](QueryPortRespSize)},
	CmdAllocPD:     {Request: of[AllocPD](AllocPDSize), Response: of[AllocPDResp](AllocPDRespSize), Driver: true},
	CmdDeallocPD:   {Request: of[DeallocPD](DeallocPDSize)},
	CmdCreateAH:    {Request: of[CreateAH](CreateAHSize), Response: of[CreateAHResp](CreateAHRespSize), Driver: true, DriverResponse: of[RXECreateAHResp](RXECreateAHRespSize)},
	CmdModifyAH:    {Lacks: nowhere},
	CmdQueryAH:     {Lacks: nowhere},
	CmdDestroyAH:   {Request: of[DestroyAH](DestroyAHSize)},
	CmdRegMR:       {Request: of[RegMR](RegMRSize), Response: of[RegMRResp](RegMRRespSize), Driver: true},
	CmdRegSMR:      {Lacks: nowhere},
	CmdReregMR:     {Request: of[ReregMR](ReregMRSize), Response: of[ReregMRResp](ReregMRRespSize), Driver: true},
	CmdQueryMR:     {Lacks: ioctlOnly},
	CmdDeregMR:     {Request: of[DeregMR](DeregMRSize)},
	CmdAllocMW:     {Request: opaque(16), Response: opaque(8), Driver: true, Lacks: noMW},
	CmdBindMW:      {Lacks: nowhere},
	CmdDeallocMW:   {Request: opaque(4), Lacks: noMW},
	CmdCreateCompChannel: {Request: of[CreateCompChannel](CreateCompChannelSize),
		Response: of[CreateCompChannelResp](CreateCompChannelRespSize)},
	CmdCreateCQ:    {Request: of[CreateCQ](CreateCQSize), Response: of[CreateCQResp](CreateCQRespSize), Driver: true, DriverResponse: of[RXECreateCQResp](RXECreateCQRespSize)},
	CmdResizeCQ:    {Request: of[ResizeCQ](ResizeCQSize), Response: of[ResizeCQResp](ResizeCQRespSize), Driver: true, DriverResponse: of[RXEResizeCQResp](RXEResizeCQRespSize)},
	CmdDestroyCQ:   {Request: of[DestroyCQ](DestroyCQSize), Response: of[DestroyCQResp](DestroyCQRespSize)},
	CmdPollCQ:      {Request: opaque(16), Response: opaque(8), Lacks: notOnRXE},
	CmdPeekCQ:      {Lacks: nowhere},
	CmdReqNotifyCQ: {Request: of[ReqNotifyCQ](ReqNotifyCQSize)},
	CmdCreateQP:    {Request: of[CreateQP](CreateQPSize), Response: of[CreateQPResp](CreateQPRespSize), Driver: true, DriverResponse: of[RXECreateQPResp](RXECreateQPRespSize)},
	CmdQueryQP:     {Request: of[QueryQP](QueryQPSize), Response: of[QueryQPResp](QueryQPRespSize)},
	CmdModifyQP:    {Request: of[ModifyQP](ModifyQPSize)},
	CmdDestroyQP:   {Request: of[DestroyQP](DestroyQPSize), Response: of[DestroyQPResp](DestroyQPRespSize)},
	CmdPostSend:    {Request: of[PostSend](PostSendSize), Response: of[PostSendResp](PostSendRespSize), Variable: true},
	CmdPostRecv:    {Request: opaque(24), Response: opaque(4), Variable: true, Lacks: notOnRXE},
	CmdAttachMcast: {Request: opaque(24), Lacks: noMcast},
	CmdDetachMcast: {Request: opaque(24), Lacks: noMcast},
	CmdCreateSRQ:   {Request: opaque(32), Response: opaque(16), Driver: true, Lacks: noSRQ},
	CmdModifySRQ:   {Request: opaque(16), Driver: true, Lacks: noSRQ},
	CmdQuerySRQ:    {Request: opaque(16), Response: opaque(16), Lacks: noSRQ},
	CmdDestroySRQ:  {Request: opaque(16), Response: opaque(4), Lacks: noSRQ},
	CmdPostSRQRecv: {Request: opaque(24), Response: opaque(4), Variable: true, Lacks: notOnRXE},
	CmdOpenXRCD:    {Request: opaque(16), Response: opaque(4), Driver: true, Lacks: noXRC},
	CmdCloseXRCD:   {Request: opaque(4), Lacks: noXRC},
	CmdCreateXSRQ:  {Request: opaque(48), Response: opaque(16), Driver: true, Lacks: noSRQ},
	CmdOpenQP:      {Request: opaque(32), Response: opaque(32), Driver: true, Lacks: noXRC},
})

// exQueryDeviceRespSize is sizeof(struct ib_uverbs_ex_query_device_resp), which
// begins with struct ib_uverbs_query_device_resp.
const exQueryDeviceRespSize = 304

// exCommands are the extended ones of write(), by number.
var exCommands = complete(FormExtended, func(n int) string { return "EX_" + ExCommand(n).String() }, []Entry{
	ExCmdQueryDevice:      {Request: opaque(8), Response: Layout{exQueryDeviceRespSize, func() Struct { return new(QueryDeviceResp) }}},
	ExCmdCreateCQ:         {Request: of[ExCreateCQ](ExCreateCQSize), Response: of[ExCreateCQResp](ExCreateCQRespSize), DriverResponse: of[RXECreateCQResp](RXECreateCQRespSize)},
	ExCmdCreateQP:         {Request: of[ExCreateQP](ExCreateQPSize), Response: of[ExCreateQPResp](ExCreateQPRespSize), DriverResponse: of[RXECreateQPResp](RXECreateQPRespSize)},
	ExCmdModifyQP:         {Request: of[ExModifyQP](ExModifyQPSize), Response: of[ExModifyQPResp](ExModifyQPRespSize)},
	ExCmdCreateFlow:       {Lacks: optional},
	ExCmdDestroyFlow:      {Lacks: optional},
	ExCmdCreateWQ:         {Lacks: optional},
	ExCmdModifyWQ:         {Lacks: optional},
	ExCmdDestroyWQ:        {Lacks: optional},
	ExCmdCreateRWQIndTbl:  {Lacks: optional},
	ExCmdDestroyRWQIndTbl: {Lacks: optional},
	ExCmdModifyCQ:         {Lacks: optional},
})
