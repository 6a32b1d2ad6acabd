package trace

import (
	"encoding/binary"
	"strconv"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

var le = binary.LittleEndian

// lookup gives a command's name and its entry of the schema; an empty one when
// the kernel has no such command.
func lookup(number abi.Command) (string, *abi.Entry) {
	if e := abi.LookupCommand(number); e != nil {
		return e.Name, e
	}
	return number.String(), &abi.Entry{}
}

// response returns the answer of a command that succeeds. POST_SEND's answer
// counts only when it fails.
func response(e *abi.Entry) abi.Layout {
	if e.Command == abi.CmdPostSend {
		return abi.Layout{}
	}
	return e.Response
}

// copyLimit bounds how much of a command is looked at; a call may bring
// megabytes.
const copyLimit = 4096

// answer is the place and the layout of a call's response to come.
type answer struct {
	core    part
	drv     part
	results []result // of an ioctl
}

// span is memory of the caller.
type span struct{ addr, n uint64 }

// part is a span and the layout that lies there.
type part struct {
	abi.Layout
	span
}

// result is an ioctl's output attribute.
type result struct {
	name string
	attr *abi.Attr
	at   int // where the attribute stands in the argument, for the value that comes back
	span span
}

// appendWrite shows a command of write(2), and tells where it is answered.
func appendWrite(b, cmd []byte) ([]byte, answer) {
	var h abi.CmdHdr
	if h.Parse(cmd) != nil {
		return appendHex(b, cmd), answer{}
	}
	name, e := lookup(h.Command)
	b = append(b, name...)
	req := cmd[abi.CmdHdrSize:]
	if h.Command&abi.CmdFlagExtended != 0 {
		return appendExtended(b, h, e, req)
	}
	if int(h.InWords)*4 != len(cmd) && len(cmd) < copyLimit {
		b = strconv.AppendUint(append(b, " in_words="...), uint64(h.InWords), 10)
	}
	var a answer
	if resp := response(e); resp.New != nil && len(req) >= 8 {
		room, core := uint64(h.OutWords)*4, uint64(resp.Size)
		a.core = part{resp, span{le.Uint64(req), min(core, room)}}
		if room > core {
			a.drv = part{e.DriverResponse, span{a.core.addr + core, room - core}}
		}
	}
	return appendLayout(b, e.Request, req), a
}

func appendExtended(b []byte, h abi.CmdHdr, e *abi.Entry, req []byte) ([]byte, answer) {
	var x abi.ExCmdHdr
	if x.Parse(req) != nil {
		return appendHex(append(b, " short "...), req), answer{}
	}
	var a answer
	a.core = part{e.Response, span{x.Response, uint64(h.OutWords) * 8}}
	a.drv = part{e.DriverResponse, span{a.core.addr + a.core.n, uint64(x.ProviderOutWords) * 8}}
	return appendLayout(b, e.Request, req[abi.ExCmdHdrSize:]), a
}

// appendAnswer shows the response of a call that succeeded. arg is an ioctl's
// argument as it came back.
func appendAnswer(b []byte, a answer, mem *memory, arg []byte) []byte {
	b = appendPart(b, "", a.core, mem)
	b = appendPart(b, " uhw", a.drv, mem)
	return appendResults(b, a.results, mem, arg)
}

func appendPart(b []byte, label string, p part, mem *memory) []byte {
	if p.n == 0 {
		return b
	}
	raw, ok := mem.read(p.addr, min(p.n, copyLimit))
	if !ok {
		return append(b, " response not in announced memory"...)
	}
	return appendLayout(append(b, label...), p.Layout, raw)
}
