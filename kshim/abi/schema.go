package abi

import (
	"strings"
	"syscall"
)

// Form is the way in which an entry of the schema is called.
type Form string

const (
	FormWrite    Form = "write"          // write() on uverbsN, or INVOKE_WRITE
	FormExtended Form = "write-extended" // the same with a second header
	FormIoctl    Form = "ioctl"          // a method of RDMA_VERBS_IOCTL
	FormCM       Form = "rdma_cm"        // write() on rdma_cm
)

// Entry is a row of the schema: a command of write(), a method of
// RDMA_VERBS_IOCTL or a command of rdma_cm that Linux 6.1 has.
type Entry struct {
	// Name is the kernel's without its prefix: "ALLOC_PD", "EX_CREATE_CQ"; of a
	// method with its object, "CQ.CQ_CREATE".
	Name string
	Form Form

	Command Command    // of write(), with CmdFlagExtended if it is extended
	CM      UCMCommand // of rdma_cm
	Object  ObjectID   // of methods, as are the next three
	Method  MethodID
	Attrs   []Attr
	prefix  string // of their names

	// Request and Response are a command's structures, without headers and the
	// driver's parts. A plain command with less is ENOSPC; an extended one
	// takes what it leaves out as zero. Both are empty where the headers have
	// no structure.
	Request, Response Layout
	// LeastRequest and LeastResponse are the bytes that a command of rdma_cm
	// must bring: a request that leaves out more than the newest fields, and
	// room for less of a response, are refused.
	LeastRequest, LeastResponse int
	Driver                      bool   // request and response have a part of the driver's
	DriverResponse              Layout // that of rdma_rxe
	Variable                    bool   // a list of work requests follows the request

	// Lacks says why the mini kernel does not support the entry, and Errno how
	// it refuses it, as Linux does for a driver without it: EPROTONOSUPPORT for
	// a method that the kernel removes, EOPNOTSUPP for one whose attributes it
	// checks first. Both are zero where it is supported.
	Lacks string
	Errno syscall.Errno
}

// ShortName is Name; of a method without its object.
func (e *Entry) ShortName() string {
	_, name, ok := strings.Cut(e.Name, ".")
	if !ok {
		return e.Name
	}
	return name
}

// Supported says that the mini kernel does what the entry does on Linux.
func (e *Entry) Supported() bool { return e.Lacks == "" }

// Layout is the shape of a request, a response or an attribute.
type Layout struct {
	Size int           // bytes; 0: there is none
	New  func() Struct // nil: only the size is known
}

func of[T any, P interface {
	*T
	Struct
}](size int) Layout {
	return Layout{size, func() Struct { return P(new(T)) }}
}

// opaque is a layout of which only the size is known.
func opaque(size int) Layout { return Layout{Size: size} }

const (
	noXRC     = "no extended reliable connections, as rdma_rxe"
	notOnRXE  = "not for this device, as for rdma_rxe: its queues are in mapped memory"
	optional  = "not for this device, as for rdma_rxe"
	ioctlOnly = "in no kernel by write; by ioctl it is"
	nowhere   = "in no kernel"
)

// Schema returns every entry: commands, extended commands, methods and commands
// of rdma_cm, each in the order of their numbers.
func Schema() []*Entry {
	var list []*Entry
	for _, rows := range [][]Entry{commands, exCommands, methods, ucmCommands} {
		for i := range rows {
			if rows[i].Name != "" {
				list = append(list, &rows[i])
			}
		}
	}
	return list
}

// LookupCommand returns the entry of a command of write(), or nil
// (uapi_get_method).
func LookupCommand(n Command) *Entry {
	switch n &^ CmdCommandMask {
	case 0:
		return row(commands, int(n))
	case CmdFlagExtended:
		return row(exCommands, int(n&CmdCommandMask))
	}
	return nil
}

// LookupUCM returns the entry of a command of rdma_cm, or nil.
func LookupUCM(n UCMCommand) *Entry { return row(ucmCommands, int(n)) }

// LookupMethod returns the entry of a method of RDMA_VERBS_IOCTL, or nil.
func LookupMethod(o ObjectID, id MethodID) *Entry {
	for i := range methods {
		if m := &methods[i]; m.Object == o && m.Method == id {
			return m
		}
	}
	return nil
}

func row(rows []Entry, i int) *Entry {
	if i < 0 || i >= len(rows) || rows[i].Name == "" {
		return nil
	}
	return &rows[i]
}

// complete gives the rows of a table, whose indices are the commands' numbers,
// what follows from those. An empty row is a number that no command has.
func complete(form Form, name func(n int) string, rows []Entry) []Entry {
	for n := range rows {
		e := &rows[n]
		if e.Request.Size == 0 && e.Lacks == "" {
			continue
		}
		e.Name, e.Form = name(n), form
		switch form {
		case FormExtended:
			e.Command, e.Driver = CmdFlagExtended|Command(n), e.Lacks == ""
		case FormCM:
			e.CM = UCMCommand(n)
		default:
			e.Command = Command(n)
		}
		if e.Lacks != "" && e.Errno == 0 {
			e.Errno = syscall.EOPNOTSUPP
		}
	}
	return rows
}
