package emu

import (
	"encoding/binary"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

var le = binary.LittleEndian

// handler answers a command or a method whose request was checked against its
// entry of the schema.
type handler func(*call) error

// inContext has a handler called behind GET_CONTEXT only.
func inContext(do handler) handler {
	return func(c *call) error {
		if err := c.file.hasContext(); err != nil {
			return err
		}
		return do(c)
	}
}

// destroyer destroys an object of a kind. The request is its handle, behind the
// address of the response if there is one: how many of its events were read.
func destroyer(k kind) handler {
	return func(c *call) error {
		handle := c.req
		if c.cmd.Response.Size > 0 {
			handle = c.req[8:]
		}
		o, err := c.file.destroy(k, le.Uint32(handle))
		if err != nil {
			return err
		}
		if x, ok := o.body.(counting); ok {
			return c.reply(x.counts())
		}
		return nil
	}
}

// commandHandlers answer the plain commands of write() and INVOKE_WRITE that
// abi.Schema has as supported.
var commandHandlers = [...]handler{
	abi.CmdGetContext:        getContext,
	abi.CmdQueryDevice:       inContext(queryDevice),
	abi.CmdQueryPort:         inContext(queryPort),
	abi.CmdAllocPD:           inContext(allocPD),
	abi.CmdDeallocPD:         destroyer(kindPD),
	abi.CmdCreateAH:          inContext(createAH),
	abi.CmdDestroyAH:         destroyer(kindAH),
	abi.CmdRegMR:             inContext(regMR),
	abi.CmdReregMR:           reregMR,
	abi.CmdDeregMR:           destroyer(kindMR),
	abi.CmdCreateCompChannel: inContext(createCompChannel),
	abi.CmdCreateCQ:          inContext(createCQ),
	abi.CmdResizeCQ:          resizeCQ,
	abi.CmdDestroyCQ:         destroyer(kindCQ),
	abi.CmdReqNotifyCQ:       reqNotifyCQ,
	abi.CmdCreateQP:          inContext(createQP),
	abi.CmdQueryQP:           queryQP,
	abi.CmdModifyQP:          modifyQP,
	abi.CmdDestroyQP:         destroyer(kindQP),
	abi.CmdPostSend:          postSend,
	abi.CmdAttachMcast:       attachMcast,
	abi.CmdDetachMcast:       detachMcast,
	abi.CmdAllocMW:           inContext(allocMW),
	abi.CmdDeallocMW:         destroyer(kindMW),
	abi.CmdCreateSRQ:         inContext(createSRQ),
	abi.CmdModifySRQ:         modifySRQ,
	abi.CmdQuerySRQ:          querySRQ,
	abi.CmdDestroySRQ:        destroyer(kindSRQ),
	abi.CmdCreateXSRQ:        inContext(createXSRQ),
}

// exCommandHandlers answer the extended ones.
var exCommandHandlers = [...]handler{
	abi.ExCmdQueryDevice: inContext(exQueryDevice),
	abi.ExCmdCreateCQ:    inContext(exCreateCQ),
	abi.ExCmdCreateQP:    inContext(exCreateQP),
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
