package emu

import (
	"encoding/binary"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

var le = binary.LittleEndian

// handler answers a command or a method whose request was checked against its
// entry of the schema.
type handler func(*call) error

// commandHandlers answer the plain commands of write() and INVOKE_WRITE that
// abi.Schema has as supported.
var commandHandlers = [...]handler{
	abi.CmdGetContext:        getContext,
	abi.CmdQueryDevice:       queryDevice,
	abi.CmdQueryPort:         queryPort,
	abi.CmdAllocPD:           allocPD,
	abi.CmdDeallocPD:         deallocPD,
	abi.CmdCreateAH:          createAH,
	abi.CmdDestroyAH:         destroyAH,
	abi.CmdRegMR:             regMR,
	abi.CmdReregMR:           reregMR,
	abi.CmdDeregMR:           deregMR,
	abi.CmdCreateCompChannel: createCompChannel,
	abi.CmdCreateCQ:          createCQ,
	abi.CmdResizeCQ:          resizeCQ,
	abi.CmdDestroyCQ:         destroyCQ,
	abi.CmdReqNotifyCQ:       reqNotifyCQ,
	abi.CmdCreateQP:          createQP,
	abi.CmdQueryQP:           queryQP,
	abi.CmdModifyQP:          modifyQP,
	abi.CmdDestroyQP:         destroyQP,
	abi.CmdPostSend:          postSend,
	abi.CmdAttachMcast:       attachMcast,
	abi.CmdDetachMcast:       detachMcast,
	abi.CmdAllocMW:           allocMW,
	abi.CmdDeallocMW:         deallocMW,
	abi.CmdCreateSRQ:         createSRQ,
	abi.CmdModifySRQ:         modifySRQ,
	abi.CmdQuerySRQ:          querySRQ,
	abi.CmdDestroySRQ:        destroySRQ,
	abi.CmdCreateXSRQ:        createXSRQ,
}

// exCommandHandlers answer the extended ones.
var exCommandHandlers = [...]handler{
	abi.ExCmdQueryDevice: exQueryDevice,
	abi.ExCmdCreateCQ:    exCreateCQ,
	abi.ExCmdCreateQP:    exCreateQP,
	abi.ExCmdModifyQP:    exModifyQP,
}

// commandHandler returns the function that answers a command, nil if it is not
// supported.
func commandHandler(cmd *abi.Entry) handler {
	table, n := commandHandlers[:], int(cmd.Command&abi.CmdCommandMask)
	if cmd.Form == abi.FormExtended {
		table = exCommandHandlers[:]
	}
	if n >= len(table) {
		return nil
	}
	return table[n]
}

// hot reports whether a command is on the data path: it holds its object only,
// and allocates nothing.
func hot(cmd *abi.Entry) bool {
	return cmd.Command == abi.CmdPostSend || cmd.Command == abi.CmdReqNotifyCQ
}
