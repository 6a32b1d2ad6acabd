package emu

import (
	"cmp"
	"slices"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// AttrType is what an attribute is: enum uverbs_attr_type, told apart further as
// the kernel's macros do.
type AttrType uint8

const (
	AttrIn            AttrType = iota // bytes that the kernel reads
	AttrOut                           // room that it writes to
	AttrConst                         // a number, 8 bytes
	AttrFlags                         // flags, 4 or 8 bytes
	AttrHandle                        // a handle of an object that is used
	AttrHandleNew                     // gets the handle of the object that is made
	AttrHandleDestroy                 // a handle of the object that is destroyed
	AttrFD                            // a descriptor that is used
	AttrFDNew                         // gets the descriptor that is made
)

var attrTypeNames = [...]string{
	AttrIn: "in", AttrOut: "out", AttrConst: "in: number", AttrFlags: "in: flags", AttrHandle: "in: handle",
	AttrHandleNew: "out: handle", AttrHandleDestroy: "in: handle, destroyed", AttrFD: "in: descriptor", AttrFDNew: "out: descriptor",
}

func (t AttrType) String() string { return attrTypeNames[t] }

// object says that an attribute names an object: no bytes, the handle in data.
func (t AttrType) object() bool { return t >= AttrHandle }

// anyLength as an attribute's max: no bound but the field's.
const anyLength = 1<<16 - 1

// attrSpec is one attribute of a method (struct uverbs_attr_spec).
type attrSpec struct {
	name     string // the kernel's without UVERBS_ATTR_
	id       abi.AttrID
	typ      AttrType
	object   abi.ObjectID // of handles and descriptors
	min, max int          // bytes; both 0 of handles and descriptors
	optional bool
	longer   bool // may be longer than max if what follows is zero (zero_trailing)
}

// The constructors of rows, named as the kernel's macros say it.

func input(name string, id abi.AttrID, n int) attrSpec {
	return attrSpec{name: name, id: id, typ: AttrIn, min: n, max: n}
}

// inputOf takes a structure, of which clients may know a longer version.
func inputOf(name string, id abi.AttrID, n int) attrSpec {
	return attrSpec{name: name, id: id, typ: AttrIn, min: n, max: n, longer: true}
}

func inputFrom(name string, id abi.AttrID, least int) attrSpec {
	return attrSpec{name: name, id: id, typ: AttrIn, min: least, max: anyLength}
}

func output(name string, id abi.AttrID, n int) attrSpec {
	return attrSpec{name: name, id: id, typ: AttrOut, min: n, max: n}
}

// outputFrom gives a structure to clients that may know a longer version.
func outputFrom(name string, id abi.AttrID, least int) attrSpec {
	return attrSpec{name: name, id: id, typ: AttrOut, min: least, max: anyLength}
}

func number(name string, id abi.AttrID) attrSpec {
	return attrSpec{name: name, id: id, typ: AttrConst, min: 8, max: 8}
}

func flags(name string, id abi.AttrID) attrSpec {
	return attrSpec{name: name, id: id, typ: AttrFlags, min: 4, max: 8}
}

func handle(name string, id abi.AttrID, o abi.ObjectID) attrSpec {
	return attrSpec{name: name, id: id, typ: AttrHandle, object: o}
}

func newHandle(name string, id abi.AttrID, o abi.ObjectID) attrSpec {
	return attrSpec{name: name, id: id, typ: AttrHandleNew, object: o}
}

func endOf(name string, id abi.AttrID, o abi.ObjectID) attrSpec {
	return attrSpec{name: name, id: id, typ: AttrHandleDestroy, object: o}
}

func descriptor(name string, id abi.AttrID, o abi.ObjectID) attrSpec {
	return attrSpec{name: name, id: id, typ: AttrFD, object: o}
}

func newDescriptor(name string, id abi.AttrID, o abi.ObjectID) attrSpec {
	return attrSpec{name: name, id: id, typ: AttrFDNew, object: o}
}

func (a attrSpec) opt() attrSpec {
	a.optional = true
	return a
}

// driverIn and driverOut are UVERBS_ATTR_UHW.
func driverIn() attrSpec  { return inputFrom("UHW_IN", abi.AttrUHWIn, 0).opt() }
func driverOut() attrSpec { return outputFrom("UHW_OUT", abi.AttrUHWOut, 0).opt() }

// kinds of the objects that exist here.
var kindOfObject = map[abi.ObjectID]kind{
	abi.ObjectPD: kindPD, abi.ObjectCQ: kindCQ, abi.ObjectQP: kindQP, abi.ObjectAH: kindAH, abi.ObjectMR: kindMR,
}

// attrValue is an attribute as the client gave it.
type attrValue struct {
	present bool
	len     int
	data    uint64     // the value itself if it is input of at most 8 bytes, else its address
	at      int        // where it stands in arg
	obj     *object    // of a handle; held for AttrHandle
	events  *eventFile // AttrFD
}

// resolve finds what a handle or descriptor names: uverbs_get_uobject_from_file.
func (c *call) resolve(spec *attrSpec, v *attrValue) error {
	f := c.file
	switch spec.typ {
	case AttrHandleNew, AttrFDNew:
		return f.hasContext()
	case AttrFD:
		var err error
		v.events, err = f.proc.events(v.data, f, spec.object == abi.ObjectAsyncEvent)
		return err
	}
	if v.data >= 1<<63 {
		return fail(syscall.EINVAL, "handle %#x is negative", v.data)
	}
	if v.data >= 1<<32 {
		return fail(syscall.ENOENT, "handle %#x does not exist", v.data)
	}
	k, known := kindOfObject[spec.object]
	if !known {
		if spec.object == abi.ObjectSRQ && f.handles.get(uint32(v.data)) == nil { // rxe has them
			return fail(syscall.ENOENT, "%v handle %#x does not exist", spec.object, v.data)
		}
		return fail(syscall.EINVAL, "handle %#x: the device has no objects of type %v", v.data, spec.object)
	}
	var err error
	v.obj, err = f.find(k, uint32(v.data))
	return err
}

// events gives the event file of owner behind a descriptor
// (rdma_core.c:lookup_get_fd_uobject): EBADF for any other file.
func (p *Process) events(data uint64, owner *uverbsFile, async bool) (*eventFile, error) {
	fd := int32(data)
	if uint64(int64(fd)) != data {
		return nil, fail(syscall.EINVAL, "%#x is not a descriptor", data)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := int(fd) - firstFD; i >= 0 && i < len(p.files) {
		if f, ok := p.files[i].file.(*eventFile); ok && f.async == async && f.owner == owner {
			return f, nil
		}
	}
	return nil, fail(syscall.EBADF, "descriptor %d is not an event file of this context, or of the other kind", fd)
}

// hold holds the objects that the attributes name, each once, in the order of
// kinds and handles: see acquireCQs.
func (c *call) hold() error {
	var list []*object
	for i := range c.meth.attrs {
		if o := c.attrs[i].obj; o != nil && c.meth.attrs[i].typ == AttrHandle && !slices.Contains(list, o) {
			list = append(list, o)
		}
	}
	slices.SortFunc(list, func(a, b *object) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.handle, b.handle))
	})
	for _, o := range list {
		if _, err := c.file.acquire(o.kind, o.handle); err != nil {
			return err
		}
		c.held = append(c.held, o)
	}
	return nil
}

// letGo releases what hold held.
func (c *call) letGo() {
	for _, o := range c.held {
		o.release()
	}
	clear(c.held)
	c.held = c.held[:0]
}
