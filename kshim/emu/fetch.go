package emu

import (
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// call is one command or ioctl on its way through the layers. Calls are reused,
// so that a doorbell allocates nothing.
type call struct {
	file *uverbsFile
	cmd  *abi.Entry // of write() or INVOKE_WRITE
	meth *abi.Entry // of RDMA_VERBS_IOCTL

	req   []byte // the request, without headers; at least cmd.Request.Size bytes
	hwIn  []byte // the driver's part of it
	resp  []byte // user memory for the response: at least cmd.Response.Size bytes, if there is one
	hwOut []byte // user memory for the driver's part of it

	attrs [maxAttrs]attrValue // of an ioctl, in the order of the method's table
	held  []*object           // that they name
	buf   [256]byte           // the bytes of a write or of an ioctl's inputs, when they fit
	arg   [256]byte           // an ioctl's header and attributes, when they fit
	inbuf [8]byte             // an attribute's inline data
	out   [abi.ExQueryDeviceRespSize]byte
	lane  uint32 // of its process's gate
}

var (
	calls = sync.Pool{New: func() any { return &call{lane: lanes.Add(1)} }}
	lanes atomic.Uint32
)

func newCall(f *uverbsFile) *call {
	c := calls.Get().(*call)
	c.file = f
	return c
}

func (c *call) free() {
	if c.meth != nil {
		clear(c.attrs[:len(c.meth.Attrs)])
	}
	c.file, c.cmd, c.meth = nil, nil, nil
	c.req, c.hwIn, c.resp, c.hwOut = nil, nil, nil, nil
	calls.Put(c)
}

// name returns the call's name for messages.
func (c *call) name() string {
	switch {
	case c.cmd != nil:
		return c.cmd.Name
	case c.meth != nil:
		return c.meth.ShortName()
	default:
		return "write"
	}
}

// room is n bytes of buf, or others if it is too small.
func room(buf []byte, n int) []byte {
	if n <= len(buf) {
		return buf[:n]
	}
	return make([]byte, n)
}

// longestWrite is more than the headers of any command can describe.
const longestWrite = 1 << 21

// user finds n bytes of the client's memory, access_ok.
func (c *call) user(addr uint64, n int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	b := c.file.proc.memory.Slice(addr, uint64(n))
	if b == nil {
		return nil, fail(syscall.EFAULT, "%d bytes at %#x are not in memory announced with Pin", n, addr)
	}
	return b, nil
}

// fetchWrite takes a write() apart: uverbs_main.c:ib_uverbs_write, verify_hdr.
// The command is copied first, so that the bytes that are checked are the ones
// that are executed, although the client may change its own meanwhile.
func (c *call) fetchWrite(cmd []byte) error {
	if len(cmd) < abi.CmdHdrSize || len(cmd) > longestWrite {
		return fail(syscall.EINVAL, "no command has %d bytes", len(cmd))
	}
	b := room(c.buf[:], len(cmd))
	if err := c.copy(b, cmd); err != nil {
		return err
	}
	var h abi.CmdHdr
	if err := h.Parse(b); err != nil {
		return err
	}
	if err := c.findCommand(h.Command); err != nil {
		return err
	}
	switch {
	case c.cmd.Form == abi.FormWrite:
		return c.fetchPlain(&h, b)
	case !c.cmd.Supported():
		return nil // run says so; Linux first misreads the header as a plain one
	default:
		return c.fetchExtended(&h, b)
	}
}

// findCommand finds the entry of a command's number (uapi_get_method).
func (c *call) findCommand(n abi.Command) error {
	if n&^(abi.CmdFlagExtended|abi.CmdCommandMask) != 0 {
		return fail(syscall.EINVAL, "command %#x has unknown flags", uint32(n))
	}
	if c.cmd = abi.LookupCommand(n); c.cmd == nil {
		return fail(syscall.EOPNOTSUPP, "command %#x is unknown", uint32(n))
	}
	return nil
}

func (c *call) fetchPlain(h *abi.CmdHdr, b []byte) error {
	if int(h.InWords)*4 != len(b) {
		return fail(syscall.EINVAL, "header says %d bytes, write has %d", int(h.InWords)*4, len(b))
	}
	if !c.cmd.Supported() {
		return nil // as above
	}
	if len(b) < abi.CmdHdrSize+c.cmd.Request.Size {
		return fail(syscall.ENOSPC, "request is %d bytes, not %d", len(b)-abi.CmdHdrSize, c.cmd.Request.Size)
	}
	out := int(h.OutWords) * 4
	if out < c.cmd.Response.Size {
		return fail(syscall.ENOSPC, "room for a response of %d bytes, not %d", out, c.cmd.Response.Size)
	}
	c.splitRequest(b[abi.CmdHdrSize:], c.cmd.Request.Size)
	if c.cmd.Response.Size == 0 {
		return nil
	}
	// A request that has a response begins with its address.
	return c.findResponse(le.Uint64(c.req), c.cmd.Response.Size, out)
}

func (c *call) fetchExtended(h *abi.CmdHdr, b []byte) error {
	const headers = abi.CmdHdrSize + abi.ExCmdHdrSize
	var x abi.ExCmdHdr
	if x.Parse(b[abi.CmdHdrSize:]) != nil {
		return fail(syscall.EINVAL, "%d bytes are less than the two headers", len(b))
	}
	in, hwIn := int(h.InWords)*8, int(x.ProviderInWords)*8
	out, hwOut := int(h.OutWords)*8, int(x.ProviderOutWords)*8
	switch {
	case in+hwIn != len(b)-headers:
		return fail(syscall.EINVAL, "headers say %d bytes, write has %d", in+hwIn, len(b)-headers)
	case x.Reserved != 0:
		return fail(syscall.EINVAL, "reserved field is %#x", x.Reserved)
	case (x.Response == 0) != (out+hwOut == 0):
		return fail(syscall.EINVAL, "response of %d bytes at %#x", out+hwOut, x.Response)
	}
	c.splitRequest(b[headers:], in)
	c.pad()
	return c.findResponse(x.Response, out, out+hwOut)
}

// splitRequest divides a request into the core's part, its first core bytes,
// and the driver's.
func (c *call) splitRequest(b []byte, core int) {
	if !c.cmd.Driver {
		core = len(b) // a longer request than known, see trailing
	}
	c.req, c.hwIn = b[:core:core], b[core:]
}

// pad zeroes the fields that a shorter extended request leaves out
// (uverbs_request).
func (c *call) pad() {
	if n := len(c.req); c.cmd.Form == abi.FormExtended && n < c.cmd.Request.Size {
		c.req = append(c.req[:n:n], make([]byte, c.cmd.Request.Size-n)...)
	}
}

// findResponse splits the client's room for a response. Without a driver's part
// all of it is the core's, which clears what it does not fill.
func (c *call) findResponse(addr uint64, core, all int) error {
	b, err := c.user(addr, all)
	if err != nil {
		return err
	}
	if !c.cmd.Driver {
		core = all
	}
	c.resp, c.hwOut = b[:core:core], b[core:]
	return nil
}

// trailing refuses a request that says more than this kernel understands
// (uverbs_request).
func (c *call) trailing() error {
	if c.cmd.Variable {
		return nil
	}
	for _, b := range c.req[c.cmd.Request.Size:] {
		if b != 0 {
			return fail(syscall.EOPNOTSUPP, "the %d bytes after the request are not zero", len(c.req)-c.cmd.Request.Size)
		}
	}
	return nil
}

// run does a fetched command.
func (c *call) run() error {
	if !c.cmd.Supported() {
		return fail(c.cmd.Errno, "the command is %s", c.cmd.Lacks)
	}
	if err := c.trailing(); err != nil {
		return err
	}
	do := commandHandler(c.cmd)
	if hot(c.cmd) {
		err := do(c)
		if err != nil {
			if gone := c.file.usable(); gone != nil {
				return gone
			}
		}
		return err
	}
	if err := c.file.enterFor(c.cmd.Name); err != nil {
		return err
	}
	defer c.file.leave()
	return do(c)
}

// decode returns a command's request, which is as long as the schema says.
func decode[T any, P interface {
	*T
	abi.Struct
}](c *call) (req T) {
	_ = P(&req).Parse(c.req)
	return req
}

// responseLength is how much of its response the client learns
// (uverbs_response_length).
func (c *call) responseLength() uint32 {
	return uint32(min(c.cmd.Response.Size, len(c.resp)))
}

// reply copies out a command's response.
func (c *call) reply(resp abi.Struct) error {
	resp.Put(c.out[:])
	return c.respond(c.cmd.Response.Size)
}

// respond copies out a response of n bytes, which lies in c.out, as far as
// there is room, and clears the room that is left (uverbs_response).
func (c *call) respond(n int) error {
	n = min(n, len(c.resp))
	if err := c.copy(c.resp, c.out[:n]); err != nil {
		return err
	}
	if n < len(c.resp) {
		return c.zeroOut(c.resp[n:])
	}
	return nil
}
