package emu

import (
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// ioctl takes RDMA_VERBS_IOCTL apart and does it: uverbs_ioctl.c, in its order.
func (c *call) ioctl(user []byte) error {
	arg, err := c.fetchArg(user)
	if err != nil {
		return err
	}
	if c.meth.Object == abi.ObjectDevice && c.meth.Method == abi.MethodInvokeWrite {
		err = c.fetchAttrs(arg)
		if err == nil {
			err = invokeWrite(c) // a hot command holds its object only
		}
	} else {
		err = c.method(arg)
	}
	if err != nil {
		return err
	}
	return c.writeAnswer(user, arg)
}

// method does any other method: it holds the objects that the attributes name
// meanwhile.
func (c *call) method(arg []byte) error {
	if err := c.file.enterFor(c.meth.ShortName()); err != nil {
		return err
	}
	defer c.file.leave()
	if err := c.fetchAttrs(arg); err != nil {
		return err
	}
	defer c.letGo()
	if err := c.holdObjects(); err != nil {
		return err
	}
	return methodHandler(c.meth)(c)
}

// writeAnswer writes the argument's answer for the client: the flags say which
// outputs are valid, and new handles stand in their attributes.
func (c *call) writeAnswer(user, arg []byte) error {
	for i := range c.meth.Attrs {
		v := &c.attrs[i]
		if !v.present {
			continue
		}
		switch c.meth.Attrs[i].Type {
		case abi.AttrOut:
			flags := arg[v.at+4 : v.at+6]
			le.PutUint16(flags, le.Uint16(flags)|abi.AttrFValidOutput)
			if err := c.copy(user[v.at+4:], flags); err != nil {
				return err
			}
		case abi.AttrHandleNew, abi.AttrFDNew:
			data := arg[v.at+8 : v.at+16]
			le.PutUint64(data, v.data)
			if err := c.copy(user[v.at+8:], data); err != nil {
				return err
			}
		}
	}
	return nil
}

// fetchArg copies the argument in and finds the method that its header names.
func (c *call) fetchArg(user []byte) ([]byte, error) {
	if len(user) < abi.IoctlHdrSize || c.file.proc.host == nil && c.file.proc.memory.Slice(address(user), uint64(len(user))) == nil {
		return nil, fail(syscall.EFAULT, "an argument of %d bytes, or not in memory announced with Pin", len(user))
	}
	const page = 4096
	arg := room(c.arg[:], min(len(user), page))
	if err := c.copy(arg, user[:len(arg)]); err != nil {
		return nil, err
	}
	var h abi.IoctlHdr
	if err := h.Parse(arg); err != nil {
		return nil, err
	}
	switch {
	case h.Length > page || int(h.Length) != abi.IoctlHdrSize+int(h.NumAttrs)*abi.IoctlAttrSize:
		return nil, fail(syscall.EINVAL, "header says %d bytes and %d attributes", h.Length, h.NumAttrs)
	case h.Reserved1 != 0 || h.Reserved2 != 0:
		return nil, fail(syscall.EPROTONOSUPPORT, "reserved fields are not zero")
	case uint32(h.DriverID) != c.file.dev.DriverID():
		return nil, fail(syscall.EINVAL, "driver id %v, the device's is %v", h.DriverID, abi.DriverID(c.file.dev.DriverID()))
	}
	if c.meth = lookupMethod(h.ObjectID, h.MethodID); c.meth == nil {
		return nil, fail(syscall.EPROTONOSUPPORT, "object %v has no method %d", h.ObjectID, h.MethodID)
	}
	if int(h.Length) > len(arg) {
		return nil, fail(syscall.EFAULT, "header says %d bytes, argument has %d", h.Length, len(arg))
	}
	return arg[:h.Length], nil
}

// fetchAttrs is uverbs_set_attr for each.
func (c *call) fetchAttrs(arg []byte) error {
	for at := abi.IoctlHdrSize; at < len(arg); at += abi.IoctlAttrSize {
		var a abi.IoctlAttr
		if err := a.Parse(arg[at:]); err != nil {
			return err
		}
		i := c.meth.AttrIndex(a.AttrID)
		if i < 0 {
			if a.Flags&abi.AttrFMandatory != 0 {
				return fail(syscall.EPROTONOSUPPORT, "attribute %#x is unknown", a.AttrID)
			}
			continue
		}
		if c.attrs[i].present {
			return fail(syscall.EINVAL, "attribute %#x is there twice", a.AttrID)
		}
		c.attrs[i] = attrValue{present: true, len: int(a.Len), data: a.Data, at: at}
		if err := c.checkAttr(&c.meth.Attrs[i], &c.attrs[i], &a); err != nil {
			return err
		}
	}
	for i := range c.meth.Attrs {
		if c.meth.Attrs[i].Mandatory && !c.attrs[i].present {
			return fail(syscall.EINVAL, "attribute %s is missing", c.meth.Attrs[i].Name)
		}
	}
	return nil
}

// checkAttr is uverbs_process_attr.
func (c *call) checkAttr(spec *abi.Attr, v *attrValue, a *abi.IoctlAttr) error {
	if spec.Longer && v.len > spec.Max {
		if err := c.trailingZero(spec, v); err != nil {
			return err
		}
	} else if v.len < spec.Min || v.len > spec.Max {
		return fail(syscall.EINVAL, "attribute %s has %d bytes, not %d to %d", spec.Name, v.len, spec.Min, spec.Max)
	}
	if a.AttrData != 0 {
		return fail(syscall.EINVAL, "reserved field of attribute %s is %#x", spec.Name, a.AttrData)
	}
	if spec.Type.NamesObject() {
		return c.resolve(spec, v)
	}
	return nil
}

// trailingZero refuses a structure that says more than this kernel understands.
func (c *call) trailingZero(spec *abi.Attr, v *attrValue) error {
	b, err := c.user(v.data, v.len)
	if err != nil {
		return err
	}
	rest := make([]byte, v.len-spec.Max)
	if err := c.copy(rest, b[spec.Max:]); err != nil {
		return err
	}
	for _, x := range rest {
		if x != 0 {
			return fail(syscall.EOPNOTSUPP, "the %d bytes after attribute %s are not zero", len(rest), spec.Name)
		}
	}
	return nil
}

// constant is an input that stands in the attribute (uverbs_get_const).
func (c *call) constant(i abi.AttrID, most uint64) (uint64, error) {
	if v := c.attrs[i].data; v <= most {
		return v, nil
	}
	return 0, fail(syscall.EINVAL, "attribute %s is %#x, more than %#x", c.meth.Attrs[i].Name, c.attrs[i].data, most)
}

// flags checks an input of flags, 4 or 8 bytes (uverbs_get_flags64).
func (c *call) flags(i abi.AttrID, allowed uint64) error {
	v := c.attrs[i]
	if !v.present {
		return nil
	}
	data := v.data
	switch v.len {
	case 4:
		data = uint64(uint32(data))
	case 8:
	default:
		return fail(syscall.EINVAL, "flags of %d bytes", v.len)
	}
	if data&^allowed != 0 {
		return fail(syscall.EINVAL, "flags %#x are unknown in part", data)
	}
	return nil
}

// answer copies out an output, as far as there is room, and clears the rest.
func (c *call) answer(i abi.AttrID, b []byte) error {
	room, err := c.user(c.attrs[i].data, c.attrs[i].len)
	if err != nil {
		return err
	}
	n := min(len(b), len(room))
	if err := c.copy(room, b[:n]); err != nil {
		return err
	}
	return c.zeroOut(room[n:])
}

// offer is answer for an output that the client may have left out.
func (c *call) offer(i abi.AttrID, b []byte) error {
	if !c.attrs[i].present {
		return nil
	}
	return c.answer(i, b)
}

// input copies in the bytes of an attribute, appended to those in buf already.
func (c *call) input(i abi.AttrID, to []byte) error {
	v := &c.attrs[i]
	if v.len <= abi.AttrInlineMax {
		le.PutUint64(c.inbuf[:], v.data)
		copy(to, c.inbuf[:v.len])
		return nil
	}
	from, err := c.user(v.data, v.len)
	if err != nil {
		return err
	}
	return c.copy(to, from)
}

// invokeWrite carries a command of write() (UVERBS_METHOD_INVOKE_WRITE). Its
// request still begins with the field for the response's address, which is
// ignored.
func invokeWrite(c *call) error {
	n, err := c.constant(abi.AttrWriteCmd, 1<<32-1)
	if err != nil {
		return err
	}
	if err := c.findCommand(abi.Command(n)); err != nil {
		return err
	}
	if !c.cmd.Supported() {
		return c.run()
	}
	coreIn, coreOut := &c.attrs[abi.AttrCoreIn], &c.attrs[abi.AttrCoreOut]
	if c.cmd.Form == abi.FormWrite && (coreIn.len < c.cmd.Request.Size || coreOut.len < c.cmd.Response.Size) {
		return fail(syscall.ENOSPC, "request of %d and response of %d bytes, not %d and %d",
			coreIn.len, coreOut.len, c.cmd.Request.Size, c.cmd.Response.Size)
	}
	c.req = room(c.buf[:], coreIn.len)
	if err := c.input(abi.AttrCoreIn, c.req); err != nil {
		return err
	}
	c.pad()
	if c.resp, err = c.user(coreOut.data, coreOut.len); err != nil {
		return err
	}
	if err := c.driverParts(); err != nil {
		return err
	}
	return c.run()
}

// driverParts finds the driver's input and its room for output, which are the
// method's last two attributes.
func (c *call) driverParts() error {
	in := abi.AttrID(len(c.meth.Attrs) - 2)
	c.hwIn = make([]byte, c.attrs[in].len)
	if err := c.input(in, c.hwIn); err != nil {
		return err
	}
	var err error
	c.hwOut, err = c.user(c.attrs[in+1].data, c.attrs[in+1].len)
	return err
}
