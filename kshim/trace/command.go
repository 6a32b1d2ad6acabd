package trace

import (
	"encoding/binary"
	"strconv"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

var le = binary.LittleEndian

// command describes what a command of write() says and answers.
type command struct {
	req, resp layout
	drv       layout // rdma_rxe's part of the answer
}

var commands = map[abi.Command]command{
	abi.CmdGetContext:        {req: of[abi.GetContext](abi.GetContextSize), resp: of[abi.GetContextResp](abi.GetContextRespSize)},
	abi.CmdQueryDevice:       {req: of[abi.QueryDevice](abi.QueryDeviceSize), resp: of[abi.QueryDeviceResp](abi.QueryDeviceRespSize)},
	abi.CmdQueryPort:         {req: of[abi.QueryPort](abi.QueryPortSize), resp: of[abi.QueryPortResp](abi.QueryPortRespSize)},
	abi.CmdAllocPD:           {req: of[abi.AllocPD](abi.AllocPDSize), resp: of[abi.AllocPDResp](abi.AllocPDRespSize)},
	abi.CmdDeallocPD:         {req: of[abi.DeallocPD](abi.DeallocPDSize)},
	abi.CmdCreateAH:          {req: of[abi.CreateAH](abi.CreateAHSize), resp: of[abi.CreateAHResp](abi.CreateAHRespSize), drv: of[abi.RXECreateAHResp](abi.RXECreateAHRespSize)},
	abi.CmdDestroyAH:         {req: of[abi.DestroyAH](abi.DestroyAHSize)},
	abi.CmdRegMR:             {req: of[abi.RegMR](abi.RegMRSize), resp: of[abi.RegMRResp](abi.RegMRRespSize)},
	abi.CmdReregMR:           {req: of[abi.ReregMR](abi.ReregMRSize), resp: of[abi.ReregMRResp](abi.ReregMRRespSize)},
	abi.CmdDeregMR:           {req: of[abi.DeregMR](abi.DeregMRSize)},
	abi.CmdCreateCompChannel: {req: of[abi.CreateCompChannel](abi.CreateCompChannelSize), resp: of[abi.CreateCompChannelResp](abi.CreateCompChannelRespSize)},
	abi.CmdCreateCQ:          {req: of[abi.CreateCQ](abi.CreateCQSize), resp: of[abi.CreateCQResp](abi.CreateCQRespSize), drv: of[abi.RXECreateCQResp](abi.RXECreateCQRespSize)},
	abi.CmdResizeCQ:          {req: of[abi.ResizeCQ](abi.ResizeCQSize), resp: of[abi.ResizeCQResp](abi.ResizeCQRespSize), drv: of[abi.RXEResizeCQResp](abi.RXEResizeCQRespSize)},
	abi.CmdDestroyCQ:         {req: of[abi.DestroyCQ](abi.DestroyCQSize), resp: of[abi.DestroyCQResp](abi.DestroyCQRespSize)},
	abi.CmdReqNotifyCQ:       {req: of[abi.ReqNotifyCQ](abi.ReqNotifyCQSize)},
	abi.CmdCreateQP:          {req: of[abi.CreateQP](abi.CreateQPSize), resp: of[abi.CreateQPResp](abi.CreateQPRespSize), drv: of[abi.RXECreateQPResp](abi.RXECreateQPRespSize)},
	abi.CmdQueryQP:           {req: of[abi.QueryQP](abi.QueryQPSize), resp: of[abi.QueryQPResp](abi.QueryQPRespSize)},
	abi.CmdModifyQP:          {req: of[abi.ModifyQP](abi.ModifyQPSize)},
	abi.CmdDestroyQP:         {req: of[abi.DestroyQP](abi.DestroyQPSize), resp: of[abi.DestroyQPResp](abi.DestroyQPRespSize)},
	abi.CmdPostSend:          {req: of[abi.PostSend](abi.PostSendSize)}, // its response counts only when it fails
}

// exCommands are the extended ones that are known in part.
var exCommands = map[abi.ExCommand]command{
	abi.ExCmdModifyQP:    {req: of[abi.ModifyQP](abi.ModifyQPSize)},
	abi.ExCmdQueryDevice: {resp: of[abi.QueryDeviceResp](abi.QueryDeviceRespSize)},
}

// lookup gives a command's name and description; the zero one when it is not
// known.
func lookup(number abi.Command) (string, command) {
	plain := number & abi.CmdCommandMask
	switch {
	case number&^(abi.CmdCommandMask|abi.CmdFlagExtended) != 0:
		return "command " + strconv.FormatUint(uint64(number), 10), command{}
	case number&abi.CmdFlagExtended != 0:
		ex := abi.ExCommand(plain)
		return "EX_" + ex.String(), exCommands[ex]
	}
	return plain.String(), commands[plain]
}

// copyLimit bounds how much of a command is looked at; a call may bring
// megabytes.
const copyLimit = 4096

// answer is where a call's response is going to be, and what it is.
type answer struct {
	desc    command
	core    span
	drv     span
	results []result // of an ioctl
}

// span is memory of the caller.
type span struct{ addr, n uint64 }

// result is an ioctl's output attribute.
type result struct {
	attr attribute
	at   int // where the attribute stands in the argument, for what comes back in it
	span span
}

// appendWrite shows a command of write(2), and tells where it is answered.
func appendWrite(b, cmd []byte) ([]byte, answer) {
	var h abi.CmdHdr
	if h.Parse(cmd) != nil {
		return appendHex(b, cmd), answer{}
	}
	name, desc := lookup(h.Command)
	b = append(b, name...)
	req := cmd[abi.CmdHdrSize:]
	if h.Command&abi.CmdFlagExtended != 0 {
		return appendExtended(b, h, desc, req)
	}
	if int(h.InWords)*4 != len(cmd) && len(cmd) < copyLimit {
		b = strconv.AppendUint(append(b, " in_words="...), uint64(h.InWords), 10)
	}
	a := answer{desc: desc}
	if desc.resp.known() && len(req) >= 8 {
		room, core := uint64(h.OutWords)*4, uint64(desc.resp.size)
		a.core = span{le.Uint64(req), min(core, room)}
		if desc.drv.known() && room > core {
			a.drv = span{a.core.addr + core, room - core}
		}
	}
	return desc.req.append(b, req), a
}

func appendExtended(b []byte, h abi.CmdHdr, desc command, req []byte) ([]byte, answer) {
	var x abi.ExCmdHdr
	if x.Parse(req) != nil {
		return appendHex(append(b, " short "...), req), answer{}
	}
	a := answer{desc: desc, core: span{x.Response, uint64(h.OutWords) * 8}}
	a.drv = span{a.core.addr + a.core.n, uint64(x.ProviderOutWords) * 8}
	return desc.req.append(b, req[abi.ExCmdHdrSize:]), a
}

// appendAnswer shows the response of a call that succeeded. arg is an ioctl's
// argument as it came back.
func appendAnswer(b []byte, a answer, mem *memory, arg []byte) []byte {
	b = appendSpan(b, "", a.desc.resp, a.core, mem)
	b = appendSpan(b, " uhw", a.desc.drv, a.drv, mem)
	return appendResults(b, a.results, mem, arg)
}

func appendSpan(b []byte, label string, l layout, s span, mem *memory) []byte {
	if s.n == 0 {
		return b
	}
	raw, ok := mem.read(s.addr, min(s.n, copyLimit))
	if !ok {
		return append(b, " response not in announced memory"...)
	}
	return l.append(append(b, label...), raw)
}
