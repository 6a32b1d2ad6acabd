package emu

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/stretchr/testify/require"
)

// attr is an attribute for a test's ioctl; flags are mandatory unless set.
func attr(id abi.AttrID, length int, data uint64) abi.IoctlAttr {
	return abi.IoctlAttr{AttrID: id, Len: uint16(length), Flags: abi.AttrFMandatory, Data: data}
}

// argument encodes an ioctl.
func argument(o abi.ObjectID, m abi.MethodID, list ...abi.IoctlAttr) []byte {
	b := make([]byte, abi.IoctlHdrSize+len(list)*abi.IoctlAttrSize)
	(&abi.IoctlHdr{
		Length: uint16(len(b)), ObjectID: o, MethodID: m, NumAttrs: uint16(len(list)), DriverID: abi.DriverRXE,
	}).Put(b)
	for i := range list {
		list[i].Put(b[abi.IoctlHdrSize+i*abi.IoctlAttrSize:])
	}
	return b
}

// ioctl announces the argument for the length of the call.
func (c *client) ioctl(arg []byte) error {
	c.t.Helper()
	_, release := c.f.Pin(arg)
	defer release()
	return c.f.Ioctl(arg)
}

// Where invoke keeps its parts in the page.
const (
	pageIn    = 2048
	pageOut   = 0
	pageHWOut = 3072
)

// invoke is do by ioctl. The core's and the driver's part of the response are
// told apart there; it gives them in one, as write does.
func (c *client) invoke(n abi.Command, req abi.Struct, out int) ([]byte, error) {
	c.t.Helper()
	in := make([]byte, requestSize(n))
	req.Put(in)
	cmd := abi.LookupCommand(n)
	core := out
	if cmd.Driver {
		core = min(out, cmd.Response.Size)
	}
	hw := out - core
	for i := range c.page {
		c.page[i] = 0xa5
	}
	arg := c.invocation(uint64(n), in, core, hw)
	err := c.ioctl(arg)
	if err == nil && core > 0 {
		flags := le.Uint16(arg[abi.IoctlHdrSize+2*abi.IoctlAttrSize+4:])
		require.Equal(c.t, uint16(abi.AttrFMandatory|abi.AttrFValidOutput), flags)
	}
	b := append([]byte{}, c.page[pageOut:pageOut+core]...)
	return append(b, c.page[pageHWOut:pageHWOut+hw]...), err
}

// invocation encodes a command by ioctl, whose larger parts lie in the page.
func (c *client) invocation(n uint64, in []byte, core, hw int) []byte {
	list := []abi.IoctlAttr{attr(abi.AttrWriteCmd, 8, n)}
	if len(in) <= abi.AttrInlineMax {
		var b [8]byte
		copy(b[:], in)
		list = append(list, attr(abi.AttrCoreIn, len(in), le.Uint64(b[:])))
	} else {
		copy(c.page[pageIn:], in)
		list = append(list, attr(abi.AttrCoreIn, len(in), c.addr+pageIn))
	}
	if core > 0 {
		list = append(list, attr(abi.AttrCoreOut, core, c.addr+pageOut))
	}
	if hw > 0 {
		list = append(list, attr(abi.AttrUHWOut, hw, c.addr+pageHWOut))
	}
	return argument(abi.ObjectDevice, abi.MethodInvokeWrite, list...)
}
