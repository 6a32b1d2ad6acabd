package emu

import (
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// Support is how far an entry of the table is answered.
type Support string

const (
	// Supported entries do what they do on Linux.
	Supported Support = "supported"
	// Unsupported ones are refused with the errno that Linux has for a driver
	// without them.
	Unsupported Support = "unsupported"
)

// Form is the way in which an entry is called.
type Form string

const (
	FormWrite    Form = "write"          // write(), or INVOKE_WRITE
	FormExtended Form = "write-extended" // the same with a second header
	FormIoctl    Form = "ioctl"          // a method of RDMA_VERBS_IOCTL
)

// Entry is a row of the table of everything that a client can ask for: a command
// of write() or a method of RDMA_VERBS_IOCTL.
type Entry struct {
	// Name is the kernel's without its prefix: "ALLOC_PD", "EX_CREATE_CQ"; of a
	// method with its object, "CQ.CQ_CREATE".
	Name string
	Form Form

	Command abi.Command // with CmdFlagExtended if it is; not of methods

	Object abi.ObjectID // of methods
	Method abi.MethodID

	// Request and Response are the sizes in bytes of a command's structures,
	// without headers and the driver's parts. A plain command with less is
	// ENOSPC; an extended one takes what it leaves out as zero. Both are 0 where
	// the headers have no structure.
	Request, Response int
	// Driver says that request and response have a part of the driver's.
	Driver bool

	Attrs []Attribute // of methods

	Support Support
	Reason  string        // why it is not supported
	Errno   syscall.Errno // of what is not supported
}

// Attribute is one of a method's attributes.
type Attribute struct {
	Name      string // the kernel's without UVERBS_ATTR_
	ID        abi.AttrID
	Type      AttrType
	Object    abi.ObjectID // of handles and descriptors
	Min, Max  int          // bytes; Max 65535 is any length
	Mandatory bool         // the client must give it
	Longer    bool         // may be longer than Max where the rest is zero
}

// Table gives every entry: commands, extended commands, methods, each in the
// order of their numbers.
func Table() []Entry {
	var list []Entry
	for n := range commands {
		list = append(list, commands[n].entry(abi.Command(n)))
	}
	for n := range exCommands {
		if exCommands[n].name != "" {
			list = append(list, exCommands[n].entry(abi.Command(n)|abi.CmdFlagExtended))
		}
	}
	for i := range methods {
		list = append(list, methods[i].entry())
	}
	return list
}

func (c *command) entry(n abi.Command) Entry {
	e := Entry{
		Name: c.name, Form: FormWrite, Command: n, Request: c.req, Response: c.resp, Driver: c.udata, Support: Supported,
	}
	if c.ext {
		e.Form = FormExtended
	}
	if c.lacks != "" {
		e.Support, e.Reason, e.Errno = Unsupported, string(c.lacks), syscall.EOPNOTSUPP
	}
	return e
}

func (m *method) entry() Entry {
	e := Entry{
		Name: m.object.String() + "." + m.name, Form: FormIoctl, Object: m.object, Method: m.id, Support: Supported,
	}
	for i := range m.attrs {
		a := &m.attrs[i]
		e.Attrs = append(e.Attrs, Attribute{
			Name: a.name, ID: a.id, Type: a.typ, Object: a.object, Min: a.min, Max: a.max, Mandatory: !a.optional, Longer: a.longer,
		})
		e.Driver = e.Driver || a.id == abi.AttrUHWIn
	}
	switch {
	case m.lacks != "" && m.do == nil: // the kernel removes it
		e.Support, e.Reason, e.Errno = Unsupported, string(m.lacks), syscall.EPROTONOSUPPORT
	case m.lacks != "":
		e.Support, e.Reason, e.Errno = Unsupported, string(m.lacks), syscall.EOPNOTSUPP
	}
	return e
}
