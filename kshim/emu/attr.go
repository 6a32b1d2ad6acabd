package emu

import (
	"cmp"
	"slices"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// kindOfObject maps the kernel's object types to the kinds that exist here.
var kindOfObject = map[abi.ObjectID]kind{
	abi.ObjectPD: kindPD, abi.ObjectCQ: kindCQ, abi.ObjectQP: kindQP, abi.ObjectAH: kindAH, abi.ObjectMR: kindMR,
	abi.ObjectSRQ: kindSRQ, abi.ObjectMW: kindMW,
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

// resolve finds the object that a handle or descriptor names:
// uverbs_get_uobject_from_file.
func (c *call) resolve(spec *abi.Attr, v *attrValue) error {
	f := c.file
	switch spec.Type {
	case abi.AttrHandleNew, abi.AttrFDNew:
		return f.hasContext()
	case abi.AttrFD:
		fd := int32(v.data)
		if uint64(int64(fd)) != v.data {
			return fail(syscall.EINVAL, "%#x is not a descriptor", v.data)
		}
		var err error
		v.events, err = f.proc.events(fd, f, spec.Object == abi.ObjectAsyncEvent)
		return err
	}
	if v.data >= 1<<63 {
		return fail(syscall.EINVAL, "handle %#x is negative", v.data)
	}
	if v.data >= 1<<32 {
		return fail(syscall.ENOENT, "handle %#x does not exist", v.data)
	}
	k, known := kindOfObject[spec.Object]
	if !known {
		return fail(syscall.EINVAL, "handle %#x: the device has no objects of type %v", v.data, spec.Object)
	}
	var err error
	v.obj, err = f.find(k, uint32(v.data))
	return err
}

// events returns the event file of owner behind a descriptor of the program
// (rdma_core.c:lookup_get_fd_uobject): EBADF for any other file.
func (p *Process) events(fd int32, owner *uverbsFile, async bool) (*eventFile, error) {
	own := p.number(fd)
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := int(own) - firstFD; i >= 0 && i < len(p.files) {
		if f, ok := p.files[i].file.(*eventFile); ok && f.async == async && f.owner == owner {
			return f, nil
		}
	}
	return nil, fail(syscall.EBADF, "descriptor %d is not an event file of this context, or of the other kind", fd)
}

// holdObjects holds the objects that the attributes name, each once, in the
// order of kinds and handles: see acquireCQs.
func (c *call) holdObjects() error {
	var list []*object
	for i := range c.meth.Attrs {
		if o := c.attrs[i].obj; o != nil && c.meth.Attrs[i].Type == abi.AttrHandle && !slices.Contains(list, o) {
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

// letGo releases the objects that hold held.
func (c *call) letGo() {
	for _, o := range c.held {
		o.release()
	}
	clear(c.held)
	c.held = c.held[:0]
}
